"""Blocks of rows: all rows once, in blocks of one size, a multiple of what threads share."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from mlir import ir
from mlir.dialects import func, memref

from avial_lab.compiler.codegen.contractions.panels import RowBlocks
from avial_lab.compiler.codegen.contractions.register_tiles import Tiles
from avial_lab.compiler.codegen.loops.index_arithmetic import loop, number
from tests.kernels.jit import Machine

FIRST = 5
TILES = Tiles(rows=8, columns=24, lanes=8, terms=512, block=64, shares=4)


def blocks_of(heights: list[int], *, last_first: bool) -> np.ndarray:
    """First and end of each block for each height; shape (heights, blocks, 2), -1 where none is."""
    context = ir.Context()
    with context, ir.Location.unknown():
        module = ir.Module.create()
        index = ir.IndexType.get()
        with ir.InsertionPoint(module.body):
            made = func.FuncOp("f", ([ir.MemRefType.get([len(heights), 40, 2], index)], []))
        with ir.InsertionPoint(made.add_entry_block()):
            for k, height in enumerate(heights):
                ends = number(FIRST), number(FIRST + height)
                blocks = RowBlocks.of(ends, TILES, last_first=last_first)
                with loop(0, blocks.count) as at:
                    for place, end in enumerate(blocks.rows(at)):
                        memref.StoreOp(end, made.arguments[0], [number(k), at, number(place)])
            func.ReturnOp([])
        machine = Machine([("f", str(module.body.operations[0]))], context)
    return machine.call("f", {"out": np.full((len(heights), 40, 2), -1)})["out"]


HEIGHTS = [1, 7, 8, 9, 31, 33, 63, 64, 65, 200, 255, 256, 257, 800, 900, 1000, 1201]


@pytest.mark.parametrize("last_first", [False, True])
def test_blocks_of_rows(last_first: bool) -> None:
    for height, found in zip(HEIGHTS, blocks_of(HEIGHTS, last_first=last_first), strict=True):
        ends = found[found[:, 0] >= 0].tolist()
        assert len(ends) % TILES.shares == 0
        ends = [(low, high) for low, high in ends[:: -1 if last_first else 1] if low < high]
        assert ends[0][0] == FIRST
        assert ends[-1][1] == FIRST + height
        assert all(end == start for (_, end), (start, _) in pairwise(ends))
        tiles = [-(-(high - low) // TILES.rows) for low, high in ends]
        assert max(tiles) * TILES.rows <= TILES.block
        assert max(tiles) - min(tiles) <= 1
        assert abs(sum(tiles[: len(tiles) // 2]) - sum(tiles[-(len(tiles) // 2) :])) <= 1


def test_nothing_has_no_blocks() -> None:
    assert (blocks_of([0, -3], last_first=False) == -1).all()
