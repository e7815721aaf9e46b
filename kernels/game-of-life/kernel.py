"""Conway's game of life on a torus, there and back between two boards: 2 · TSTEPS generations."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, between, datasets, size


def game_of_life(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    for _ in range(tsteps):
        B[...] = _next(A)
        A[...] = _next(B)


def _next(cells: np.ndarray) -> np.ndarray:
    moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    neighbours = sum(np.roll(cells, move, (0, 1)) for move in moves)
    result: np.ndarray = (neighbours == 3) | ((neighbours == 2) & (cells == 1))
    return result


KERNEL = Kernel(
    name="game-of-life",
    arguments={
        "tsteps": size("TSTEPS"),
        "A": Array("ROWS COLS", Role.INOUT, values=between(0, 2)),
        "B": Array("ROWS COLS", Role.SCRATCH),
    },
    datasets=datasets(
        "TSTEPS ROWS COLS",
        (10, 30, 40),
        (20, 90, 100),
        (50, 250, 260),
        (200, 1300, 1400),
        (500, 2800, 3000),
    ),
    compute=game_of_life,
    flops=lambda s: 20 * s["TSTEPS"] * s["ROWS"] * s["COLS"],
    dependences="i and j are parallel in both nests; t is sequential, a step reads the eight "
    "neighbours of the step before, round the edges: halos with corners, first and last rank are "
    "neighbours.",
    elements=("i32", "i64"),
    sweep=lambda s: s["TSTEPS"] * 4 * s["ROWS"] * s["COLS"],
)
