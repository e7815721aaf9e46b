"""What to call the functions in this folder with: for each file arrays and numbers, of the usual
size and of one that some ranks get nothing of.

Nothing here imports avial_lab.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent

Arrays = dict[str, np.ndarray]
Numbers = dict[str, int | float]


@dataclass(frozen=True)
class Inputs:
    arrays: Arrays
    scalars: Numbers

    def copies(self) -> Arrays:
        return {name: array.copy() for name, array in self.arrays.items()}


class Draw:
    """Random values; what a function only writes is poisoned."""

    def __init__(self, seed: int, dtype: type[np.generic]) -> None:
        self.rng, self.dtype = np.random.default_rng(seed), np.dtype(dtype)

    def real(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(-1, 1, shape).astype(self.dtype)

    def whole(self, *shape: int, low: int = -99, high: int = 100) -> np.ndarray:
        return self.rng.integers(low, high, shape).astype(np.int32)

    def poison(self, *shape: int) -> np.ndarray:
        return np.full(shape, np.nan, self.dtype)


F32, F64 = np.float32, np.float64
Make = Callable[[Draw, int], tuple[Arrays, Numbers]]

_TWO_SIZES = 13, 2


def _named(first: int, *values: np.ndarray) -> Arrays:
    return {f"arg{first + k}": value for k, value in enumerate(values)}


def _csr(draw: Draw, n: int) -> tuple[Arrays, Numbers]:
    counts = draw.rng.integers(0, min(n, 5) + 1, n)
    rows = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    total = max(int(rows[-1]), 1)
    columns = draw.rng.integers(0, n, total).astype(np.int32)
    return _named(1, rows, columns, draw.real(total), draw.real(n), draw.poison(n)), {"arg0": n}


def _heavy(draw: Draw, n: int) -> np.ndarray:
    matrix = draw.real(n, 9)
    matrix[np.arange(min(n, 9)), np.arange(min(n, 9))] += 9
    return matrix


CASES: dict[str, tuple[type[np.generic], Make]] = {
    "affine_parallel": (F32, lambda d, n: (
        _named(0, d.real(n, 14), d.poison(n, 14), d.real(3)), {})),
    "argmin": (F64, lambda d, n: (_named(1, d.real(n), d.whole(1), d.poison(n)), {"arg0": n})),
    "bound_from_memory": (F64, lambda d, n: (
        _named(0, d.real(64), d.real(64), np.array(3 * n)), {})),
    "broadcast_rank3": (F32, lambda d, n: (
        _named(0, d.real(n, 6, 8), d.real(6, 8), d.real(8), d.real(n, 1, 8), d.poison(n, 6, 8)),
        {})),
    "buffers_from_loops": (F32, lambda d, n: (
        {"arg0": d.real(n, 6), "arg1": d.poison(n, 6)}, {"n": n})),
    "cell_read_by_a_view": (F64, lambda d, n: (
        _named(0, d.real(64, 64), d.real(64, 64), d.poison(64, 64), d.poison(64, 64), d.real()),
        {})),
    "columns_only": (F32, lambda d, n: (_named(0, d.real(12, n), d.real(12, 12)), {})),
    "constant_index": (F32, lambda d, n: (_named(0, d.real(17), d.poison(1), d.real(17, 4)), {})),
    "counted_in_a_global": (F64, lambda d, n: (_named(0, d.poison(64), d.poison(64)), {})),
    "csr_power": (F64, _csr),
    "flat_memory": (F32, lambda d, n: (_named(0, d.whole(180), d.whole(120), d.whole(96)), {})),
    "halved_until_small": (F64, lambda d, n: (
        {"arg0": d.rng.uniform(1, 4000, 64), "arg1": np.zeros(64, np.int64)}, {})),
    "handed_on": (F64, lambda d, n: (_named(0, d.real(8), d.poison(8)), {})),
    "handed_on_by_affine": (F64, lambda d, n: (_named(0, d.real(8), d.poison(8)), {})),
    "handed_on_by_rows": (F64, lambda d, n: (_named(0, d.real(8), d.poison(32, 8)), {})),
    "histogram": (F32, lambda d, n: (
        {"arg0": d.whole(8), "arg1": d.whole(3 * n, low=0), "arg3": d.whole(3 * n)},
        {"arg2": 3 * n})),
    "last_of_zeros": (F64, lambda d, n: (
        _named(0, d.rng.choice([-0.0, 0.0], 96), np.array(0.5), np.array(-0.5)), {})),
    "loops_of_i32": (F32, lambda d, n: (_named(1, d.whole(n, 16), d.whole(n)), {"arg0": n})),
    "lu_solve": (F64, lambda d, n: (
        _named(1, _heavy(d, min(n, 9)), d.real(min(n, 9)), d.poison(min(n, 9)),
               d.poison(min(n, 9))), {"arg0": min(n, 9)})),
    "nests_at_both_depths": (F32, lambda d, n: (
        _named(1, d.real(n, 10), d.real(n, 10)), {"arg0": n})),
    "no_loops": (F32, lambda d, n: (_named(0, d.real(4), d.real(4)), {"arg2": 0.25 * n})),
    "many_small_factors": (F64, lambda d, n: (
        _named(0, d.real(n, 5, 5) + 9 * np.eye(5), d.real(n, 4, 4) + 9 * np.eye(4)), {})),
    "one_of_two_between_loops": (F64, lambda d, n: (
        _named(0, d.real(64), d.real(64), np.array(4)), {})),
    "red_and_black": (F32, lambda d, n: ({"arg0": d.real(n, 11)}, {"arg1": 3})),
    "relax_until_small": (F64, lambda d, n: (
        _named(3, d.real(n, 12), d.real(n, 12), d.whole(1)),
        {"arg0": n, "arg1": 40, "arg2": 0.02})),
    "row_in_place_by_a_view": (F64, lambda d, n: (_named(0, d.real(16, 120)), {})),
    "row_read_back_by_a_view": (F64, lambda d, n: (
        _named(0, d.real(64, 120), d.real(64, 120), d.real(64, 120)), {})),
    "rows_behind_a_view": (F64, lambda d, n: (_named(0, d.real(16, 40)), {})),
    "scratch_read_by_a_view": (F64, lambda d, n: (
        _named(0, d.real(4, 64, 64), d.real(64, 64)), {})),
    "seidel_in_place": (F64, lambda d, n: ({"arg2": d.real(n, 15)}, {"arg0": 3, "arg1": n})),
    "serial_after_parallel": (F32, lambda d, n: (
        _named(0, d.real(23), d.poison(23), d.poison(23)), {})),
    "short_sum_then_long": (F32, lambda d, n: (
        _named(0, d.real(32), abs(d.real(1_600_000)), d.real()), {})),
    "small_cnn": (F32, lambda d, n: (
        _named(0, d.real(2, 9, 9, 2), d.real(3, 3, 2, 3), d.real(27, 5), d.poison(2, 5)), {})),
    "statements_as_calls": (F32, lambda d, n: (
        _named(2, d.real(n, 7), d.real(n, 5), d.real(5, 7)), {"arg0": 1.5, "arg1": 0.7})),
    "sums_into_a_window": (F64, lambda d, n: (
        _named(0, d.real(200, 600), d.real(600), d.real(607)), {})),
    "swapped_buffers": (F64, lambda d, n: (_named(0, d.real(n), d.real(n)), {"arg2": 5})),
    "tensors_inside": (F32, lambda d, n: (
        _named(0, d.real(11, 6), d.real(6, 9), d.poison(11, 9)), {})),
    "table_to_an_argument": (F64, lambda d, n: (
        {"arg0": d.rng.integers(0, 9, 16), "arg1": d.real(16, 8)}, {})),
    "tickets": (F64, lambda d, n: (_named(0, np.zeros(64, np.int64), np.array(5)), {})),
    "tiled_subviews": (F32, lambda d, n: (
        _named(0, d.real(n, 10), d.real(10, 7), d.poison(n, 7)), {})),
    "total_handed_on": (F32, lambda d, n: (
        _named(0, abs(d.real(16, 100_000)), d.real()), {})),
    "total_of_rows": (F32, lambda d, n: (
        _named(0, abs(d.real(16, 100_000)), d.real()), {})),
    "triangle_update": (F64, lambda d, n: (
        _named(4, d.real(n, 13), d.real(n, 11)),
        {"arg0": n, "arg1": 11, "arg2": 1.5, "arg3": 0.7})),
    "trip_counts": (F32, lambda d, n: (_named(0, d.whole(2, low=1, high=n), d.whole(16)), {})),
    "two_matvecs": (F64, lambda d, n: (
        _named(3, d.real(n, 17), d.real(n, 17), d.poison(n), d.real(17), d.poison(n)),
        {"arg0": n, "arg1": 1.5, "arg2": 0.7})),
    "two_serial_loops": (F32, lambda d, n: (
        {"arg0": d.real(2 * n), "arg1": d.real(2 * n), "arg3": d.real(n)}, {"arg2": 3})),
    "unsigned_guards": (F64, lambda d, n: (_named(0, d.real(64), d.real(64)), {})),
    "vectors_between_loops": (F64, lambda d, n: (
        _named(0, d.real(64), d.real(64), np.array(4)), {})),
    "view_of_scratch": (F64, lambda d, n: (_named(0, d.real(32, 64), d.poison(32, 64)), {})),
    "writes_nothing": (F32, lambda d, n: (_named(0, d.real(10, 10), d.real(10)), {})),
}  # fmt: skip
"""By the file's stem: the element type of its reals, and what makes its inputs for a size."""


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.mlir").read_text()


def inputs_of(name: str, *, tiny: bool = False, seed: int = 0) -> Inputs:
    dtype, make = CASES[name]
    return Inputs(*make(Draw(seed, dtype), _TWO_SIZES[tiny]))
