"""Arrays that another library has on a GPU become arrays of the ranks: their values are copied."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.core.errors import BindError
from tests.program.test_on_device import Capsule, There
from tests.ptensor.local import local_namespace


@pytest.mark.parametrize("way", [There, Capsule])
@pytest.mark.parametrize("shape", [(5,), (3, 4), ()])
def test_values_are_copied(way: type, shape: tuple[int, ...]) -> None:
    there = np.arange(float(np.prod(shape))).reshape(shape)
    xp = local_namespace()
    got = xp.asarray(way(there)) + 1
    wanted = there + 1
    there[...] = -1
    np.testing.assert_array_equal(np.asarray(got), wanted, strict=True)
    assert xp.asarray(way(there), dtype=np.float32).dtype == np.float32


def test_what_cannot_be_read_is_refused() -> None:
    xp = local_namespace()
    with pytest.raises(BindError, match="has strides"):
        xp.asarray(There(np.arange(10.0)[::2]))
    with pytest.raises(ValueError, match="has to be copied"):
        xp.asarray(There(np.arange(3.0)), copy=False)
