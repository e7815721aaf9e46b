"""Kernels that a program launches on devices, as its manifest has them.

The text of stage `gpu` -> a row for each kernel. Its PTX is the binary's, by
its name, and in the program; machine code is in the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from avial_lab.core.element_types import ITEMSIZE
from avial_lab.core.table import Table
from avial_lab.core.words import brief, format_bytes


@dataclass(frozen=True)
class KernelImage:
    """A kernel's machine code for one chip, and what ptxas says of it. registers: of a thread.
    spilled_bytes: that a thread stores to memory for want of registers. shared_bytes: of a block.
    occupancy: the part of the warps that a multiprocessor can hold which blocks of `threads` fill.
    """

    chip: str
    threads: int
    registers: int
    spilled_bytes: int
    stack_bytes: int
    shared_bytes: int
    occupancy: float
    cubin: bytes = field(repr=False, default=b"")

    def __str__(self) -> str:
        return (
            f"{self.registers} registers, {self.spilled_bytes} B spilled, "
            f"{self.shared_bytes} B shared, {self.occupancy:.0%} occupied on {self.chip}"
        )

    def __repr__(self) -> str:
        return brief(self, str(self))


@dataclass(frozen=True)
class KernelRow:
    """blocks: in x, y and z, by the numbers of iterations of loops: `ceil(j / 64)`. threads: of a
    block, 0 where the launch computes it. arguments: their types, `ptr` for an array's first
    element. shared_bytes: of a block, but for what the launch computes. images: its machine code,
    where there was an assembler.
    """

    name: str
    blocks: tuple[str, ...]
    threads: tuple[int, ...]
    arguments: tuple[str, ...]
    shared_bytes: int = 0
    images: tuple[KernelImage, ...] = ()
    launches: float = 1.0
    """By one call of its launcher, in the mean: the loops around it stay on the host."""

    @property
    def launcher(self) -> str:
        """The phase or task that launches it: letters, digits and underscores of its name."""
        return re.sub(r"_kernel(_\d+)?$", "", self.name)

    def __str__(self) -> str:
        """`S1_kernel: ceil(j / 64) x ceil(i / 16) blocks of 64 x 4 threads`."""
        axes = max(1, sum(blocks != "1" for blocks in self.blocks))
        threads = " x ".join(str(each) if each else "n" for each in self.threads[:axes])
        noun = "thread" if threads == "1" else "threads"
        blocks = " x ".join(self.blocks[:axes])
        shared = f", which share {format_bytes(self.shared_bytes)}" if self.shared_bytes else ""
        block = "block" if blocks == "1" else "blocks"
        often = f", launched {self.launches:,.0f} times" if self.launches != 1 else ""
        return f"{self.name}: {blocks} {block} of {threads} {noun}{shared}{often}"

    def __repr__(self) -> str:
        return brief(self, str(self))


def table_of(images: Iterable[tuple[str, KernelImage]]) -> Table:
    """Of kernels by their names, what ptxas says of each."""
    head = ("kernel", "chip", "registers", "spilled", "stack", "shared", "occupancy")
    rows = tuple(
        (
            name, each.chip, str(each.registers), f"{each.spilled_bytes} B",
            f"{each.stack_bytes} B", f"{each.shared_bytes} B", f"{each.occupancy:.0%}",
        )
        for name, each in images
    )  # fmt: skip
    return Table("Kernels assembled by ptxas", head, rows, frozenset(head[2:]))


_KERNEL = re.compile(
    r"^ *gpu\.func @([\w$]+)\((.*?)\)(?: workgroup\((.*?)\))? kernel attributes"
    r" \{avial\.blocks = \[(.*?)\],(?: avial\.launches = ([^ ]+) : f64,)?"
    r"(?: avial\.shared_bytes = (\d+) : i64,)?"
    r" (?:avial\.threads = array<i64|known_block_size = array<i32): ([\d, ]+)>",
    re.MULTILINE,
)


def kernels_in(gpu: str) -> tuple[KernelRow, ...]:
    """Of the kernels in that text.

    >>> head = "gpu.func @k(%A: !llvm.ptr {llvm.noalias}, %n: index) kernel attributes"
    >>> blocks = '{avial.blocks = ["ceil(j / 64)", "1", "1"]'
    >>> kernels_in(head + " " + blocks + ", known_block_size = array<i32: 64, 1, 1>} {")
    (<KernelRow k: ceil(j / 64) blocks of 64 threads>,)
    >>> loops = blocks + ", avial.launches = 4.950000e+03 : f64, known_block_size"
    >>> kernels_in(head + " " + loops + " = array<i32: 64, 1, 1>} {")
    (<KernelRow k: ceil(j / 64) blocks of 64 threads, launched 4,950 times>,)
    >>> tile = head.replace(" kernel", " workgroup(%t : memref<8x8xf64, 3>) kernel")
    >>> kernels_in(tile + " " + blocks + ", known_block_size = array<i32: 64, 1, 1>} {")
    (<KernelRow k: ceil(j / 64) blocks of 64 threads, which share 512 B>,)
    """
    return tuple(
        KernelRow(
            name,
            tuple(re.findall(r'"([^"]*)"', blocks)),
            tuple(map(int, threads.split(","))),
            tuple(kind.rpartition(".")[2] for kind in re.findall(r"%[\w$#-]+: ([!\w.]+)", given)),
            int(asked or 0)
            or sum(_nbytes(*kind) for kind in re.findall(r"memref<((?:\d+x)*)(\w+)", shared)),
            launches=float(launches or 1),
        )
        for name, given, shared, blocks, launches, asked, threads in _KERNEL.findall(gpu)
    )


def _nbytes(extents: str, element: str) -> int:
    """
    >>> _nbytes("16x16x", "f32")
    1024
    """
    return prod(map(int, extents.split("x")[:-1])) * ITEMSIZE[element]


_NEXT_MODULE = re.compile(r"\n(?=//\n// Generated by )")


def images_in(texts: Iterable[str]) -> dict[str, str]:
    r"""The PTX of each kernel, by its name, in texts that have one or, a line apart, several.

    >>> images_in(["//\n// Generated by x\n.entry a()\n//\n// Generated by x\n.entry b()"])
    {'a': '//\n// Generated by x\n.entry a()', 'b': '//\n// Generated by x\n.entry b()'}
    """
    modules = (part for text in texts for part in _NEXT_MODULE.split(text))
    named = ((re.search(r"\.entry\s+([\w$]+)", part), part) for part in modules)
    return {name[1]: part for name, part in named if name is not None}
