"""Which time loops can be tiled, by which faces, and when it is worth it."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.analysis.patterns.time_tiling import TimeTiles, time_tiles
from avial_lab.compiler.analysis.polyhedral.units import Immovable

SMALL, LARGE = (64, 256), (1 << 15, 1 << 26)
"""Caches that a row of the arrays here does not fit in, and all of them do."""


def tiles(
    body: str,
    context: ir.Context,
    *,
    caches: tuple[int, int] = (4096, 32768),
    shape: str = "100x100",
) -> TimeTiles:
    kind = f"memref<{shape}xf64>"
    text = f"""func.func @f(%A: {kind}, %B: {kind}, %C: {kind}, %x: f64) {{
      affine.for %t = 0 to 30 {{ {body.replace("KIND", kind)} }}
      return }}"""
    module = ir.Module.parse(text, context)
    loop = module.body.operations[0].operation.regions[0].blocks[0].operations[0].operation
    found = time_tiles(loop, caches=caches)
    KEPT.append(module)  # its operations live as long as it does
    return found


KEPT: list[ir.Module] = []


def sweep(target: str, *reads: str, rows: str = "1 to 99") -> str:
    """A sum of reads such as `A[%i - 1, %j]` into the element of the target."""
    lines = [f"affine.for %i = {rows} {{ affine.for %j = 1 to 99 {{"]
    total = "%x"
    for k, read in enumerate(reads):
        lines.append(f"%l{k} = affine.load %{read} : KIND")
        lines.append(f"%s{k} = arith.addf {total}, %l{k} : f64")
        total = f"%s{k}"
    return "\n".join([*lines, f"affine.store {total}, %{target}[%i, %j] : KIND }} }}\n"])


THERE_AND_BACK = sweep("B", "A[%i - 1, %j]", "A[%i + 1, %j]") + sweep(
    "A", "B[%i - 1, %j]", "B[%i + 1, %j]"
)
IN_PLACE = sweep("A", "A[%i - 1, %j]", "A[%i + 1, %j]", "A[%i - 1, %j + 1]")


def faces(found: TimeTiles) -> list[tuple[int, int, tuple[int, ...]]]:
    return [(face.sign, face.time, face.shifts) for face in found.faces]


def test_two_arrays_make_diamonds(context: ir.Context) -> None:
    # Each of the two sweeps of a step moves by a slab, the second after the first.
    assert faces(tiles(THERE_AND_BACK, context)) == [(-1, 2, (0, 1)), (1, 2, (0, 1))]


def test_a_sweep_in_place_makes_blocks_of_steps(context: ir.Context) -> None:
    assert faces(tiles(IN_PLACE, context)) == [(0, 1, (0,)), (1, 1, (0,))]


def test_a_row_that_is_written_alone_is_somewhere_too(context: ir.Context) -> None:
    edge = """affine.for %j = 0 to 100 { affine.store %x, %B[0, %j] : KIND }\n"""
    found = tiles(edge + THERE_AND_BACK, context)
    assert [sweep.loops[0] is None for sweep in found.sweeps] == [True, False, False]


def test_large_slabs_are_tiled_by_lines_too(context: ir.Context) -> None:
    body = THERE_AND_BACK.replace("%j]", "%j, 0]")
    found = tiles(body, context, shape="100x100x40", caches=(4096, 1 << 18))
    assert len(found.faces) == 3


def test_a_wave_has_tiles_for_threads(context: ir.Context) -> None:
    # 160 rows of the 100 would fit, and 30 steps are one block of them. Those of a sweep in place
    # are whole blocks of rows that run side by side.
    roomy = (4096, 70_000)
    assert [face.width for face in tiles(IN_PLACE, context, caches=roomy).faces] == [4, 8]
    assert [face.width for face in tiles(THERE_AND_BACK, context, caches=roomy).faces] == [12, 12]


STAY = {
    "what wraps around": sweep("B", "A[(%i + 99) mod 100, %j]", rows="0 to 100")
    + sweep("A", "B[%i, %j]", rows="0 to 100"),
    "a column that all rows need": sweep("B", "A[%i, %j]")
    + "affine.for %j = 1 to 99 { affine.store %x, %A[%j, 0] : KIND }\n"
    + sweep("A", "B[99 - %i, %j]"),
    "a row that moves with the time": sweep("A", "A[%t, %j]"),
    "a value that is read between sweeps": THERE_AND_BACK
    + "%v = affine.load %A[3, 3] : KIND\n"
    + sweep("B", "A[%i, %j]").replace("%x", "%v"),
}


@pytest.mark.parametrize("body", STAY.values(), ids=STAY)
def test_what_stays(body: str, context: ir.Context) -> None:
    with pytest.raises(Immovable):
        tiles(body, context)


def test_arrays_that_fit_in_the_cache_stay(context: ir.Context) -> None:
    with pytest.raises(Immovable, match=r"its arrays \([\d,]+ bytes\) fit in a cache"):
        tiles(THERE_AND_BACK, context, caches=LARGE)


def test_what_each_step_has_of_its_own_is_no_reason(context: ir.Context) -> None:
    body = sweep("B", "B[%i, %j]", "A[%t, %j]")
    # A and B are 80,000 bytes each, but of A a step has one row.
    assert tiles(body, context, caches=(4096, 70_000)) is not None
    with pytest.raises(Immovable, match="fit in a cache"):
        tiles(body, context, caches=(4096, 100_000))


def test_slabs_that_do_not_fit_stay(context: ir.Context) -> None:
    with pytest.raises(Immovable, match="too few rows"):
        tiles(IN_PLACE, context, caches=SMALL)
