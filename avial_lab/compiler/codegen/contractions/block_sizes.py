"""How large the blocks, panels and tiles of contractions are, and strips of a factorisation.

Contraction -> Tiles, as the caches and registers of a CPU ask for.

Source: T. Low, F. Igual, T. Smith, E. Quintana-Orti, Analytical modeling is enough for
high-performance BLIS, TOMS 43 (2016). There a right panel has about half of L1; all of it was as
fast, and elements of C are loaded and stored half as often.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.compiler.analysis.patterns.contractions import Contraction
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.codegen.contractions.panel_solve import LINES, StripCode
from avial_lab.compiler.codegen.contractions.register_tiles import Tiles
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.machine.cpu import Cpu

SHARES = 4
"""Blocks of rows are a multiple of it, and of one size, so that two threads, or four, have the same
to do; or a multiple of the cores, and of twice as many where later blocks are the longer ones.
"""

SLOWER = {3: 1.0, 2: 1.08, 1: 1.15}
"""By the vectors that a register tile is wide: how much longer a product takes than in the widest,
which loads least for it. But a few columns of a wide tile may not be there, and take as long.
"""


@dataclass(frozen=True)
class BlockSizes:
    """`terms` and `block` are those of `Tiles`; 0: as the caches of `cpu` ask for."""

    cpu: Cpu
    terms: int = 0
    block: int = 0

    def tiles(self, found: Contraction, *, widest: bool = False) -> Tiles:
        """Register tiles as the registers allow; blocks as the caches do: a right panel is as
        large as L1, through which it goes again for each tile of a block of rows; all of a block's
        left panels fill a quarter of L2, so that the right ones have room beside them.
        `widest`: however few columns there are.
        """
        item = itemsize_in(found)
        lanes = self.cpu.lanes(item)
        columns = most_iterations(found.unit.domain, found.roles.column)
        vectors = max(SLOWER) if widest else _vectors_of(columns, lanes)
        # These of a right panel, one spread left value, and the elements themselves, of which as
        # many wait for each other's products as those take.
        rows = 8 if self.cpu.vector_registers >= 32 or vectors == 1 else 4
        columns = vectors * lanes
        right_bytes = columns * item * len(found.right)
        terms = self.terms or max(64, self.cpu.l1_bytes // right_bytes)
        nbytes = item * len(found.left)
        block = self.block or max(rows, self.cpu.l2_bytes // 4 // (terms * nbytes))
        row = found.unit.loops[found.roles.row].name
        alike = row not in (*found.space.terms_of_row.names, *found.space.columns_of_row.names)
        shares = max(SHARES, self.cpu.cores) * (1 if alike else 2)
        return Tiles(rows, columns, lanes, terms, -(-block // rows) * rows, shares)

    def lines(self, code: StripCode) -> int:
        """Of a strip at a time, so that they take a quarter of L2: what they are combined with goes
        by there as well.
        """
        lanes = self.cpu.lanes(4)
        most = self.cpu.l2_bytes // 4 // max(code.line_bytes, 1)
        return min(LINES, max(lanes, most // lanes * lanes))


def _vectors_of(columns: int, lanes: int) -> int:
    """How many vectors wide a register tile is, for so many columns.

    >>> [_vectors_of(columns, 8) for columns in (1200, 56, 32, 24, 16, 8)]
    [3, 1, 2, 3, 2, 1]
    """
    return min(SLOWER, key=lambda wide: -(-columns // (wide * lanes)) * wide * SLOWER[wide])


def described(found: Contraction, tiles: Tiles) -> str:
    """In which blocks."""
    nbytes, right_bytes = (
        tiles.terms * itemsize_in(found) * len(values) for values in (found.left, found.right)
    )
    return (
        f"in register tiles of {tiles.rows} × {tiles.columns}; blocks of {tiles.terms} terms "
        f"({_kib(right_bytes * tiles.columns)} per packed right panel, streamed through L1) and "
        f"{tiles.block} rows ({_kib(nbytes * tiles.block)} of left rows, in L2)"
    )


def itemsize_in(found: Contraction) -> int:
    """Bytes of the largest values that its tiles hold."""
    return max(itemsize_of(v.type) for v in (*found.left, *found.right, found.stored))


def _kib(nbytes: int) -> str:
    return f"{nbytes / 1024:.3g} KiB"
