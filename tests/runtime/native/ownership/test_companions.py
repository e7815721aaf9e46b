"""The least and greatest of all with what belongs to it, as if one rank had looked at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from avial_lab.runtime.launch import cluster as clusters
from tests.runtime.native.ownership.programs import Program

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

M, MANY = 5, 4321
"""Columns of the small array, and of one whose reductions are divided by rows."""

ARGMIN, ARGMAX, ARGMIN_UNSIGNED, ARGMAX_UNSIGNED, COMPANION = range(11, 16)
TYPES = {
    "int8": (1, "int8_t", "uint8_t"),
    "int16": (2, "int16_t", "uint16_t"),
    "int32": (3, "int32_t", "uint32_t"),
    "int64": (4, "int64_t", "uint64_t"),
    "float32": (7, "float", "float"),
    "float64": (8, "double", "double"),
}
CASES = [
    (name, kind)
    for name in TYPES
    for kind in range(ARGMIN, COMPANION)
    if kind <= ARGMAX or name.startswith("int")
]

# A companion before its leader and one after; one of several elements; one cell of each column;
# so many that each rank combines its own; columns that only some ranks look at.
ARRAYS = {
    "P": "int64", "X": "T", "B": "T", "Q": "int32", "H": "T", "K": "int8", "Y": "T", "J": "float32",
    "G": "T", "S": "T", "L": "int64",
}  # fmt: skip
SOURCE = """
typedef $T T; typedef $U U;
enum { N = $N, M = 5, MANY = 4321, LEADS = $KIND * 16 + $NUMBER, FOLLOWS = 15 * 16 };
#define BETTER(x, y) ((U)(x) $LESS (U)(y))
static void one(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], 0, r[1], M));
    avial_reduce(0, BOX(0, 1), FOLLOWS | 3 << 16);
    avial_reduce(2, BOX(0, 1), LEADS);
    avial_reduce(3, BOX(1, 4), FOLLOWS | 3 << 16);
}
static void columns(const i64 *p, const i64 *r) {
    avial_read(1, BOX(r[0], 0, r[1], M));
    avial_reduce(4, BOX(0, M), LEADS);
    avial_reduce(5, BOX(0, M), FOLLOWS | 5 << 16);
}
static void many(const i64 *p, const i64 *r) {
    avial_read(6, BOX(r[0], 0, r[1], MANY));
    avial_reduce(7, BOX(0, MANY), FOLLOWS | 9 << 16);
    avial_reduce(8, BOX(0, MANY), LEADS);
}
static void some(const i64 *p, const i64 *r) {
    i64 low = r[0] * M / N, high = (r[1] - 1) * M / N + 1;
    avial_read(1, BOX(r[0], low, r[1], high));
    avial_reduce(9, BOX(low, high), LEADS);
    avial_reduce(10, BOX(low, high), FOLLOWS | 10 << 16);
}
#define OVER(id, touches, prepare, ...) do { \\
    $LAYOUT \\
    i64 r[4], n_ = avial_begin(id, REPLICATE, touches, 0, SPACE(0, N, N)); \\
    prepare; \\
    for (i64 k_ = 0; k_ < n_; k_++) { avial_range(k_, r); \\
        for (i64 i = r[0]; i < r[1]; i++) __VA_ARGS__ } \\
    avial_end(); } while (0)
static void program($ARRAYS) {
    T b[1], h[M], *g = malloc(MANY * sizeof *g), s[M];
    i64 p[1], l[M]; int32_t q[9]; int8_t k[M]; float *j_ = malloc(MANY * sizeof *j_);
    OVER(0, one, (avial_scratch(0, p), avial_scratch(2, b), avial_scratch(3, q)), {
        for (i64 j = 0; j < M; j++) {
            T x = X[i * M + j];
            if (BETTER(x, b[0])) b[0] = x, p[0] = i * M + j, q[1] = i, q[2] = j, q[3] = -i;
        }
    });
    OVER(1, columns, (avial_scratch(4, h), avial_scratch(5, k)), {
        for (i64 j = 0; j < M; j++) {
            T x = X[i * M + j];
            if (BETTER(x, h[j])) h[j] = x, k[j] = i;
        }
    });
    OVER(2, many, (avial_scratch(7, j_), avial_scratch(8, g)), {
        for (i64 j = 0; j < MANY; j++) {
            T x = Y[i * MANY + j];
            if (BETTER(x, g[j])) g[j] = x, j_[j] = i;
        }
    });
    OVER(3, some, (avial_scratch(9, s), avial_scratch(10, l)), {
        i64 j = i * M / N;
        T x = X[i * M + j];
        if (BETTER(x, s[j])) s[j] = x, l[j] = i;
    });
    free(g); free(j_);
}
"""


def program(name: str, kind: int, rows: int, layout: str = "") -> Program:
    number, c, unsigned = TYPES[name]
    ctypes = {"T": c, "int64": "int64_t", "int32": "int32_t", "int8": "int8_t", "float32": "float"}
    source = SOURCE
    for key, value in {
        "$T": c,
        "$U": unsigned if kind >= ARGMIN_UNSIGNED else c,
        "$NUMBER": number,
        "$N": rows,
        "$KIND": kind,
        "$LESS": "<" if kind in (ARGMIN, ARGMIN_UNSIGNED) else ">",
        "$LAYOUT": layout,
        "$ARRAYS": ", ".join(f"{ctypes[kind]} *{array}" for array, kind in ARRAYS.items()),
    }.items():
        source = source.replace(key, str(value))
    kinds = tuple(ctypes[kind] for kind in ARRAYS.values())
    return Program(source, tuple(ARRAYS), kinds, ("one", "columns", "many", "some"))


def inputs(name: str, rows: int, seed: int) -> dict[str, np.ndarray]:
    """Few different values, so that many are alike; the extreme ones among them."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(name)
    if dtype.kind == "f":
        values = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2, 0.1, 7], dtype)
    else:
        limits = np.iinfo(dtype)
        values = np.array([limits.min, limits.max, 0, -1, 1, 5, 100, -7], dtype)
    # Not all at once: else everybody has the least there is.
    values = rng.choice(values, 5, replace=False)
    shapes = {
        "P": (), "X": (rows, M), "B": (1,), "Q": (9,), "H": M, "K": M, "Y": (rows, MANY),
        "J": MANY, "G": MANY, "S": M, "L": M,
    }  # fmt: skip
    return {
        array: rng.choice(values, shapes[array])
        if kind == "T"
        else np.asarray(rng.integers(50, 99, shapes[array])).astype(kind)
        for array, kind in ARRAYS.items()
    }


def expected(before: dict[str, np.ndarray], kind: int) -> dict[str, np.ndarray]:
    """One row after the other."""
    a = {name: array.copy() for name, array in before.items()}
    rows = len(a["X"])

    def better(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if kind >= ARGMIN_UNSIGNED:
            x, y = (each.astype(f"u{each.dtype}") for each in (x, y))
        return x < y if kind in (ARGMIN, ARGMIN_UNSIGNED) else x > y

    for i in range(rows):
        for j in range(M):
            if better(a["X"][i, j], a["B"][0]):
                a["B"][0] = a["X"][i, j]
                a["P"][...] = i * M + j
                a["Q"][1:4] = i, j, -i
        for leader, companion, x in (("H", "K", a["X"][i]), ("G", "J", a["Y"][i])):
            wins = better(x, a[leader])
            a[leader][wins] = x[wins]
            a[companion][wins] = i
        j = i * M // rows
        if better(a["X"][i, j], a["S"][j]):
            a["S"][j] = a["X"][i, j]
            a["L"][j] = i
    return a


def check(
    case: Program, arrays: dict[str, np.ndarray], kind: int, cluster: Cluster, ranks: int
) -> None:
    want = expected(arrays, kind)
    clusters.run(case.binary(arrays, ranks), arrays, cluster)
    for name, array in arrays.items():
        assert array.tobytes() == want[name].tobytes(), (name, array, want[name])


@pytest.mark.quick("*-5")
@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_as_one_rank_finds_it(name: str, kind: int, ranks: int, cluster: Cluster) -> None:
    check(program(name, kind, 21), inputs(name, 21, 10 * kind + ranks), kind, cluster, ranks)


@pytest.mark.mpi
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["int16", "float32"])
def test_more_ranks_than_rows(name: str, seed: int, cluster: Cluster) -> None:
    check(program(name, ARGMAX, 3), inputs(name, 3, seed), ARGMAX, cluster, 7)


IN_TURN = "avial_layout(2, 0, 0, 0);"
TURNED_ROUND = "avial_layout(0, 0, 3, BOX(4, 0, 2));"


@pytest.mark.mpi
@pytest.mark.parametrize("layout", [IN_TURN, TURNED_ROUND], ids=["blocks in turn", "turned round"])
@pytest.mark.parametrize("seed", range(3))
def test_the_first_is_the_first_however_it_is_divided(
    layout: str, seed: int, cluster: Cluster
) -> None:
    case = program("float64", ARGMIN, 21, layout)
    assert not any(phase.whole for phase in case.plan(inputs("float64", 21, 0), 5).phases)
    check(case, inputs("float64", 21, seed), ARGMIN, cluster, 5)


# What cannot be combined runs whole, on one rank.
ELEMENTS = """
enum {{ N = 12 }};
static void touches(const i64 *p, const i64 *r) {{
    avial_reduce(0, BOX({leader}), 11 * 16 + 8);
    avial_reduce(1, BOX({companion}), {op});
}}
static void program(double *A, double *B) {{
    PHASE(0, REPLICATE, touches, 0, SPACE(0, N, N), {{}});
}}
"""
FOLLOWS_FIRST = "15 * 16 | 1 << 16"


@pytest.mark.parametrize(
    ("leader", "companion", "op", "whole"),
    [
        pytest.param("0, 9", "0, 9", FOLLOWS_FIRST, 0, id="alike"),
        pytest.param("3, 4", "0, 9", FOLLOWS_FIRST, 0, id="all of them follow one"),
        pytest.param("0, 9", "0, 8", FOLLOWS_FIRST, 1, id="fewer"),
        pytest.param("0, 8", "1, 9", FOLLOWS_FIRST, 1, id="beside"),
        pytest.param("r[0], r[0] + 1", "3, 4", FOLLOWS_FIRST, 1, id="one for each rank"),
        pytest.param("0, 9", "0, 9", "15 * 16 | 3 << 16", 1, id="after an array there is not"),
        pytest.param("0, 9", "0, 9", "15 * 16", 1, id="after none"),
        pytest.param("0, 9", "0, 9", "15 * 16 | 2 << 16", 1, id="after itself"),
        pytest.param("0, 0", "0, 9", FOLLOWS_FIRST, 1, id="after what is not reduced"),
        pytest.param("0, 9", "0, 9", "13 * 16 + 8", 1, id="floats without a sign"),
    ],
)
def test_companions_that_do_not_fit(leader: str, companion: str, op: str, whole: int) -> None:
    source = ELEMENTS.format(leader=leader, companion=companion, op=op)
    case = Program(source, ("A", "B"), ("double", "double"), ("all",))
    (phase,) = case.plan({"A": np.zeros(12), "B": np.zeros(12)}, 3).phases
    assert phase.whole == whole
