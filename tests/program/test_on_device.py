"""Arrays that another library has on a GPU, on the emulated one: used where they lie."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.core.device_arrays import OnDevice, device_array, is_on_device
from avial_lab.core.errors import BindError, RunError
from avial_lab.machine.devices import place_name

SIZE = 1000
DOUBLE = """
func.func @f(%x: memref<1000xf32>, %y: memref<1000xf32>) {
  affine.for %i = 0 to 1000 {
    %c = arith.constant 2.0 : f32
    %a = affine.load %x[%i] : memref<1000xf32>
    %b = arith.mulf %a, %c : f32
    affine.store %b, %y[%i] : memref<1000xf32>
  }
  return
}
"""
SERIAL = (
    DOUBLE.replace("affine.for %i = 0", "affine.for %i = 1")
    .replace("affine.load %x[%i]", "affine.load %y[%i - 1]")
    .replace(": memref<1000xf32>\n    %b", ": memref<1000xf32>\n    %b")
)


class There:
    """Memory of this process in place of a GPU's, as CuPy would show it."""

    def __init__(self, array: np.ndarray, **changes: object) -> None:
        self.array, self.changes = array, changes

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        array = self.array
        strides = None if array.flags.c_contiguous else array.strides
        data = (array.ctypes.data, not array.flags.writeable)
        said = {"shape": array.shape, "typestr": array.dtype.str, "data": data, "version": 3}
        return said | {"strides": strides, "stream": None} | self.changes


class Capsule:
    """The same by DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, *, stream: int) -> object:
        assert stream == 1
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class Second(There):
    """On the second GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1


def _arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(SIZE, dtype=np.float32), np.full(SIZE, np.nan, np.float32)


def _compiled(x: Any, y: Any, text: str = DOUBLE, **how: Any) -> avial_lab.Program:
    how = {"on": "gpu"} | how
    return avial_lab.compile(text, arrays={"x": x, "y": y}, **how)


@pytest.mark.parametrize("way", [There, Capsule])
def test_nothing_is_copied_and_values_are_right(way: type) -> None:
    x, y = _arrays()
    program = _compiled(way(x), way(y))
    assert program.plan is not None
    assert (program.plan.copies, program.plan.device_bytes) == ((), (8000,))
    for seed in range(3):
        x += 1
        assert program.run(device_seed=seed).copies == ()
        np.testing.assert_array_equal(y, 2 * x)
    program.run(check=True)
    assert program.check_report is not None


@pytest.mark.parametrize("there", ["x", "y"])
def test_copies_of_the_other_array_are_those_planned(there: str) -> None:
    arrays = dict(zip("xy", _arrays(), strict=True))
    given = {name: There(a) if name == there else a for name, a in arrays.items()}
    program = avial_lab.compile(DOUBLE, arrays=given, on="gpu")
    assert program.plan is not None
    copies = program.run(check=True).copies
    assert copies == program.plan.copies
    assert [copy.nbytes for copy in copies] == [4000]
    np.testing.assert_array_equal(arrays["y"], 2 * arrays["x"])


def test_what_the_host_writes_last_goes_back_to_the_gpu() -> None:
    """The second loop stays on the host."""
    x, y = _arrays()
    text = DOUBLE.replace("  return\n", SERIAL.split("{", 1)[1].split("return")[0] + "  return\n")
    program = _compiled(There(x), There(y), text)
    trace = program.run(check=True)
    assert program.plan is not None
    assert trace.copies == program.plan.copies
    assert {(copy.source, copy.dest) for copy in trace.copies} == {
        ("gpu0", "cpu0"), ("cpu0", "gpu0"),
    }  # fmt: skip
    assert not y.any()  # 0, 2 · 0, …


def test_what_stands_for_the_array_has_no_values() -> None:
    x, y = _arrays()
    stand_in = _compiled(There(x), There(y)).arrays["x"]
    assert stand_in.shape == (SIZE,)
    for look in (lambda: stand_in[0], lambda: stand_in + 1, lambda: np.sum(stand_in)):
        with pytest.raises(BindError, match="the values are on the GPU"):
            look()


REFUSED = {
    "strides": (lambda x: There(np.repeat(x, 2)[::2]), {}, "has strides"),
    "mask": (lambda x: There(x, mask=x), {}, "has a mask"),
    "typestr": (lambda x: There(x, typestr="<U1"), {}, "no MLIR element type"),
    "not an interface": (lambda x: There(x, shape="?"), {}, "cannot be read"),
    "no GPU": (There, {"on": "cpu"}, "nothing of the program runs on a GPU"),
    "ranks": (There, {"ranks": 2}, "the program has 2 ranks"),
    "another GPU": (Second, {}, "is on GPU 1, and the program drives 1 GPU"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused(name: str) -> None:
    make, how, words = REFUSED[name]
    x, y = _arrays()
    with pytest.raises(BindError, match=words):
        _compiled(make(x), There(y), **how)


def test_a_read_only_target_is_refused() -> None:
    x, y = _arrays()
    y.flags.writeable = False
    with pytest.raises(BindError, match="the array 'y' is read-only"):
        _compiled(There(x), There(y))


def test_two_that_share_memory_are_refused() -> None:
    both = np.zeros(SIZE + 1, np.float32)
    with pytest.raises(BindError, match="share memory on a GPU"):
        _compiled(There(both[1:]), There(both[:-1]))


def test_freed_memory_is_refused() -> None:
    """At an address where the kernel places no mapping by itself, so that no thread gets it."""
    libc, size = ctypes.CDLL(None, use_errno=True), 1 << 16
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    how = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address, (x, y) = libc.mmap(1 << 40, size, *how, -1, 0), _arrays()
    program = _compiled(There(x, data=(address, False)), There(y))
    assert libc.munmap(address, size) == 0
    with pytest.raises(
        RunError, match="array 'x' cannot be used where it is: the emulated device has no memory"
    ):
        program.run()
    assert np.isnan(y).all()


TASKS = """avial.schedule %x: memref<1000xf32>, %y: memref<1000xf32>, %z: memref<1000xf32> {
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "gpu"}
  %t1 = avial.task %gpu, %x, %y {
    affine.for %i = 0 to 1000 {
      %a = affine.load %x[%i] : memref<1000xf32>
      %b = arith.addf %a, %a : f32
      affine.store %b, %y[%i] : memref<1000xf32>
    }
  }
  %t2 = avial.task %cpu, %y, %z {
    affine.for %i = 0 to 100 {
      %a = affine.load %y[%i] : memref<1000xf32>
      affine.store %a, %z[%i] : memref<1000xf32>
    }
  }
}"""


@pytest.mark.parametrize("there", ["", "x", "y", "xy", "xyz"])
def test_tasks_use_arrays_where_they_lie(there: str) -> None:
    """What the CPU reads of y comes to it, and what it writes goes back to a z that is there."""
    x, y = _arrays()
    arrays = {"x": x, "y": y, "z": np.full(SIZE, 7, np.float32)}
    given = {name: There(a) if name in there else a for name, a in arrays.items()}
    program = avial_lab.compile(TASKS, arrays=given, ranks=1, gpus=1)
    copied = {
        (copy.storage, place_name(copy.source, 1)): copy.nbytes for copy in program.schedule.copies
    }
    wanted = {("y", "gpu0"): 400 if "y" in there else copied.get(("y", "gpu0"), 0)}
    wanted |= {} if "x" in there else {("x", "cpu0"): 4000}
    wanted |= {("z", "cpu0"): 400} if "z" in there else {}
    assert copied == wanted
    for seed in range(3):
        y.fill(np.nan)
        arrays["z"].fill(7)
        x += 1
        trace = program.run(check=seed == 2, device_seed=seed)
        assert set(trace.copies) == set(program.plan.copies)
        assert trace.taken_bytes == program.plan.taken_bytes
        np.testing.assert_array_equal(y, 2 * x)
        np.testing.assert_array_equal(arrays["z"], np.r_[2 * x[:100], np.full(900, 7)])


def test_tasks_refuse_what_no_gpu_of_theirs_has() -> None:
    x, y = _arrays()
    text = TASKS.replace(" %gpu,", " %cpu,")
    with pytest.raises(BindError, match="nothing of the program runs on a GPU"):
        avial_lab.compile(text, arrays={"x": There(x), "y": y, "z": y.copy()}, ranks=1, gpus=1)
    with pytest.raises(BindError, match="is on GPU 1, and the program drives 1 GPU"):
        avial_lab.compile(TASKS, arrays={"x": Second(x), "y": y, "z": y.copy()}, ranks=1, gpus=1)


LAUNCH = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1.0 : f32
BEFORE
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {
INSIDE
      memref.store %one, %y[%tx] : memref<1000xf32>
      gpu.terminator
    }
"""
COMPUTED = LAUNCH.replace("INSIDE", "").replace("BEFORE", """
    %e = memref.load %n[%c0] : memref<1xi32>
    %threads = arith.index_cast %e : i32 to index
""")  # fmt: skip
CLOCK = LAUNCH.replace("INSIDE", "%t = nvvm.read.ptx.sreg.clock : i32").replace(
    "BEFORE", "%threads = arith.constant 10 : index"
)
MAY_FAIL = DOUBLE.replace("y: memref<1000xf32>", "y: memref<1000xf32>, %n: memref<1xi32>").replace(
    "  return\n", COMPUTED + "  return\n"
)
FAILS = f"""avial.schedule %x: memref<1000xf32>, %y: memref<1000xf32> {{
  %gpu = avial.target {{arch = "gpu"}}
  %t1 = avial.task %gpu, %x, %y {{{DOUBLE.split("{", 1)[1].split("return")[0]}}}
  %t2 = avial.task %gpu, %y {{{CLOCK}}}
}}"""


def test_a_run_that_fails_leaves_all_as_it_was() -> None:
    """The first phase has written all of y when the launch of the second is refused."""
    x, y = _arrays()
    y[:] = 7
    n = np.array([1025], np.int32)
    program = avial_lab.compile(MAY_FAIL, arrays={"x": There(x), "y": There(y), "n": n}, on="gpu")
    for seed in range(3):
        with pytest.raises(RunError, match=r"on gpu0 .*1025 threads.*'y' on the GPU: as before"):
            program.run(device_seed=seed)
        np.testing.assert_array_equal(y, 7)
    n[0] = 10
    trace = program.run()
    assert program.plan is not None
    assert trace.taken_bytes == program.plan.taken_bytes
    assert trace.taken_bytes == (("gpu0", y.nbytes),)
    np.testing.assert_array_equal(y, np.r_[np.ones(10), 2 * x[10:]])


def test_tasks_that_fail_leave_all_as_it_was() -> None:
    x, y = _arrays()
    y[:] = 7
    program = avial_lab.compile(FAILS, arrays={"x": There(x), "y": There(y)}, ranks=1, gpus=1)
    for seed in range(3):
        with pytest.raises(RunError, match=r"task 't2' on gpu0.*clock.*: as before the run"):
            program.run(device_seed=seed)
        np.testing.assert_array_equal(y, 7)


def test_another_array_than_it_was_compiled_for() -> None:
    x, y = _arrays()
    program = _compiled(There(x), There(y))
    with pytest.raises(BindError, match="was compiled for one on GPU 0"):
        replace(program, arrays=program.arrays | {"x": x}).run()


def test_nothing_of_the_host_looks_like_a_gpu() -> None:
    x, _ = _arrays()
    assert not is_on_device(x)
    assert not is_on_device(OnDevice.of(device_array("x", There(x))))
    assert not is_on_device([1, 2])
