"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from mlir import ir
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from avial_lab.compiler.ir.dialects import register
from tests.printing.differing import explained
from tests.quick import examples, mark_slow_cases

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

# An example that stood still while others had the machine is not wrong, and CI draws the same
# ones for the same tests, so that it judges the change: as in hypothesis's own profile for CI.
# Elsewhere each run draws others. What hangs, pytest's time limit finds.
settings.register_profile(
    "busy machine",
    max_examples=examples(100),
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy machine")

# Ctrl-C as in a terminal: what a shell starts in the background ignores it, and so do its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


Collected = pytest.Item | pytest.Collector | list[pytest.Item | pytest.Collector] | None

ON_THE_MACHINE = ("browser", "hosts", "notebook", "notebooks", "benchmarks", "runtime")
"""Folders whose tests look at processes and clusters of this machine, or measure times."""


class InTwo(LoadScopeScheduling):
    """Where processes share the tests (`-n 2`): a file's stay together, and one process has all
    that start kernels, clusters and browsers, one after another as ever.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        return "machine" if Path(file).parts[1] in ON_THE_MACHINE else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> InTwo:
    return InTwo(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> Generator[None, Collected, Collected]:
    """Where a test is made into its cases: the hook after it may see only those asked for."""
    made = yield
    if isinstance(made, list):
        mark_slow_cases([case for case in made if isinstance(case, pytest.Function)])
    return made


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Our types print in a few words: where two differ, their fields say it."""
    return explained(left, right) if op == "==" else None


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests build into a cache of their own, and find nothing that was built before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Seven ranks, of which the last drives an emulated GPU, for all tests that break none."""
    pytest.importorskip("ipyparallel", reason="no ipyparallel: there is no cluster to run on")
    from avial_lab.runtime.launch.cluster import Cluster

    with Cluster.start(cpu=6, gpu=1) as started:
        yield started


@pytest.fixture
def context() -> ir.Context:
    """A fresh MLIR context that knows the avial dialect."""
    fresh = ir.Context()
    register(fresh)
    return fresh
