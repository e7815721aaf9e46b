"""Code that has never heard of this namespace: scikit-learn's and SciPy's, where they are installed
(`pip install scikit-learn`).
"""

# Not among what the tests install.
# pyright: reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from avial_lab.ptensor import on
from avial_lab.ptensor.namespace import Namespace
from avial_lab.runtime.launch.cluster import Cluster

os.environ.setdefault("SCIPY_ARRAY_API", "1")
sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
pytestmark = [pytest.mark.mpi, pytest.mark.slow]

RNG = np.random.default_rng(0)
ROWS = RNG.random((200, 5))
CLASSES = (ROWS @ np.arange(5.0) > 5).astype(np.int64)


@pytest.fixture(scope="module")
def xp() -> Iterator[Namespace]:
    with Cluster.start(cpu=2, gpu=0) as started, sklearn.config_context(array_api_dispatch=True):
        yield on(started)


def scaled(x: Any, y: Any) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(x)


def components(x: Any, y: Any) -> Any:
    from sklearn.decomposition import PCA

    return abs(PCA(2, svd_solver="full").fit_transform(x))


def ridge(x: Any, y: Any) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge(solver="svd").fit(x, x[:, 0] * 2).coef_


def logistic(x: Any, y: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="lbfgs").fit(x, y).coef_


def discriminant(x: Any, y: Any) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis().fit(x, y).coef_


def bayes(x: Any, y: Any) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB().fit(x, y).theta_


def t_test(x: Any, y: Any) -> Any:
    from scipy.stats import ttest_ind

    return ttest_ind(x, x[:50]).pvalue


@pytest.mark.parametrize(
    "fitted", [scaled, components, ridge, logistic, discriminant, bayes, t_test]
)
def test_fitted_as_numpy_is(xp: Namespace, fitted: Callable[[Any, Any], Any]) -> None:
    found = fitted(xp.asarray(ROWS), xp.asarray(CLASSES))
    np.testing.assert_allclose(
        np.asarray(found), np.asarray(fitted(ROWS, CLASSES)), rtol=1e-6, atol=1e-8
    )
