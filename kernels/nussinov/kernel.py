"""RNA folding by dynamic programming: the most pairs of bases that a sequence can form, for each of
its stretches i…j (bases 0 to 3, those that add up to 3 pair).
"""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Sizes, between, datasets


def nussinov(seq: np.ndarray, table: np.ndarray) -> None:
    """By the length of the stretch, shortest first: the other order than the kernel's."""
    n = len(seq)
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            pairs = length > 1 and seq[i] + seq[j] == 3
            apart = (table[i, i + 1 : j] + table[i + 2 : j + 1, j]).max(initial=table[i, j])
            together = table[i + 1, j - 1] + pairs
            table[i, j] = max(apart, together, table[i, j - 1], table[i + 1, j])


def _flops(s: Sizes) -> int:
    n = s["N"]
    stretches = n * (n - 1) // 2
    neighbours = n - 1
    splits = n * (n - 1) * (n - 2) // 6
    # left and below: one comparison each; inside: two additions and two comparisons, or one
    return 2 * stretches + 4 * (stretches - neighbours) + neighbours + 2 * splits


KERNEL = Kernel(
    name="nussinov",
    arguments={
        "seq": Array("N", element="i8", values=between(0, 4)),
        "table": Array("N N", Role.INOUT, values=between(0, 4)),
    },
    datasets=datasets("N", (60,), (180,), (500,), (2500,), (5500,)),
    compute=nussinov,
    flops=_flops,
    dependences="nothing is parallel as written: table[i, j] needs the element left of it and "
    "those below it; along one diagonal j - i = constant all are independent (a wavefront); k is "
    "a max reduction.",
    elements=("i32", "i64"),
)
