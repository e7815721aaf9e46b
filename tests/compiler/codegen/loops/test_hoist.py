"""Panels that are packed before the loops around a contraction, where nothing changes them."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.ir.nesting import FORS, parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.loops.contractions.test_block_contractions import (
    NARROW,
    SIDE,
    TYPES,
    WIDE,
    blocked,
    check,
)
from tests.quick import examples

PRODUCT = """
  affine.for %i = 0 to {n} { affine.for %j = 0 to {m} { affine.for %p = 0 to {k} {
    %a = affine.load %A[%i + {row}, %p] : {array}
    %b = affine.load %B[{right}] : {array}
    %c = affine.load %C[%i, %j] : {array}
    %l = arith.mulf %a, %b : {t}
    %new = arith.addf %c, %l : {t}
    affine.store %new, %C[%i, %j] : {array}
  } } }"""

TIMES = "affine.for %t = 0 to 3 {"
TURNS = "scf.for %t = %c0 to %c3 step %c1 {"
NEVER = "scf.for %t = %c3 to %c0 step %c1 {"
FROM_A_SIZE = "scf.for %t = %c0 to %few step %c1 {"
STARTS = "affine.store %x, %C[0, 0] : {array}"
CHANGES = "affine.store %x, %B[1, 2] : {array}"

# What stands around, before and behind the product, the right subscripts, and how many of the loops
# around its right values are packed in.
CASES = {
    "once more": ((TIMES,), "", "", "%p, %j", 0),
    "something else is written before it": ((TIMES,), STARTS, "", "%p, %j", 0),
    "a loop of scf": ((TURNS,), STARTS, "", "%p, %j", 0),
    "that never runs": ((NEVER,), "", "", "%p, %j", 0),
    "as often as a size says": ((FROM_A_SIZE,), STARTS, "", "%p, %j", 0),
    "columns": ((TIMES,), STARTS, "", "%j, %p", 0),
    "two loops": ((TIMES, TURNS.replace("%t", "%u")), STARTS, "", "%p, %j", 0),
    "the outer one says which": ((TIMES, TURNS.replace("%t", "%u")), STARTS, "", "%p, %j + %t", 1),
    "the inner one says which": (
        (TIMES, TIMES.replace("%t", "%u")), STARTS, "", "%p, %j + %u", 2,
    ),
    "the inner one ends where the outer is": (
        (TIMES, "affine.for %u = 0 to #same(%t) {"), STARTS, "", "%p, %j", 1,
    ),
    "it is changed behind it": ((TIMES,), STARTS, CHANGES, "%p, %j", 1),
    "it is changed before it": ((TIMES,), CHANGES, "", "%p, %j", 1),
    "the outer loop changes it": (
        (TIMES, STARTS.replace("%C", "%B"), TIMES.replace("%t", "%u")), "", "", "%p, %j", 1,
    ),
    "a branch around": ((TIMES, "scf.if %odd {"), STARTS, "", "%p, %j", 1),
}  # fmt: skip


def text_of(case: str, kind: str, sizes: tuple[int, int, int], row: str = "0") -> str:
    n, m, k = sizes
    around, before, behind, right, _ = CASES[case]
    array = f"memref<{SIDE}x{SIDE}x{kind}>"
    lines = [*around, before, PRODUCT, behind, *("}" for each in around if each.endswith("{"))]
    body = "\n".join(lines)
    known = {"n": n, "m": m, "k": k, "row": row, "right": right, "array": array, "t": kind}
    for name, value in known.items():
        body = body.replace(f"{{{name}}}", str(value))
    return f"""
    #same = affine_map<(d) -> (d)>
    func.func @f(%C: {array}, %A: {array}, %B: {array}, %x: {kind}) attributes {{avial.no_alias}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %size = memref.dim %C, %c0 : {array}
      %few = arith.remui %size, %c3 : index
      %odd = arith.cmpf ogt, %x, %x : {kind}
      {body}
      return
    }}"""


def loops_around_packing(text: str) -> int:
    """The most loops that right values are packed in, but for that of the panels itself."""
    packing = around_packing(ir.Module.parse(text))
    return max(sum(op.name in FORS for op in around) for around in packing) - 1


def around_packing(module: ir.Module) -> list[list[ir.Operation]]:
    """What stands around each call that packs right values."""
    found: list[list[ir.Operation]] = []
    for op in operations_in(module.operation):
        if op.name == "func.call" and "pack_right" in str(op.attributes["callee"]):
            found.append([])
            around = parent_of(op)
            while around is not None:
                found[-1].append(around)
                around = parent_of(around)
    assert found
    return found


@pytest.mark.parametrize("case", CASES)
def test_how_far_packing_moves(case: str) -> None:
    context = ir.Context()
    with context:
        text = text_of(case, "f64", (37, 41, 29))
        made = blocked(text, (BlockContractions(terms=8, block=16, cpu=WIDE),), context)
        inside = CASES[case][-1]
        # Where it stays where it was, it is packed anew for each block of terms.
        stays = inside == sum(each.endswith("{") and "for" in each for each in CASES[case][0])
        assert loops_around_packing(made) == inside + stays


def test_the_same_text_each_time() -> None:
    """Wherever in memory the operations are, by which sets of them are ordered."""
    made: set[str] = set()
    contexts: list[ir.Context] = []
    for _ in range(12):
        contexts.append(ir.Context())
        with contexts[-1]:
            text = text_of("something else is written before it", "f64", (37, 41, 29))
            passes = (BlockContractions(terms=8, block=16, cpu=WIDE),)
            made.add(str(blocked(text, passes, contexts[-1])))
    assert len(made) == 1


@pytest.mark.quick("*-f64")
@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_packed_ahead_is_the_same(case: str, kind: str) -> None:
    tiles = BlockContractions(terms=8, block=16, cpu=NARROW)
    sizes = ((37, 41, 29), (4, 8, 8), (5, 9, 17), (1, 3, 2))
    check([(text_of(case, kind, each), tiles) for each in sizes], kind)


SIZES = st.sampled_from([1, 2, 3, 7, 8, 9, 12, 13, 16, 17, 25, 31, 33])


@settings(max_examples=examples(5), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_random_ones_compute_the_same_bits(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([kind for kind in sorted(TYPES) if kind[0] == "f"]))
    texts: list[tuple[str, BlockContractions]] = []
    for _ in range(8):
        case = data.draw(st.sampled_from(sorted(CASES)))
        sizes = data.draw(st.tuples(SIZES, SIZES, SIZES))
        affine = CASES[case][0][0] == TIMES  # only its variable may be a subscript
        row = data.draw(st.sampled_from(["0", "%t"] if affine else ["0"]))
        event(f"{case}, rows from {row}")
        tiles = BlockContractions(
            terms=data.draw(st.sampled_from([1, 2, 5, 8, 64])),
            block=data.draw(st.sampled_from([1, 8, 16, 64])),
            cpu=data.draw(st.sampled_from([NARROW, WIDE])),
        )
        texts.append((text_of(case, kind, sizes, row), tiles))
    check(texts, kind, special=data.draw(st.booleans()))


def test_what_a_loop_that_never_runs_would_read_is_not_read() -> None:
    """Its arrays may be smaller than its bounds say."""
    context = ir.Context()
    with context:
        text = text_of("that never runs", "f64", (37, 41, 29))
        made = ir.Module.parse(
            blocked(text, (BlockContractions(terms=8, block=16, cpu=WIDE),), context), context
        )
        for around in around_packing(made):
            assert any(op.name == "scf.if" for op in around)


@pytest.mark.parametrize(("by", "inside"), [("%c3", 0), ("%few", 2)])
def test_a_division_that_may_end_the_program_stays_where_it_is(by: str, inside: int) -> None:
    context = ir.Context()
    with context:
        text = text_of("a loop of scf", "f64", (37, 41, 29))
        factor = f"""%d = arith.divui %size, {by} : index
          %w = arith.index_cast %d : index to i64
          %z = arith.sitofp %w : i64 to f64"""
        text = text.replace(TURNS, f"{TURNS} {factor}")
        text = text.replace(
            "%l = arith.mulf %a, %b", "%s = arith.mulf %b, %z : f64\n %l = arith.mulf %a, %s"
        )
        after = blocked(text, (BlockContractions(terms=8, block=16, cpu=WIDE),), context)
        assert loops_around_packing(after) == inside


def test_a_global_is_the_same_whoever_gets_it() -> None:
    array = f"memref<{SIDE}x{SIDE}xf64>"
    text = text_of("it is changed behind it", "f64", (37, 41, 29))
    got = f"memref.get_global @table : {array}"
    text = text.replace("func.func", f"memref.global @table : {array} = uninitialized func.func")
    text = text.replace("%c0 = arith", f"%T = {got}\n %c0 = arith", 1).replace("%B[%p", "%T[%p")
    text = text.replace("affine.store %x, %B", f"%again = {got}\n affine.store %x, %again")
    context = ir.Context()
    with context:
        made = blocked(text, (BlockContractions(terms=8, block=16, cpu=WIDE),), context)
        assert loops_around_packing(made) == 2
