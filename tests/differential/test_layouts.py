"""The caller's arrays as NumPy makes them: dtypes, ranks, extents, strides, shared memory."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from avial_lab.core.element_types import ELEMENT_OF_DTYPE
from avial_lab.program.compilation import compile as compile_program
from avial_lab.runtime.launch.cluster import Cluster
from tests.differential.cases import Arrays, Case, parametrised, try_case

Generator = np.random.Generator


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def values(rng: Generator, shape: tuple[int, ...], name: str = "int32") -> np.ndarray:
    """Every value of small types; whole range of integers; floats with NaN, infinities, -0."""
    dtype = dtype_of(name)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    made = rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "c":
        return made + (1j * rng.standard_normal(shape)).astype(dtype)
    if made.size > 3:
        made.flat[:4] = np.array([np.nan, np.inf, -np.inf, -0.0]).astype(dtype)
    return made


# Three tasks that move and change whole arrays: to another rank, through a kernel, and back.
def around(shape: tuple[int, ...], names: str, element: str) -> str:
    """y = x, then (on a GPU) z = y, then (elsewhere) x = z, by loops over every index."""
    indices = ", ".join(f"%i{d}" for d in range(len(shape)))
    zeros = ", ".join("0" for _ in shape)
    ends = ", ".join(map(str, shape))
    x, y, z = names

    def body(source: str, dest: str) -> str:
        inner = f"%v = memref.load %{source}[{indices}]\nmemref.store %v, %{dest}[{indices}]"
        if not shape:
            return inner
        return f"scf.parallel {indices} = {zeros} to {ends} {{ {inner} }}"

    return f"""
avial.schedule %{x}, %{y}, %{z} {{
  %cpu = avial.target {{arch = "x86_64"}}
  %gpu = avial.target {{arch = "sm_90"}}
  %there = avial.task %cpu, %{x}, %{y} {{ {body(x, y)} }}
  %kernel = avial.task %gpu, %{y}, %{z} {{ {body(y, z)} }}
  %other = avial.task %cpu, %{x} {{ {body(x, x)} }}
  %back = avial.task %cpu, %{z}, %{x} {{ {body(z, x)} }}
}}
"""


def copied_around(m: Arrays) -> None:
    m["y"][...] = m["x"]
    m["z"][...] = m["y"]
    m["x"][...] = m["z"]


@pytest.mark.quick("bool", "int8", "float32", "complex64", "bfloat16")
@pytest.mark.mpi
@pytest.mark.parametrize("name", ELEMENT_OF_DTYPE)
def test_every_dtype_travels(name: str, cluster: Cluster) -> None:
    case = Case(
        around((19,), "xyz", ELEMENT_OF_DTYPE[name]),
        lambda rng: {n: values(rng, (19,), name) for n in "xyz"},
        copied_around,
    )
    try_case(case, cluster, ranks=3)


SHAPES = [(), (1,), (0,), (7,), (1, 1), (13, 1), (1, 17), (3, 0, 2), (2, 3, 5), (2, 1, 3, 2)]
SHAPES += [(2,) * 5, (1, 2, 1, 2, 1, 2), (2, 1, 1, 2, 1, 1, 3), (2,) * 8]


@pytest.mark.quick("()", "(0,)", "(1, 17)", "(2, 1, 3, 2)")
@pytest.mark.mpi
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_rank_travels(shape: tuple[int, ...], cluster: Cluster) -> None:
    case = Case(
        around(shape, "xyz", "f32"),
        lambda rng: {n: values(rng, shape, "float32") for n in "xyz"},
        copied_around,
    )
    try_case(case, cluster, ranks=3)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": lambda a: a.copy(),
    "Fortran": np.asfortranarray,
    "reversed": lambda a: a.copy()[::-1, ::-1],
    "transposed": lambda a: a.T.copy().T,
    "every second": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, 1::3],
    "a column block": lambda a: np.concatenate([a, a, a], axis=1)[:, 4:8],
    "reversed columns of a cube": lambda a: np.stack([a, a, a], axis=1)[:, 1, ::-1],
    "a field of records": lambda a: _field(a),
    "between bytes": lambda a: _unaligned(a),
}


def _field(a: np.ndarray) -> np.ndarray:
    records = np.zeros(a.shape, [("tag", "u1"), ("value", a.dtype)])
    records["value"] = a
    return records["value"]


def _unaligned(a: np.ndarray) -> np.ndarray:
    raw = np.zeros(a.nbytes + 1, np.uint8)
    made = raw[1:].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


@pytest.mark.mpi
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_travels(layout: str, cluster: Cluster) -> None:
    def arrays(rng: Generator) -> Arrays:
        return {n: LAYOUTS[layout](values(rng, (5, 4), "float64")) for n in "xyz"}

    case = Case(around((5, 4), "xyz", "f64"), arrays, copied_around)
    try_case(case, cluster, ranks=3)


# Arrays that share memory -------------------------------------------------------------------------

SHARED: dict[str, Case] = {}


def _shift(source: str, dest: str, count: int, *, add: int = 0, shape: str = "") -> str:
    return f"""
      %k = arith.constant {add} : i32
      scf.for %i = 0 to {count} {{
        %v = memref.load %{source}[%i]
        %w = arith.addi %v, %k
        memref.store %w, %{dest}[%i]
      }}"""


def _each(source: str, dest: str) -> str:
    return f"""
      scf.parallel %i, %j = 0, 0 to 3, 4 {{
        %v = memref.load %{source}[%i, %j]
        memref.store %v, %{dest}[%i, %j]
      }}"""


def _program(*tasks: tuple[str, str, str]) -> str:
    names = list(dict.fromkeys(n.strip() for _, listed, _ in tasks for n in listed.split(",")))
    lines = [f"avial.schedule {', '.join(f'%{n}' for n in names)} {{"]
    lines += ['  %cpu = avial.target {arch = "cpu"}', '  %gpu = avial.target {arch = "gpu"}']
    for k, (target, listed, body) in enumerate(tasks):
        operands = ", ".join(f"%{n.strip()}" for n in listed.split(","))
        lines.append(f"  %t{k} = avial.task %{target}, {operands} {{{body}\n  }}")
    return "\n".join([*lines, "}", ""])


def _windows(rng: Generator) -> Arrays:
    base = values(rng, (20,)) // 4
    return {"x": base[0:12], "y": base[8:20], "z": values(rng, (12,))}


def _windows_meaning(m: Arrays) -> None:
    m["z"][:] = m["y"]
    for i in range(12):
        m["x"][i] = m["z"][i] + 1
    for i in range(12):
        m["y"][i] = m["x"][i] + 2
    m["z"][:] = m["x"]


SHARED["two windows"] = Case(
    _program(
        ("cpu", "y, z", _shift("y", "z", 12)),
        ("cpu", "z, x", _shift("z", "x", 12, add=1)),
        ("cpu", "x, y", _shift("x", "y", 12, add=2)),
        ("gpu", "x, z", _shift("x", "z", 12)),
    ),
    _windows,
    _windows_meaning,
)


def _reversed(rng: Generator) -> Arrays:
    base = values(rng, (9,)) // 4
    return {"x": base, "y": base[::-1], "z": values(rng, (9,))}


def _reversed_meaning(m: Arrays) -> None:
    for i in range(9):
        m["y"][i] = m["x"][i] + 1
    m["z"][:] = m["y"]
    for i in range(9):
        m["x"][i] = m["z"][i] + 2


SHARED["an array and its reverse"] = Case(
    _program(
        ("cpu", "x, y", _shift("x", "y", 9, add=1)),
        ("gpu", "y, z", _shift("y", "z", 9)),
        ("cpu", "z, x", _shift("z", "x", 9, add=2)),
    ),
    _reversed,
    _reversed_meaning,
)


def _backwards_2d(rng: Generator) -> Arrays:
    base = values(rng, (6, 8)) // 4
    return {"x": base[:, ::-1], "y": base[::-2, 1:5], "z": values(rng, (3, 4))}


def _backwards_2d_meaning(m: Arrays) -> None:
    m["z"][:] = m["y"] + m["x"][1:4, 2:6]
    m["y"][:] = m["z"]
    m["x"][0:3, 0:4] = m["z"]


SHARED["backwards in two dimensions"] = Case(
    _program(
        (
            "cpu",
            "x, y, z",
            """
      %s = memref.subview %x[1, 2] [3, 4] [1, 1]
      linalg.add ins(%y, %s) outs(%z)""",
        ),
        (
            "gpu",
            "z, y",
            _each("z", "y"),
        ),
        ("cpu", "z, x", "%s = memref.subview %x[0, 0] [3, 4] [1, 1]\n memref.copy %z, %s"),
    ),
    _backwards_2d,
    _backwards_2d_meaning,
)


def _beside(rng: Generator) -> Arrays:
    base = values(rng, (50, 6)) // 4
    return {"x": base[:, 0:2], "y": base[:, 1:3], "z": base[:, 4:6]}


def _beside_meaning(m: Arrays) -> None:
    m["x"] += 1
    m["z"] += 2
    m["y"] += 3


_ADD = """
      %k = arith.constant {k} : i32
      scf.parallel %i, %j = 0, 0 to 50, 2 {{
        %v = memref.load %{name}[%i, %j]
        %w = arith.addi %v, %k
        memref.store %w, %{name}[%i, %j]
      }}"""

SHARED["columns that overlap, and others between them"] = Case(
    _program(
        ("cpu", "x", _ADD.format(k=1, name="x")),
        ("gpu", "z", _ADD.format(k=2, name="z")),
        ("cpu", "y", _ADD.format(k=3, name="y")),
    ),
    _beside,
    _beside_meaning,
)


def _same_twice(rng: Generator) -> Arrays:
    base = values(rng, (8,)) // 4
    return {"x": base, "y": base}


def _same_twice_meaning(m: Arrays) -> None:
    for i in range(7):
        m["x"][i] = m["y"][i] + 1
    for i in range(8):
        m["y"][i] = m["x"][i] + 1


SHARED["one array under two names"] = Case(
    _program(
        ("cpu", "x, y", _shift("y", "x", 7, add=1)), ("gpu", "x, y", _shift("x", "y", 8, add=1))
    ),
    _same_twice,
    _same_twice_meaning,
)


def _broadcast(rng: Generator) -> Arrays:
    base = values(rng, (4,)) // 4
    return {"b": np.broadcast_to(base, (3, 4)), "z": values(rng, (3, 4))}


SHARED["a broadcast, read only"] = Case(
    _program(
        ("gpu", "b, z", "\n      memref.copy %b, %z"),
        ("cpu", "z", _ADD.format(k=1, name="z").replace("50, 2", "3, 4")),
    ),
    _broadcast,
    lambda m: m["z"].__setitem__(..., m["b"] + 1),
)


def _broadcast_base(rng: Generator) -> Arrays:
    base = values(rng, (4,)) // 4
    return {"x": base, "b": np.broadcast_to(base, (3, 4)), "z": values(rng, (3, 4))}


def _broadcast_base_meaning(m: Arrays) -> None:
    m["x"] += 5
    m["z"][:] = m["b"]


SHARED["a broadcast beside what it shows"] = Case(
    _program(
        ("cpu", "x", _shift("x", "x", 4, add=5)),
        (
            "gpu",
            "b, z",
            _each("b", "z"),
        ),
    ),
    _broadcast_base,
    _broadcast_base_meaning,
)


def _types(rng: Generator) -> Arrays:
    base = values(rng, (6,))
    return {"x": base, "h": base.view(np.int16), "f": base[2:4].view(np.float64)}


def _types_meaning(m: Arrays) -> None:
    m["h"][5] = -1
    m["f"][0] = 1.5
    m["x"][0] = m["x"][5]


SHARED["views of other dtypes"] = Case(
    _program(
        (
            "cpu",
            "h",
            """
      %k = arith.constant 5 : index
      %m = arith.constant -1 : i16
      memref.store %m, %h[%k]""",
        ),
        (
            "gpu",
            "f",
            """
      gpu.launch { %t = gpu.thread_id x
      %m = arith.constant 1.5 : f64
      memref.store %m, %f[%t] }""",
        ),
        (
            "cpu",
            "x",
            """
      %k = arith.constant 5 : index
      %z = arith.constant 0 : index
      %v = memref.load %x[%k]
      memref.store %v, %x[%z]""",
        ),
    ),
    _types,
    _types_meaning,
)


def _window_matrix(rng: Generator) -> Arrays:
    base = values(rng, (10,)) // 4
    sliding = as_strided(base, (8, 3), (4, 4), writeable=False)
    return {"w": sliding, "z": values(rng, (8,))}


def _window_meaning(m: Arrays) -> None:
    m["z"][:] = m["w"].sum(axis=1, dtype="int32")


SHARED["a sliding window, read only"] = Case(
    _program(
        (
            "gpu",
            "w, z",
            """
      %zero = arith.constant 0 : i32
      scf.parallel %i = 0 to 8 {
        %s = scf.for %j = 0 to 3 iter_args(%a = %zero) {
          %v = memref.load %w[%i, %j]
          %b = arith.addi %a, %v
          scf.yield %b
        }
        memref.store %s, %z[%i]
      }""",
        ),
    ),
    _window_matrix,
    _window_meaning,
)


@pytest.mark.quick("*-3")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 3])
@parametrised(SHARED)
def test_shared_memory(case: Case, ranks: int, cluster: Cluster) -> None:
    try_case(case, cluster, ranks=ranks, sync="levels" if ranks == 1 else "edges")


@pytest.mark.parametrize("step", [1, -1])
def test_offsets_wrap_around_only_where_an_array_runs_backwards(step: int) -> None:
    """LLVM may do anything with an offset of -1 that was promised not to be 2^64 - 1.

    It does so only now and then, so the promise is what is looked for.
    """
    base = np.arange(9, dtype=np.int32)
    arrays = {"x": base, "y": base[::step]}
    text = _program(("cpu", "x, y", _shift("x", "y", 9, add=1)))
    stage = compile_program(text, arrays=arrays, ranks=1).stages["llvm"]
    assert ("nuw" in stage.text) == (step > 0)
    assert ("signed-offsets" in stage.command) == (step < 0)
