"""Every operation and type that partial results are combined with, against MLIR's meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from avial_lab.runtime.launch import cluster as clusters
from tests.runtime.native.ownership.programs import Program

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

pytestmark = pytest.mark.mpi

N = 21


def minimum(x, y):
    """MLIR's minimumf: NaN wins, -0 lies below +0."""
    if np.isnan(x) or np.isnan(y):
        return x if np.isnan(x) else y
    return x if x < y or (x == y and np.signbit(x)) else y


def maximum(x, y):
    if np.isnan(x) or np.isnan(y):
        return x if np.isnan(x) else y
    return x if x > y or (x == y and not np.signbit(x)) else y


def numbers_first(of: Callable) -> Callable:
    """minnumf and maxnumf: NaN loses."""
    return lambda x, y: y if np.isnan(x) else x if np.isnan(y) else of(x, y)


def unsigned(of: Callable) -> Callable:
    def chosen(x, y):
        kind = np.dtype(f"u{x.dtype}") if x.dtype != bool else x.dtype
        return of(x.view(kind), y.view(kind)).view(x.dtype)

    return chosen


@dataclass(frozen=True)
class Operation:
    """`c` combines x and y in C; `meaning` does for two NumPy scalars."""

    kind: int
    c: str
    meaning: Callable


INTEGER = {
    "sum": Operation(0, "(T)((U)x + (U)y)", lambda x, y: x + y),
    "product": Operation(1, "(T)((U)x * (U)y)", lambda x, y: x * y),
    "minimum": Operation(2, "x < y ? x : y", min),
    "maximum": Operation(3, "x > y ? x : y", max),
    "and": Operation(4, "x & y", lambda x, y: x & y),
    "or": Operation(5, "x | y", lambda x, y: x | y),
    "xor": Operation(6, "x ^ y", lambda x, y: x ^ y),
    "unsigned minimum": Operation(7, "(U)x < (U)y ? x : y", unsigned(min)),
    "unsigned maximum": Operation(8, "(U)x > (U)y ? x : y", unsigned(max)),
}
BIT = {
    "sum": Operation(0, "x ^ y", lambda x, y: x ^ y),
    "product": Operation(1, "x & y", lambda x, y: x & y),
    # A set bit is -1.
    "minimum": Operation(2, "x | y", lambda x, y: x | y),
    "maximum": Operation(3, "x & y", lambda x, y: x & y),
    "and": INTEGER["and"],
    "or": INTEGER["or"],
    "xor": INTEGER["xor"],
    "unsigned minimum": Operation(7, "x & y", lambda x, y: x & y),
    "unsigned maximum": Operation(8, "x | y", lambda x, y: x | y),
}
_MINIMUM = "(isnan(x) ? x : isnan(y) ? y : x < y || (x == y && signbit(x)) ? x : y)"
_MAXIMUM = "(isnan(x) ? x : isnan(y) ? y : x > y || (x == y && !signbit(x)) ? x : y)"
REAL = {
    "sum": Operation(0, "x + y", lambda x, y: x + y),
    "product": Operation(1, "x * y", lambda x, y: x * y),
    "minimum": Operation(2, _MINIMUM, minimum),
    "maximum": Operation(3, _MAXIMUM, maximum),
    "smaller number": Operation(
        9, f"(isnan(x) ? y : isnan(y) ? x : {_MINIMUM})", numbers_first(minimum)
    ),
    "larger number": Operation(
        10, f"(isnan(x) ? y : isnan(y) ? x : {_MAXIMUM})", numbers_first(maximum)
    ),
}
TYPES = {
    "i1": (0, "bool", "uint8_t", "uint8_t", BIT),
    "i8": (1, "int8", "int8_t", "uint8_t", INTEGER),
    "i16": (2, "int16", "int16_t", "uint16_t", INTEGER),
    "i32": (3, "int32", "int32_t", "uint32_t", INTEGER),
    "i64": (4, "int64", "int64_t", "uint64_t", INTEGER),
    "f32": (7, "float32", "float", "float", REAL),
    "f64": (8, "float64", "double", "double", REAL),
}


def program(name: str) -> Program:
    """Array k of results is array `x` reduced along its rows by the k-th operation of the type."""
    number, _, c, unsigned_c, operations = TYPES[name]
    source = [f"typedef {c} T; typedef {unsigned_c} U; enum {{ N = {N} }};"]
    phases = []
    for k, operation in enumerate(operations.values()):
        source.append(f"""
static void touches{k}(const i64 *p, const i64 *r) {{
    avial_read(0, BOX(r[0], 0, r[1], 5));
    avial_reduce({k + 1}, BOX(0, 5), {operation.kind * 16 + number});
}}""")
        phases.append(f"""
    REDUCTION({k}, REPLICATE, touches{k}, 0, SPACE(0, N, N), {k + 1}, T, 5 * sizeof(T), {{
        for (i64 i = r[0]; i < r[1]; i++) for (i64 j = 0; j < 5; j++) {{
            T x = acc[j], y = X[5*i+j]; acc[j] = {operation.c};
        }}
    }});""")
    arrays = ("X", *(f"R{k}" for k in range(len(operations))))
    parameters = ", ".join(f"T *{array}" for array in arrays)
    source += [f"static void program({parameters}) {{", *phases, "}"]
    return Program("\n".join(source), arrays, (c,) * len(arrays), tuple(operations))


def values(name: str, seed: int, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(TYPES[name][1])
    if dtype.kind == "b":
        return rng.random(shape) > 0.2
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    special = np.array([0.0, -0.0, np.nan, np.inf, 1.5, -2.0, 0.1], dtype)
    return np.where(
        rng.random(shape) < 0.3, rng.choice(special, shape), rng.normal(size=shape).astype(dtype)
    )


def expected(x: np.ndarray, old: np.ndarray, operation: Operation, ranks: int) -> list:
    """The rows of each rank by themselves, then the ranks in order; the first begins with `old`."""
    bounds = [k * N // ranks for k in range(ranks + 1)]
    columns = []
    with np.errstate(all="ignore"):
        for j in range(5):
            partial = [list(x[low:high, j]) for low, high in pairwise(bounds) if low < high]
            partial[0].insert(0, old[j])
            columns.append(
                reduce(operation.meaning, (reduce(operation.meaning, p) for p in partial))
            )
    return columns


@pytest.mark.parametrize("ranks", [1, 2, 5, 7])
@pytest.mark.parametrize("name", TYPES)
def test_partial_results_are_combined_in_order(name: str, ranks: int, cluster: Cluster) -> None:
    *_, operations = TYPES[name]
    case = program(name)
    arrays = {"X": values(name, 1, N, 5)}
    arrays |= {f"R{k}": values(name, k + 2, 5) for k in range(len(operations))}
    # A sum over NaN tells nothing: the specials stay where they are looked at.
    want = {
        label: expected(arrays["X"], arrays[f"R{k}"], operation, ranks)
        for k, (label, operation) in enumerate(operations.items())
    }
    clusters.run(case.binary(arrays, ranks), arrays, cluster)
    for k, label in enumerate(operations):
        got = arrays[f"R{k}"]
        same = np.array(want[label], got.dtype)
        np.testing.assert_array_equal(got, same, err_msg=label)
        if got.dtype.kind == "f":
            numbers = ~np.isnan(got)
            np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(same)[numbers])
