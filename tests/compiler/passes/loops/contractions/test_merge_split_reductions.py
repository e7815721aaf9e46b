"""A triangle and its mirror image are one sum, and nothing else is.

The values are those of the text, within the bound of sums in another order; integers exactly.
"""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.ir.remarks import SUMS
from avial_lab.compiler.lowering.run import Pass, run_passes
from avial_lab.compiler.passes.loops.contractions.block_contractions import BlockContractions
from avial_lab.compiler.passes.loops.contractions.merge_split_reductions import MergeSplitReductions
from avial_lab.compiler.passes.loops.storage.expand_scalars import ExpandScalars
from avial_lab.machine.cpu import Cpu
from tests.kernels.jit import Machine

NARROW = Cpu(16, 16, fma=True)
WIDE = Cpu(64, 32, fma=True)
TYPES = {"f64": np.float64, "f32": np.float32, "i32": np.int32}
MAPS = "#same = affine_map<(d) -> (d)>\n#up = affine_map<(d) -> (d + 1)>\n"

SCATTERED = """
  affine.for %i = 0 to {m} { affine.for %j = 0 to {n} {
    %temp = affine.for %k = 0 to #same({of}) iter_args(%acc = %zero) -> ({t}) {
      %b = affine.load %B[%i, %j] : {B}
      %a = affine.load %A[{of}, %k] : {A}
      %c = affine.load %C[{to}] : {C}
      %left = arith.mul{f} %alpha, %b : {t}
      %up = arith.mul{f} %left, %a : {t}
      %sum = arith.add{f} %c, %up : {t}
      affine.store %sum, %C[{to}] : {C}
      %bk = affine.load %B[{to}] : {B}
      %down = arith.mul{f} %bk, %a : {t}
      %next = arith.add{f} %acc, %down : {t}
      affine.yield %next : {t}
    }
    %c = affine.load %C[%i, %j] : {C}
    %b = affine.load %B[%i, %j] : {B}
    %a = affine.load %A[{of}, {of}] : {A}
    %scaled = arith.mul{f} %beta, %c : {t}
    %left = arith.mul{f} %alpha, %b : {t}
    %diagonal = arith.mul{f} %left, %a : {t}
    %s1 = arith.add{f} %scaled, %diagonal : {t}
    %rest = arith.mul{f} %alpha, %temp : {t}
    %s2 = arith.add{f} %s1, %rest : {t}
    affine.store %s2, %C[%i, %j] : {C}
  } }"""

ADDED = """
    affine.for %k = {k0} to {k1} {
      %a = affine.load %A[{a}] : {A}
      %b = affine.load %B[{b}] : {B}
      %c = affine.load %C[%i, %j] : {C}
      %l = arith.mul{f} %alpha, %a : {t}
      %p = arith.mul{f} %l, %b : {t}
      %s = arith.{add}{f} %c, %p : {t}
      affine.store %s, %C[%i, %j] : {C}
    }"""

IN_ROWS = (
    """
  affine.for %i = 0 to {m} { affine.for %j = 0 to {n} {
    %old = affine.load %C[%i, %j] : {C}
    %scaled = arith.mul{f} %old, %beta : {t}
    affine.store %scaled, %C[%i, %j] : {C}"""
    + ADDED.replace("{k0}", "0").replace("{k1}", "{cut}").replace("{a}", "{one}")
    + ADDED.replace("{k0}", "{cut}").replace("{k1}", "{size}").replace("{a}", "{other}")
    + "} }"
)
"""Each element its own terms, with the diagonal on one side or the other."""


def text_of(body: str, kind: str, m: int, n: int, side: str, **given: str) -> str:
    """A product of a symmetric matrix from the left (m x m) or right (n x n) with B."""
    of = {"left": "%i", "right": "%j"}[side]
    size = {"left": m, "right": n}[side]
    words = {
        "m": str(m), "n": str(n), "t": kind, "f": kind[0], "of": of, "size": str(size),
        "A": f"memref<{size}x{size}x{kind}>", "B": f"memref<{m}x{n}x{kind}>",
        "C": f"memref<{m}x{n}x{kind}>", "add": "add",
        "to": {"left": "%k, %j", "right": "%i, %k"}[side],
        "b": {"left": "%k, %j", "right": "%i, %k"}[side],
        "lower": f"{of}, %k", "upper": f"%k, {of}",
        "before": f"#same({of})", "after": f"#up({of})",
    } | given  # fmt: skip
    for _ in range(2):  # words stand for words
        for word, meant in words.items():
            body = body.replace("{" + word + "}", meant)
    zero = "0.0" if kind[0] == "f" else "0"
    return f"""{MAPS}
    func.func @f(%C: {words["C"]}, %A: {words["A"]}, %B: {words["B"]}, %alpha: {kind},
                 %beta: {kind}) attributes {{avial.no_alias}} {{
      %zero = arith.constant {zero} : {kind}
      {body}
      return
    }}"""


FORMS = {
    "scattered, left": (SCATTERED, "left", {}),
    "scattered, right": (SCATTERED, "right", {}),
    "lower, left": (IN_ROWS, "left", {"one": "{lower}", "other": "{upper}", "cut": "{after}"}),
    "upper, left": (IN_ROWS, "left", {"one": "{upper}", "other": "{lower}", "cut": "{before}"}),
    "lower, right": (IN_ROWS, "right", {"one": "{lower}", "other": "{upper}", "cut": "{before}"}),
    "upper, right": (IN_ROWS, "right", {"one": "{upper}", "other": "{lower}", "cut": "{after}"}),
    "taken away": (
        IN_ROWS,
        "left",
        {"one": "{lower}", "other": "{upper}", "cut": "{after}", "add": "sub"},
    ),
}


def passes_of(cpu: Cpu) -> tuple[Pass, ...]:
    blocks = BlockContractions(terms=8, block=16, cpu=cpu)
    return (ExpandScalars(blocks=True, sums=True), MergeSplitReductions(least=0), blocks)


def after(text: str, passes: tuple[Pass, ...], context: ir.Context) -> str:
    module = ir.Module.parse(text, context)
    run_passes(module.operation, passes)
    return str(module)


def arrays(kind: str, m: int, n: int, side: str) -> dict[str, object]:
    rng, size = np.random.default_rng(7), {"left": m, "right": n}[side]
    shapes = {"C": (m, n), "A": (size, size), "B": (m, n)}

    def made(shape: tuple[int, ...]) -> np.ndarray:
        if kind[0] == "f":
            return rng.standard_normal(shape).astype(TYPES[kind])
        return rng.integers(-9, 9, shape).astype(TYPES[kind])

    numbers = {"alpha": TYPES[kind](3), "beta": TYPES[kind](-2)}
    found: dict[str, object] = {name: made(shape) for name, shape in shapes.items()}
    return found | numbers


SIZES = ((1, 1), (2, 3), (1, 17), (13, 1), (31, 33), (67, 49))


@pytest.mark.quick("*-f64-*", "taken away*")
@pytest.mark.parametrize(
    ("form", "kind", "cpu"),
    [
        *((form, "f64", NARROW) for form in FORMS),
        *((form, "f32", WIDE) for form in ("scattered, left", "lower, right")),
        *((form, "i32", NARROW) for form in ("scattered, right", "upper, left", "taken away")),
    ],
)
def test_both_halves_are_one_sum(form, kind, cpu):
    body, side, given = FORMS[form]
    context = ir.Context()
    texts = [text_of(body, kind, m, n, side, **given) for m, n in SIZES]
    made = [after(text, passes_of(cpu), context) for text in texts]
    for (m, n), text in zip(SIZES, made, strict=True):
        if min(m, n) > 4:  # of a single row or column a loop does not move
            assert "merge-split-reductions: merged the sums over k from arg1[" in text
            assert text.count("summed over k") == 1, "one contraction"
            assert f"{{alignment = 64 : i64}} : memref<{m}x{n}x{kind}>" not in text, "no temporary"
    machine = Machine(
        [
            (f"{when}{k}", text)
            for when, all_of_them in (("before", texts), ("after", made))
            for k, text in enumerate(all_of_them)
        ],
        context,
    )
    for k, (m, n) in enumerate(SIZES):
        given_arrays = arrays(kind, m, n, side)
        old, new = (machine.call(f"{when}{k}", given_arrays)["C"] for when in ("before", "after"))
        if kind == "i32":
            assert (old == new).all()
        else:
            largest = 3 * 4 * 4 * (max(m, n) + 4)
            assert np.abs(old - new).max() <= largest * np.finfo(TYPES[kind]).eps


def joined(text: str, *passes: Pass) -> bool:
    return "merge-split-reductions:" in after(text, passes or passes_of(WIDE), ir.Context())


LOWER = {"one": "{lower}", "other": "{upper}", "cut": "{after}"}


def test_of_floats_the_terms_are_told():
    text = text_of(IN_ROWS, "f64", 40, 30, "left", **LOWER)
    assert f"{SUMS} = 42 : i64" in after(text, passes_of(WIDE), ir.Context())
    text = text_of(IN_ROWS, "i32", 40, 30, "left", **LOWER)
    assert SUMS not in after(text, passes_of(WIDE), ir.Context())


def test_a_strict_module_keeps_its_order():
    text = text_of(IN_ROWS, "f64", 40, 30, "left", **LOWER)
    assert joined(text)
    head, function = text.split("func.func", 1)
    assert not joined(f"{head} module attributes {{avial.strict}} {{ func.func{function} }}")


def test_arrays_that_may_share_memory_stay_in_their_order():
    text = text_of(IN_ROWS, "f64", 40, 30, "left", **LOWER)
    assert not joined(text.replace("attributes {avial.no_alias}", ""))


def test_what_is_small_stays_as_it_is():
    text = text_of(IN_ROWS, "f64", 40, 30, "left", **LOWER)
    assert not joined(text, MergeSplitReductions())
    assert joined(text_of(IN_ROWS, "f64", 80, 70, "left", **LOWER), MergeSplitReductions())


@pytest.mark.parametrize(
    "given",
    {
        "the diagonal is in both": {"size": "40", "cut": "{after}", "again": "{before}"},
        "the diagonal is in none": {"size": "40", "cut": "{before}", "again": "{after}"},
        "they are not mirrored": {"other": "{lower}"},
        "both are added with other signs": {"second": "sub"},
        "other numbers": {"number": "%beta"},
    }.items(),
    ids=lambda each: each[0],
)
def test_other_pieces_stay_pieces(given):
    _, words = given
    words = LOWER | words
    first, second = IN_ROWS.rsplit("affine.for %k", 1)
    second = second.replace("{cut}", words.get("again", "{cut}"))
    second = second.replace("{add}", words.get("second", "add"))
    second = second.replace("%alpha", words.get("number", "%alpha"))
    text = text_of(f"{first}affine.for %k{second}", "f64", 40, 30, "left", **words)
    assert not joined(text)


def test_what_somebody_reads_in_between_stays_in_its_order():
    """A later row is computed from what an earlier one has so far."""
    text = text_of(IN_ROWS, "f64", 40, 40, "left", **LOWER)
    added = "\n".join(line for line in text.splitlines() if "%scaled" not in line)
    assert joined(text)
    assert joined(added)
    assert not joined(text.replace("%B[%k, %j]", "%C[%k, %j]"))
    assert not joined(added.replace("%B[%k, %j]", "%C[%k, %j]"))


def test_elements_that_are_set_late_keep_what_was_added_before():
    text = text_of(SCATTERED, "f64", 40, 30, "left")
    assert joined(text)
    late = "%k = 0 to #same(%i)", "%k = #up(%i) to 40"
    assert not joined(text.replace(*late)), "later rows are scaled after they were added to"


def test_a_temporary_that_is_read_elsewhere_stays():
    text = text_of(SCATTERED, "f64", 40, 30, "left")
    used = text.replace("%scaled = arith.mulf %beta, %c", "%scaled = arith.mulf %temp, %c")
    assert not joined(used)


def test_mirrored_by_the_text_itself():
    """What merge-split-reductions writes, somebody may have written: it is packed as well."""
    text = text_of(
        """
  affine.for %i = 0 to {m} { affine.for %k = 0 to {m} { affine.for %j = 0 to {n} {
    %x = affine.max #both(%i, %k)
    %y = affine.min #both(%i, %k)
    %a = memref.load %A[%x, %y] : {A}
    %b = affine.load %B[%k, %j] : {B}
    %c = affine.load %C[%i, %j] : {C}
    %s = math.fma %a, %b, %c : {t}
    affine.store %s, %C[%i, %j] : {C} } } }""",
        "f64",
        67,
        49,
        "left",
    )
    text = f"#both = affine_map<(a, b) -> (a, b)>\n{text}"
    context = ir.Context()
    made = after(text, (BlockContractions(terms=8, block=16, cpu=WIDE),), context)
    assert "from arg1[max(i, j), min(i, j)] with arg2[j, k], in register tiles" in made
    machine = Machine([("before", text), ("after", made)], context)
    given = arrays("f64", 67, 49, "left")
    assert (machine.call("before", given)["C"] == machine.call("after", given)["C"]).all()
