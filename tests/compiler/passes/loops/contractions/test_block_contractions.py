"""Contractions in blocks compute the same bits, and nothing else is put into blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests
from avial_lab.compiler.analysis.patterns import factorisations
from avial_lab.compiler.analysis.patterns.contractions import contraction_in
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.units import units_of
from avial_lab.compiler.codegen.contractions import block_sizes
from avial_lab.compiler.ir.operations import functions_in
from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from avial_lab.compiler.passes.loops.storage.expand_arrays import ExpandArrays
from avial_lab.compiler.passes.loops.storage.expand_scalars import ExpandScalars
from avial_lab.machine.cpu import Cpu
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.kernels.jit import Machine
from tests.quick import examples

NARROW = Cpu(16, 16, fma=True)
WIDE = Cpu(64, 32, fma=True)
TYPES = {"f64": np.float64, "f32": np.float32, "i32": np.int32, "i64": np.int64}

FORMS = {
    # rows, columns and terms are n, m, k; {lo} and {hi} are bounds of the terms, {j0} and {j1} of
    # the columns, with %i in scope.
    "product": ("0", "{k}", "0", "{m}", "%A[%i, %p]", "%B[%p, %j]", "fma"),
    "transposed": ("0", "{k}", "0", "{m}", "%A[%p, %i]", "%B[%j, %p]", "fma"),
    "lower": ("0", "{k}", "0", "#up(%i)", "%A[%i, %p]", "%B[%p, %j]", "fma"),
    "upper": ("0", "{k}", "#same(%i)", "{m}", "%A[%i, %p]", "%B[%p, %j]", "fma"),
    "terms before": ("0", "#up(%i)", "0", "{m}", "%A[%i, %p]", "%B[%p, %j]", "fma"),
    "terms after": ("#up(%i)", "{k}", "0", "{m}", "%A[%p, %i]", "%B[%p, %j]", "fma"),
    "a band": ("#same(%i)", "#far(%i)", "0", "{m}", "%A[%i, %p]", "%B[%p, %j]", "fma"),
    "both": ("0", "#up(%i)", "0", "#up(%i)", "%A[%i, %p]", "%B[%p, %j]", "fma"),
    "shifted": ("1", "{k}", "1", "{m}", "%A[%i, %p - 1]", "%B[%p - 1, %j]", "fma"),
    "least sum": ("0", "{k}", "0", "{m}", "%A[%i, %p]", "%B[%p, %j]", "least"),
    "scaled": ("0", "{k}", "0", "{m}", "%A[%i, %p]", "%B[%p, %j]", "scaled"),
    # Packed by vectors of rows and of terms, of triangles too; and what no vector can be loaded of.
    "turned lower": ("0", "{k}", "0", "#up(%i)", "%A[%p, %i]", "%B[%j, %p]", "scaled"),
    "turned terms": ("0", "#up(%i)", "0", "{m}", "%A[%p, %i]", "%B[%j, %p]", "fma"),
    "turned upper": ("#same(%i)", "{k}", "#same(%i)", "{m}", "%A[%p, %i]", "%B[%j, %p]", "fma"),
    "backwards": ("0", "#up(%i)", "0", "{m}", "%A[%i, 69 - %p]", "%B[%p, 69 - %j]", "fma"),
}  # fmt: skip

SIDE = 70
"""Of the arrays, whatever the loops use of them."""

BODIES = {
    "f": {
        "fma": "%new = math.fma %a, %b, %c : {t}",
        "least": "%s = arith.addf %a, %b : {t}\n %new = arith.minimumf %c, %s : {t}",
        "scaled": "%l = arith.mulf %a, %x : {t}\n %p1 = arith.mulf %l, %b : {t}\n"
        " %new = arith.addf %c, %p1 : {t}",
    },
    "i": {
        "fma": "%s = arith.muli %a, %b : {t}\n %new = arith.addi %c, %s : {t}",
        "least": "%s = arith.addi %a, %b : {t}\n %new = arith.minsi %c, %s : {t}",
        "scaled": "%l = arith.muli %a, %x : {t}\n %p1 = arith.muli %l, %b : {t}\n"
        " %new = arith.subi %c, %p1 : {t}",
    },
}


def text_of(form: str, kind: str, sizes: tuple[int, int, int], order: str = "ijp") -> str:
    n, m, k = sizes
    p0, p1, j0, j1, left, right, body = (s.format(m=m, k=k) for s in FORMS[form])
    array = f"memref<{SIDE}x{SIDE}x{kind}>"
    loops = {
        "i": f"affine.for %i = 0 to {n} {{",
        "j": f"affine.for %j = {j0} to {j1} {{",
        "p": f"affine.for %p = {p0} to {p1} {{",
    }
    opened = "\n".join(loops[letter] for letter in order)
    return f"""
    #same = affine_map<(d) -> (d)>
    #up = affine_map<(d) -> (d + 1)>
    #far = affine_map<(d) -> (d + {k})>
    func.func @f(%C: {array}, %A: {array}, %B: {array}, %x: {kind}) attributes {{avial.no_alias}} {{
      affine.for %i = 0 to {n} {{ affine.for %j = 0 to {m} {{
        %c = affine.load %C[%i, %j] : {array}
        %d = {"arith.addf" if kind[0] == "f" else "arith.addi"} %c, %x : {kind}
        affine.store %d, %C[%i, %j] : {array}
      }} }}
      {opened}
        %a = affine.load {left} : {array}
        %b = affine.load {right} : {array}
        %c = affine.load %C[%i, %j] : {array}
        {BODIES[kind[0]][body].format(t=kind)}
        affine.store %new, %C[%i, %j] : {array}
      }} }} }}
      return
    }}"""


def blocked(text: str, passes: Sequence[Pass], context: ir.Context) -> str:
    module = ir.Module.parse(text, context)
    run_passes(module.operation, passes)
    return str(module)


def values(kind: str, seed: int, special: bool) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    dtype = TYPES[kind]
    made: dict[str, object] = {}
    for name in "CAB":
        if kind[0] == "f":
            array = rng.standard_normal((SIDE, SIDE)).astype(dtype)
            if special:
                odd = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-310, 3e38], dtype)
                array = np.where(
                    rng.random(array.shape) < 0.02, rng.choice(odd, array.shape), array
                )
        else:
            array = rng.integers(-1000, 1000, (SIDE, SIDE)).astype(dtype)
        made[name] = array
    return made | {"x": dtype(3)}


def check(
    texts: list[tuple[str, BlockContractions]],
    kind: str,
    *,
    special: bool = False,
    passes: Sequence[Pass] = (),
) -> int:
    """How many texts were put into blocks; all of them compute the same bits as before."""
    context = ir.Context()
    after = [blocked(text, passes or (each,), context) for text, each in texts]
    machine = Machine(
        [(f"before{k}", text) for k, (text, _) in enumerate(texts)]
        + [(f"after{k}", text) for k, text in enumerate(after)],
        context,
    )
    for k, (text, _) in enumerate(texts):
        arguments = values(kind, k, special)
        with np.errstate(all="ignore"):
            old, new = (machine.call(f"{when}{k}", arguments) for when in ("before", "after"))
        for name in "CAB":
            before, now = old[name], new[name]
            same = (before == now) & (np.signbit(before) == np.signbit(now))
            same |= (before != before) & (now != now)  # which NaN it is, nobody promises
            assert same.all(), (name, np.argwhere(~same)[:5], text)
    return sum("avial.parallel" in text for text in after)


@pytest.mark.quick("*-f64-cpu1", "*-f32-cpu2")
@pytest.mark.parametrize(
    ("kind", "cpu"), [("f64", WIDE), ("f64", NARROW), ("f32", WIDE), ("i32", WIDE)]
)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_put_into_blocks(form, kind, cpu):
    text = text_of(form, kind, (37, 41, 29))
    assert check([(text, BlockContractions(terms=8, block=16, cpu=cpu))], kind) == 1


ORDERS = ["".join(letters) for letters in permutations("ijp")]

SIZES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 33])


@settings(max_examples=examples(5), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_blocks_compute_the_same_bits(data):
    kind = data.draw(st.sampled_from(sorted(TYPES)))
    texts = []
    for _ in range(8):
        form = data.draw(st.sampled_from(sorted(FORMS)))
        order = data.draw(
            st.sampled_from(
                ["ijp", "ipj"]
                if "#" in str(FORMS[form])
                else ["ijp", "ipj", "jip", "pij", "pji", "jpi"]
            )
        )
        sizes = data.draw(st.tuples(SIZES, SIZES, SIZES))
        tiles = BlockContractions(
            terms=data.draw(st.sampled_from([1, 2, 5, 8, 64])),
            block=data.draw(st.sampled_from([1, 8, 16, 64])),
            cpu=data.draw(st.sampled_from([NARROW, WIDE])),
        )
        texts.append((text_of(form, kind, sizes, order), tiles))
    count = check(texts, kind, special=data.draw(st.booleans()))
    event(f"{count} of {len(texts)} in blocks")


RAGGED = ("terms before", "terms after", "a band", "both", "turned terms", "turned upper")


@pytest.mark.quick("*-f64")
@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize("form", RAGGED)
def test_terms_that_a_row_has_not_leave_its_elements_alone(form, kind):
    """Though other rows of its tile have them, and they are no numbers, or infinite, or make +0."""
    tiles = BlockContractions(terms=8, block=16, cpu=NARROW)
    texts = [(text_of(form, kind, sizes), tiles) for sizes in ((9, 13, 11), (33, 26, 35))]
    assert check(texts, kind, special=True) == len(texts)


@pytest.mark.parametrize("cpu", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("form", ["product", "transposed", "scaled"])
def test_few_columns_are_in_narrow_tiles(form, cpu):
    """As wide as there are columns, or nearly so; left values stay where they are."""
    lanes = cpu.lanes(8)
    tiles = BlockContractions(terms=8, block=16, cpu=cpu)
    texts = [
        (text_of(form, "f64", (37, columns, 29)), tiles)
        for columns in (2 * lanes - 1, 2 * lanes, 4 * lanes, 9 * lanes, 10 * lanes + 1)
        if columns <= SIDE
    ]
    assert check(texts, "f64", special=True) == len(texts)


@pytest.mark.parametrize(
    ("columns", "tile", "packed"),
    [(4, (8, 4), False), (8, (4, 8), False), (20, (8, 4), False), (57, (4, 12), True)],
)
def test_the_tile_that_leaves_the_fewest_columns_empty(columns, tile, packed):
    """Of a machine with 16 registers of four elements."""
    text = text_of("product", "f64", (37, columns, 29))
    made = blocked(text, (BlockContractions(terms=8, block=16, cpu=Cpu(32, 16)),), ir.Context())
    assert tile_in(made) == tile
    assert ("pack_left" in made) == packed


def test_columns_that_fill_one_vector_are_enough():
    """Where what is added to them does not stay in L2; else jam-in-registers has them."""
    text = text_of("product", "f64", (70, 4, 70)).replace("70", "700")
    sizes = BlockContractions(cpu=Cpu(32, 16, l2_bytes=32 << 10))
    assert tile_in(blocked(text, (sizes,), ir.Context())) == (8, 4)
    text = text.replace("to 4", "to 3")
    assert "register tiles" not in blocked(text, (sizes,), ir.Context())


@pytest.mark.parametrize(
    ("form", "cores", "shares"),
    [
        ("product", 1, 4), ("product", 12, 12), ("lower", 2, 8), ("lower", 12, 24),
        ("terms before", 12, 24),
    ],
)  # fmt: skip
def test_blocks_for_all_cores(form, cores, shares):
    """Twice as many where later blocks have more to do than others."""
    context = ir.Context()
    module = ir.Module.parse(text_of(form, "f64", (37, 31, 29)), context)
    with context:
        scop = read_scop(list(free_nests(functions_in(module.operation)[0]))[1])
        found = contraction_in(scop, units_of(scop, apart=True))
        assert found is not None
        assert block_sizes.BlockSizes(Cpu(cores=cores)).tiles(found).shares == shares


def tile_in(made: str) -> tuple[int, int]:
    """Rows and columns, as is told; MLIR prints the sign between them byte by byte."""
    found = re.search(r"in register tiles of (\d+) \\C3\\97 (\d+);", made)
    assert found
    return int(found[1]), int(found[2])


REFUSED = {
    "what is added was stored by an earlier row": """
      affine.for %i = 1 to 40 { affine.for %j = 0 to 40 { affine.for %p = 0 to 40 {
        %a = affine.load %A[%i, %p] : memref<70x70xf64>
        %b = affine.load %C[%i - 1, %j] : memref<70x70xf64>
        %c = affine.load %C[%i, %j] : memref<70x70xf64>
        %new = math.fma %a, %b, %c : f64
        affine.store %new, %C[%i, %j] : memref<70x70xf64> } } }""",
    "one place for several elements": """
      affine.for %i = 0 to 30 { affine.for %j = 0 to 30 { affine.for %p = 0 to 40 {
        %a = affine.load %A[%i, %p] : memref<70x70xf64>
        %b = affine.load %B[%p, %j] : memref<70x70xf64>
        %c = affine.load %C[0, %i + %j] : memref<70x70xf64>
        %new = math.fma %a, %b, %c : f64
        affine.store %new, %C[0, %i + %j] : memref<70x70xf64> } } }""",
    "a value of row, column and term": """
      affine.for %i = 0 to 30 { affine.for %j = 0 to 30 { affine.for %p = 0 to 30 {
        %a = affine.load %A[%i + %j, %p] : memref<70x70xf64>
        %b = affine.load %B[%p, %j] : memref<70x70xf64>
        %c = affine.load %C[%i, %j] : memref<70x70xf64>
        %new = math.fma %a, %b, %c : f64
        affine.store %new, %C[%i, %j] : memref<70x70xf64> } } }""",
    "columns that jump": """
      affine.for %i = 0 to 30 { affine.for %j = 0 to 30 { affine.for %p = 0 to 30 {
        %a = affine.load %A[%i, %p] : memref<70x70xf64>
        %b = affine.load %B[%p, %j] : memref<70x70xf64>
        %c = affine.load %C[2 * %i, 2 * %j] : memref<70x70xf64>
        %new = math.fma %a, %b, %c : f64
        affine.store %new, %C[2 * %i, 2 * %j] : memref<70x70xf64> } } }""",
    "columns that go backwards": """
      affine.for %i = 0 to 30 { affine.for %j = 0 to 30 { affine.for %p = 0 to 30 {
        %a = affine.load %A[%i, %p] : memref<70x70xf64>
        %b = affine.load %B[%p, %j] : memref<70x70xf64>
        %c = affine.load %C[%i, 29 - %j] : memref<70x70xf64>
        %new = math.fma %a, %b, %c : f64
        affine.store %new, %C[%i, 29 - %j] : memref<70x70xf64> } } }""",
    "columns that go backwards through rows": """
      affine.for %i = 0 to 30 { affine.for %j = 0 to 100 { affine.for %p = 0 to 30 {
        %a = affine.load %A[%i, %p] : memref<70x70xf64>
        %b = affine.load %B[%p, %j floordiv 2] : memref<70x70xf64>
        %c = affine.load
          %C[%i * 2 + (99 - %j) floordiv 70, (99 - %j) mod 70] : memref<70x70xf64>
        %new = math.fma %a, %b, %c : f64
        affine.store %new,
          %C[%i * 2 + (99 - %j) floordiv 70, (99 - %j) mod 70] : memref<70x70xf64> } } }""",
    "a matrix and a vector": """
      affine.for %i = 0 to 30 { affine.for %p = 0 to 30 {
        %a = affine.load %A[%i, %p] : memref<70x70xf64>
        %b = affine.load %B[%p, 0] : memref<70x70xf64>
        %c = affine.load %C[%i, 0] : memref<70x70xf64>
        %new = math.fma %a, %b, %c : f64
        affine.store %new, %C[%i, 0] : memref<70x70xf64> } }""",
}  # fmt: skip


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_no_contraction_stays_as_it_is(body):
    array = "memref<70x70xf64>"
    head = f"func.func @f(%C: {array}, %A: {array}, %B: {array}, %x: f64)"
    text = f"{head} attributes {{avial.no_alias}} {{ {body}\n return }}"
    assert check([(text, BlockContractions(terms=8, block=16, cpu=WIDE))], "f64") == 0


def thin(columns: int, right: str, order: str = "ijp", terms: int = 400) -> str:
    loops = {"i": "%i = 0 to 4000", "j": f"%j = 0 to {columns}", "p": f"%p = 0 to {terms}"}
    opened = " ".join(f"affine.for {loops[letter]} {{" for letter in order)
    one, other = f"memref<4000x{terms}xf64>", f"memref<{terms}x{terms}xf64>"
    return f"""
    func.func @f(%C: {one}, %A: {one}, %B: {other}) attributes {{avial.no_alias}} {{
      {opened}
        %a = affine.load %A[%i, %p] : {one}
        %b = affine.load %B{right} : {other}
        %c = affine.load %C[%i, %j] : {one}
        %new = math.fma %a, %b, %c : f64
        affine.store %new, %C[%i, %j] : {one}
      }} }} }}
      return
    }}"""


@pytest.mark.parametrize(
    ("text", "put"),
    [
        (thin(12, "[%p, %j]"), False),
        (thin(16, "[%p, %j]"), False),
        (thin(17, "[%p, %j]"), True),
        (thin(12, "[%j, %p]"), True),
        (thin(12, "[%p, %j]", terms=4000), True),
        (thin(4, "[%p, %j]", order="ipj"), False),
    ],
    ids=["short", "four vectors", "too long", "apart", "more than L2", "blocks of terms"],
)
def test_rows_that_registers_hold_stay_as_they_are(text, put):
    after = blocked(text, (BlockContractions(cpu=Cpu(32, 16, fma=True)),), ir.Context())
    assert ("avial.parallel" in after) == put


LU = """
  affine.for %i = 0 to {n} {
    affine.for %j = 0 to #same(%i) {
      affine.for %k = 0 to #same(%j) {
        %a = affine.load %C[%i, %j] : memref<70x70xf64>
        %l = affine.load %C[%i, %k] : memref<70x70xf64>
        %u = affine.load %C[%k, %j] : memref<70x70xf64>
        %m = arith.negf %l : f64
        %new = math.fma %m, %u, %a : f64
        affine.store %new, %C[%i, %j] : memref<70x70xf64>
      }
      %a = affine.load %C[%i, %j] : memref<70x70xf64>
      %pivot = affine.load %C[%j, %j] : memref<70x70xf64>
      %q = arith.divf %a, %pivot : f64
      affine.store %q, %C[%i, %j] : memref<70x70xf64>
    }
    affine.for %j = #same(%i) to {n} { affine.for %k = 0 to #same(%i) {
      %a = affine.load %C[%i, %j] : memref<70x70xf64>
      %l = affine.load %C[%i, %k] : memref<70x70xf64>
      %u = affine.load %C[%k, %j] : memref<70x70xf64>
      %m = arith.negf %l : f64
      %new = math.fma %m, %u, %a : f64
      affine.store %new, %C[%i, %j] : memref<70x70xf64> } } }"""

CHOLESKY = """
  affine.for %i = 0 to {n} {
    affine.for %j = 0 to #same(%i) {
      affine.for %k = 0 to #same(%j) {
        %a = affine.load %C[%i, %j] : memref<70x70xf64>
        %l = affine.load %C[%i, %k] : memref<70x70xf64>
        %r = affine.load %C[%j, %k] : memref<70x70xf64>
        %m = arith.negf %l : f64
        %new = math.fma %m, %r, %a : f64
        affine.store %new, %C[%i, %j] : memref<70x70xf64>
      }
      %a = affine.load %C[%i, %j] : memref<70x70xf64>
      %pivot = affine.load %C[%j, %j] : memref<70x70xf64>
      %q = arith.divf %a, %pivot : f64
      affine.store %q, %C[%i, %j] : memref<70x70xf64>
    }
    affine.for %k = 0 to #same(%i) {
      %a = affine.load %C[%i, %i] : memref<70x70xf64>
      %l = affine.load %C[%i, %k] : memref<70x70xf64>
      %m = arith.negf %l : f64
      %new = math.fma %m, %l, %a : f64
      affine.store %new, %C[%i, %i] : memref<70x70xf64>
    }
    %d = affine.load %C[%i, %i] : memref<70x70xf64>
    %p = math.absf %d : f64
    %root = math.sqrt %p : f64
    affine.store %root, %C[%i, %i] : memref<70x70xf64> }"""

SOLVE = """
  affine.for %i = 0 to {n} { affine.for %j = 0 to 40 {
    affine.for %k = 0 to #same(%i) {
      %a = affine.load %C[%i, %j] : memref<70x70xf64>
      %l = affine.load %A[%i, %k] : memref<70x70xf64>
      %u = affine.load %C[%k, %j] : memref<70x70xf64>
      %m = arith.negf %l : f64
      %new = math.fma %m, %u, %a : f64
      affine.store %new, %C[%i, %j] : memref<70x70xf64>
    }
    %a = affine.load %C[%i, %j] : memref<70x70xf64>
    %pivot = affine.load %A[%i, %i] : memref<70x70xf64>
    %q = arith.divf %a, %pivot : f64
    affine.store %q, %C[%i, %j] : memref<70x70xf64> } }"""

PATHS = """
  affine.for %k = 0 to {n} { affine.for %i = 0 to {n} { affine.for %j = 0 to {n} {
    %a = affine.load %C[%i, %j] : memref<70x70xf64>
    %l = affine.load %C[%i, %k] : memref<70x70xf64>
    %u = affine.load %C[%k, %j] : memref<70x70xf64>
    %s = arith.addf %l, %u : f64
    %new = arith.minimumf %a, %s : f64
    affine.store %new, %C[%i, %j] : memref<70x70xf64> } } }"""

ORTHOGONAL = """
  affine.for %k = 0 to {n} {
    affine.store %x, %B[%k, %k] : memref<70x70xf64>
    affine.for %i = 0 to 66 {
      %r = affine.load %B[%k, %k] : memref<70x70xf64>
      %a = affine.load %C[%i, %k] : memref<70x70xf64>
      %sum = math.fma %a, %a, %r : f64
      affine.store %sum, %B[%k, %k] : memref<70x70xf64>
    }
    affine.for %i = 0 to 66 {
      %r = affine.load %B[%k, %k] : memref<70x70xf64>
      %a = affine.load %C[%i, %k] : memref<70x70xf64>
      %q = arith.divf %a, %r : f64
      affine.store %q, %A[%i, %k] : memref<70x70xf64>
    }
    affine.for %j = #up(%k) to {n} {
      affine.store %x, %B[%k, %j] : memref<70x70xf64>
      affine.for %i = 0 to 66 {
        %r = affine.load %B[%k, %j] : memref<70x70xf64>
        %q = affine.load %A[%i, %k] : memref<70x70xf64>
        %a = affine.load %C[%i, %j] : memref<70x70xf64>
        %sum = math.fma %q, %a, %r : f64
        affine.store %sum, %B[%k, %j] : memref<70x70xf64>
      }
      affine.for %i = 0 to 66 {
        %a = affine.load %C[%i, %j] : memref<70x70xf64>
        %q = affine.load %A[%i, %k] : memref<70x70xf64>
        %r = affine.load %B[%k, %j] : memref<70x70xf64>
        %m = arith.negf %q : f64
        %rest = math.fma %m, %r, %a : f64
        affine.store %rest, %C[%i, %j] : memref<70x70xf64>
      } } }"""

CHANGING = """
  affine.for %k = 0 to {n} { affine.for %i = 0 to {n} { affine.for %j = 0 to {n} {
    %a = affine.load %C[%i, %j] : memref<70x70xf64>
    %l = affine.load %A[%i, %k] : memref<70x70xf64>
    %u = affine.load %B[%k, %j] : memref<70x70xf64>
    %new = math.fma %l, %u, %a : f64
    affine.store %new, %C[%i, %j] : memref<70x70xf64>
    %again = affine.load %A[%i, %k] : memref<70x70xf64>
    %next = arith.addf %again, %x : f64
    affine.store %next, %A[%i, %k] : memref<70x70xf64> } } }"""


def factorisation(body: str, n: int) -> str:
    array = "memref<70x70xf64>"
    head = f"func.func @f(%C: {array}, %A: {array}, %B: {array}, %x: f64)"
    same = "#same = affine_map<(d) -> (d)>\n#up = affine_map<(d) -> (d + 1)>"
    text = body.replace("{n}", str(n))
    return f"{same}\n{head} attributes {{avial.no_alias}} {{\n{text}\n return }}"


@pytest.mark.parametrize(
    "body",
    [LU, CHOLESKY, SOLVE, PATHS, ORTHOGONAL],
    ids=["lu", "cholesky", "solve", "paths", "orthogonal"],
)
def test_factorisations_go_in_blocks_of_steps(body):
    texts = [
        (factorisation(body, n), BlockContractions(terms=8, block=16, steps=steps, cpu=cpu))
        for n, steps, cpu in (
            (67, 16, WIDE),
            (70, 32, NARROW),
            (33, 16, NARROW),
            (65, 17, WIDE),
            (65, 16, WIDE),
        )
    ]
    assert check(texts, "f64") == len(texts)


@pytest.mark.parametrize("body", [LU, CHOLESKY], ids=["lu", "cholesky"])
@pytest.mark.parametrize("lines", [8, 17])
def test_strips_of_several_lines_at_a_time(monkeypatch, body, lines):
    monkeypatch.setattr(block_sizes, "LINES", lines)
    texts = [(factorisation(body, n), BlockContractions(steps=16, cpu=WIDE)) for n in (33, 67)]
    context = ir.Context()
    made = blocked(*[(text, (each,)) for text, each in texts][1], context)
    assert f"memref<16x{lines}xf64>" in made
    assert "avial.independent" in made
    assert check(texts, "f64", special=True) == len(texts)


@pytest.mark.parametrize(("n", "width"), [(270, 32), (1000, 56), (2100, 128)])
def test_few_steps_are_in_narrow_blocks_where_panels_have_none_of_their_own(n, width):
    text = factorisation(PATHS, n).replace("70x70", f"{n}x{n}")
    made = blocked(text, (BlockContractions(cpu=WIDE),), ir.Context())
    assert f"memref<{width}x?xf64>" in made  # what is saved of each step


def test_narrow_blocks_compute_the_same_bits(monkeypatch):
    monkeypatch.setattr(factorisations, "NARROWEST", 16)
    monkeypatch.setattr(factorisations, "BLOCKS", 4)
    sizes = BlockContractions(terms=8, block=16, steps=33, cpu=WIDE)
    texts = [(factorisation(PATHS, n), sizes) for n in (66, 67, 70)]
    assert "memref<16x?xf64>" in blocked(texts[0][0], (sizes,), ir.Context())
    assert check(texts, "f64", special=True) == len(texts)


def test_what_changes_from_column_to_column_cannot_be_saved():
    assert check([(factorisation(CHANGING, 67), BlockContractions(steps=16, cpu=WIDE))], "f64") == 0


@pytest.mark.parametrize(("n", "lines"), [(32, 64), (33, 64), (37, 8), (47, 7), (48, 16), (65, 1)])
@pytest.mark.parametrize("low", [0, 3])
def test_columns_take_all_steps_of_a_block_at_once(monkeypatch, n, lines, low):
    """In copies of rows 3 to 65, say; sums are in the program's order, whatever stands in them."""
    monkeypatch.setattr(block_sizes, "LINES", lines)
    text = factorisation(ORTHOGONAL.replace("%i = 0", f"%i = {low}"), n)
    made = blocked(text, (BlockContractions(steps=16, cpu=WIDE),), ir.Context())
    assert f"memref<{66 - low}x{lines}xf64>" in made  # columns that every step goes through
    assert f"memref<16x{66 - low}xf64>" in made  # the block's, turned over
    assert "avial.parallel" in made
    assert check([(text, BlockContractions(steps=16, cpu=WIDE))], "f64", special=True) == 1


@pytest.mark.parametrize(("l2", "lines"), [(1 << 20, 64), (66 * 8 * 4 * 33, 32), (66 * 8 * 16, 16)])
def test_as_many_columns_at_a_time_as_a_quarter_of_the_cache_holds(l2, lines):
    text = factorisation(ORTHOGONAL, 65)
    sizes = BlockContractions(steps=16, cpu=replace(WIDE, l2_bytes=l2))
    assert f"memref<66x{lines}xf64>" in blocked(text, (sizes,), ir.Context())


def test_columns_that_no_cache_holds_go_step_by_step():
    text = factorisation(ORTHOGONAL, 65)
    sizes = BlockContractions(steps=16, cpu=replace(WIDE, l2_bytes=66 * 8 * 16 - 1))
    made = blocked(text, (sizes,), ir.Context())
    assert "memref.alloc" not in made
    assert "avial.parallel" not in made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%a = affine.load %C[%i, %j]", "%a = affine.load %C[%i, %j + 1]"),
        ("%a = affine.load %C[%i, %j]", "%a = affine.load %C[%i, %j - 1]"),
        ("%a = affine.load %C[%i, %j]", "%a = affine.load %C[%j, %i]"),
    ],
    ids=["the next column", "the column before", "rows"],
)
def test_columns_that_need_others_go_step_by_step(before, after):
    assert before in ORTHOGONAL
    text = factorisation(ORTHOGONAL.replace(before, after), 65)
    made = blocked(text, (BlockContractions(steps=16, cpu=WIDE),), ir.Context())
    check([(text, BlockContractions(steps=16, cpu=WIDE))], "f64")
    assert "avial.parallel" not in made


def test_few_steps_are_left_alone():
    assert check([(factorisation(LU, 63), BlockContractions(steps=32, cpu=WIDE))], "f64") == 0


SYMMETRIC = """
  affine.for %i = 0 to {n} { affine.for %j = 0 to {m} {
    %sum = affine.for %k = 0 to #same(%i) iter_args(%acc = %x) -> ({t}) {
      %bi = affine.load %B[%i, %j] : memref<70x70x{t}>
      %a = affine.load %A[%i, %k] : memref<70x70x{t}>
      %c = affine.load %C[%k, %j] : memref<70x70x{t}>
      %up = math.fma %bi, %a, %c : {t}
      affine.store %up, %C[%k, %j] : memref<70x70x{t}>
      %bk = affine.load %B[%k, %j] : memref<70x70x{t}>
      %next = math.fma %bk, %a, %acc : {t}
      affine.yield %next : {t}
    }
    %c = affine.load %C[%i, %j] : memref<70x70x{t}>
    %both = arith.addf %c, %sum : {t}
    affine.store %both, %C[%i, %j] : memref<70x70x{t}>
  } }"""

CARRIED = """
  affine.for %i = 1 to {n} { affine.for %j = 2 to {m} {
    %sum = affine.for %k = 0 to 29 iter_args(%acc = %x) -> ({t}) {
      %a = affine.load %A[%i, %k] : memref<70x70x{t}>
      %b = affine.load %B[%k, %j] : memref<70x70x{t}>
      %next = math.fma %a, %b, %acc : {t}
      affine.yield %next : {t}
    }
    affine.store %sum, %C[%i, %j] : memref<70x70x{t}>
  } }"""


@pytest.mark.quick("symmetric-f32", "carried-f64")
@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize("body", [SYMMETRIC, CARRIED], ids=["symmetric", "carried"])
def test_sums_that_a_loop_carries_are_put_into_blocks(body, kind):
    """Each has an element of its own for every row and column, and is a contraction with that."""
    array = f"memref<70x70x{kind}>"
    head = f"func.func @f(%C: {array}, %A: {array}, %B: {array}, %x: {kind})"
    same = "#same = affine_map<(d) -> (d)>"
    texts = []
    for n, m in ((3, 4), (4, 9), (9, 8), (33, 47), (32, 49), (70, 70)):
        sized = body.replace("{n}", str(n)).replace("{m}", str(m)).replace("{t}", kind)
        texts.append(f"{same}\n{head} attributes {{avial.no_alias}} {{\n{sized}\n return }}")
    for cpu in (WIDE, NARROW):
        tiles = BlockContractions(terms=8, block=16, cpu=cpu)
        passes = (ExpandScalars(blocks=True), tiles)
        assert check([(text, tiles) for text in texts], kind, passes=passes) == len(texts)


BATCH = """
  %sum = memref.alloca() : memref<{m}x{t}>
  affine.for %r = 0 to {r} {
    affine.for %q = 0 to {n} {
      affine.for %p = 0 to {m} {
        affine.store %x, %sum[%p] : memref<{m}x{t}>
        affine.for %s = 0 to {m} {
          %old = affine.load %sum[%p] : memref<{m}x{t}>
          %a = affine.load %A[%q + %r, %s] : memref<70x70x{t}>
          %c = affine.load %B[%s, %p] : memref<70x70x{t}>
          %new = math.fma %a, %c, %old : {t}
          affine.store %new, %sum[%p] : memref<{m}x{t}>
        }
      }
      affine.for %p = 0 to {m} {
        %new = affine.load %sum[%p] : memref<{m}x{t}>
        affine.store %new, %C[%q + {step} * %r, %p] : memref<70x70x{t}>
      }
    }
    affine.for %p = 0 to {m} {
      %new = affine.load %sum[%p] : memref<{m}x{t}>
      affine.store %new, %C[69, %p] : memref<70x70x{t}>
    }
  }"""


@pytest.mark.parametrize("kind", ["f64", "f32"])
def test_scratch_rows_are_put_into_blocks(kind):
    """What a loop makes anew in each iteration has a row for each; the last one is what is left."""
    array = f"memref<70x70x{kind}>"
    head = f"func.func @f(%C: {array}, %A: {array}, %B: {array}, %x: {kind})"
    for cpu in (WIDE, NARROW):
        tiles = BlockContractions(terms=8, block=16, cpu=cpu)
        texts = []
        for r, n, m in ((1, 2, 3), (3, 9, 8), (2, 17, 25), (33, 2, 7), (32, 2, 48), (31, 2, 49)):
            sized = BATCH.replace("{r}", str(r)).replace("{n}", str(n)).replace("{m}", str(m))
            sized = sized.replace("{t}", kind).replace("{step}", str(n))
            texts.append((f"{head} attributes {{avial.no_alias}} {{\n{sized}\n return }}", tiles))
        assert check(texts, kind, passes=(ExpandArrays(), tiles)) == len(texts)
