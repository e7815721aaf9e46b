"""Arrays that another library has on a GPU, on the emulated one: those of ranks elsewhere are
copies, and one rank that is this process uses them where they lie.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.core.device_arrays import device_array
from avial_lab.core.errors import BindError
from avial_lab.ptensor.namespace import Namespace
from avial_lab.runtime.rank.own_ranks import own_ranks
from tests.program.test_on_device import Capsule, There
from tests.ptensor.local import local_namespace


@pytest.fixture(scope="module")
def here() -> Namespace:
    """Of one rank: this process."""
    return Namespace(own_ranks())


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


@pytest.mark.parametrize("way", [There, Capsule])
def test_it_is_used_where_it_lies(here: Namespace, way: type) -> None:
    """Computed with, written, and handed on, at one address."""
    there = np.arange(12.0).reshape(3, 4)
    before = here.report()["copied_bytes"]
    x = here.from_dlpack(way(there)) if way is Capsule else here.asarray(way(there), copy=False)
    assert x.device == "cuda:0"
    y = x + x
    x *= x
    here.sync()
    np.testing.assert_array_equal(there, np.arange(12.0).reshape(3, 4) ** 2)
    shown = device_array("x", x)
    assert (shown.address, shown.shape) == (there.ctypes.data, there.shape)
    np.testing.assert_array_equal(np.from_dlpack(y), 2 * np.arange(12.0).reshape(3, 4))
    assert here.report()["copied_bytes"] == before
    copied = here.asarray(way(there), device="default")
    assert copied.device == "default"
    assert not np.shares_memory(np.asarray(copied), there)


def test_what_is_shown_is_the_array_itself(here: Namespace) -> None:
    x = here.asarray(np.arange(20.0).reshape(4, 5), device="cuda:0")
    part = x[1:, ::-2]
    seen = np.from_dlpack(part)
    assert not np.from_dlpack(x + 0).flags.owndata
    said = part.__cuda_array_interface__
    first = x.__cuda_array_interface__["data"][0]
    assert (said["shape"], said["strides"], said["data"][0]) == ((3, 3), (40, -16), first + 72)
    x[2, 4] = 77.0
    assert x.__cuda_array_interface__["data"][0] == first
    np.testing.assert_array_equal(seen, [[9, 7, 5], [77, 12, 10], [19, 17, 15]])
    del x, part
    gc.collect()
    assert seen[1, 0] == 77
    assert not hasattr(here.zeros(3), "__cuda_array_interface__")


@pytest.mark.slow
def test_values_that_are_looked_at_are_copied_and_counted(here: Namespace) -> None:
    there = np.arange(1000.0)
    x = here.asarray(There(there))
    before = here.report()["copied_bytes"]
    assert float(x[7]) == 7.0
    assert here.report()["copied_bytes"] - before == 8
    np.testing.assert_array_equal(np.asarray(here.sort(-x)), -there[::-1])
    assert here.report()["copied_bytes"] - before == 8 + 3 * 8000  # there, back, and looked at


@pytest.mark.slow
def test_a_copy_is_the_gpu_s_own(here: Namespace) -> None:
    there = np.arange(8.0)
    copied = here.asarray(There(there), copy=True)
    there[:] = -1
    np.testing.assert_array_equal(np.asarray(copied), np.arange(8.0))
    narrow = here.asarray(There(there), dtype=np.float32)
    assert (narrow.device, narrow.dtype) == ("cuda:0", np.float32)
    np.testing.assert_array_equal(np.asarray(narrow), there)
    with pytest.raises(ValueError, match="has to be copied"):
        here.asarray(There(there), dtype=np.float32, copy=False)


def test_one_memory_is_one_array(here: Namespace) -> None:
    there = np.arange(8.0)
    x, y = here.asarray(There(there)), here.asarray(Capsule(there))
    z = x + y
    y[:] = 0.0
    np.testing.assert_array_equal(np.asarray(x), 0 * there)
    np.testing.assert_array_equal(np.asarray(z), 2 * np.arange(8.0))
    with pytest.raises(BindError, match=r"shares memory on a GPU(.|\n)*copy=True"):
        here.asarray(There(there[1:]))


def test_what_is_read_only_is_not_written(here: Namespace) -> None:
    there = np.arange(8.0)
    there.flags.writeable = False
    x = here.asarray(There(there))
    np.testing.assert_array_equal(np.asarray(x + 1), there + 1)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1.0


@pytest.mark.slow
def test_a_program_uses_the_array_where_it_lies(here: Namespace) -> None:
    there = np.arange(8.0)
    x, y = here.asarray(There(there)), here.zeros(8, device="cuda:0")
    text = """
      func.func @f(%x: memref<8xf64>, %y: memref<8xf64>) {
        affine.for %i = 0 to 8 {
          %a = affine.load %x[%i] : memref<8xf64>
          %b = arith.addf %a, %a : f64
          affine.store %b, %y[%i] : memref<8xf64>
        }
        return
      }"""
    assert avial_lab.compile(text, arrays={"x": x, "y": y}).run().copies == ()
    np.testing.assert_array_equal(np.asarray(y), 2 * there)


@pytest.mark.parametrize("way", [There, pytest.param(Capsule, marks=pytest.mark.slow)])
def test_a_python_function_uses_the_array_where_it_lies(way: type) -> None:
    @avial_lab.program
    def squares(x: Any, y: Any) -> Any:
        y[:] = x * x
        return y

    for size in (30, 30, 40):
        x, there = np.arange(size), np.zeros(size, int)
        given = way(there)
        assert squares(way(x), given) is given
        np.testing.assert_array_equal(there, x * x)
        assert squares.trace is not None
        assert squares.trace.copies == ()
    assert len(squares.versions) == 2
