"""Kernels that a program launches on devices, as its manifest has them.

The text of stage `gpu` of a program of loops -> a row for each kernel. Its PTX is the binary's, by
its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from avial_lab.core.words import brief


@dataclass(frozen=True)
class KernelRow:
    """blocks: in x, y and z, by the numbers of iterations of loops: `ceil(j / 64)`. threads: of a
    block. arguments: their types, `ptr` for an array's first element. shared_bytes: of a block.
    """

    name: str
    blocks: tuple[str, ...]
    threads: tuple[int, ...]
    arguments: tuple[str, ...]
    shared_bytes: int = 0

    def __str__(self) -> str:
        """`S1_kernel: ceil(j / 64) x ceil(i / 16) blocks of 64 x 4 threads`."""
        axes = max(1, sum(blocks != "1" for blocks in self.blocks))
        threads = " x ".join(map(str, self.threads[:axes]))
        noun = "thread" if threads == "1" else "threads"
        blocks = " x ".join(self.blocks[:axes])
        return f"{self.name}: {blocks} {'block' if blocks == '1' else 'blocks'} of {threads} {noun}"

    def __repr__(self) -> str:
        return brief(self, str(self))


_KERNEL = re.compile(
    r"^ *gpu\.func @([\w$]+)\((.*)\) kernel attributes \{avial\.blocks = \[(.*?)\],"
    r" known_block_size = array<i32: ([\d, ]+)>",
    re.MULTILINE,
)


def kernels_in(gpu: str) -> tuple[KernelRow, ...]:
    """Of the kernels in that text; none of GPU tasks, whose launches it does not know.

    >>> head = "gpu.func @k(%A: !llvm.ptr {llvm.noalias}, %n: index) kernel attributes"
    >>> blocks = '{avial.blocks = ["ceil(j / 64)", "1", "1"]'
    >>> kernels_in(head + " " + blocks + ", known_block_size = array<i32: 64, 1, 1>} {")
    (<KernelRow k: ceil(j / 64) blocks of 64 threads>,)
    """
    return tuple(
        KernelRow(
            name,
            tuple(re.findall(r'"([^"]*)"', blocks)),
            tuple(map(int, threads.split(","))),
            tuple(kind.rpartition(".")[2] for kind in re.findall(r"%[\w$#-]+: ([!\w.]+)", given)),
        )
        for name, given, blocks, threads in _KERNEL.findall(gpu)
    )
