"""What is a reduction and what only looks like one."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.scop import ReductionKind
from tests.compiler.analysis.polyhedral.texts import scop_of


def over_i(body: str, context: ir.Context, element: str = "f32") -> tuple[list[str], bool]:
    """The reductions over i, and whether i is parallel with them."""
    text = f"""func.func @f(%A: memref<100x{element}>, %s: memref<{element}>, %n: index) {{
      %c0 = arith.constant 0 : index
      affine.for %i = 0 to %n {{
        %x = affine.load %A[%i] : memref<100x{element}>
        {body}
      }}
      return }}"""
    scop = scop_of(text.replace("$M", f"memref<{element}>").replace("$T", element), context)
    known = dependences(scop)
    loop = scop.loops[0]
    found = reductions(loop, scop, known)
    assert all(r.element_type == element for r in found)
    return [str(r) for r in found], not forbidding(loop, scop, known)


LOAD = "%o = memref.load %s[] : $M"
STORE = "memref.store %v, %s[] : $M"


@pytest.mark.parametrize(
    ("op", "element", "kind"),
    [
        ("arith.addf", "f32", "sum"),
        ("arith.addi", "i32", "sum"),
        ("arith.mulf", "f64", "product"),
        ("arith.muli", "i32", "product"),
        ("arith.minimumf", "f32", "minimum"),
        ("arith.maximumf", "f32", "maximum"),
        ("arith.minnumf", "f32", "minimum"),
        ("arith.minsi", "i32", "minimum"),
        ("arith.maxsi", "i32", "maximum"),
        ("arith.andi", "i32", "and"),
        ("arith.ori", "i32", "or"),
        ("arith.xori", "i32", "xor"),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_kinds(op: str, element: str, kind: str, swapped: bool, context: ir.Context) -> None:
    operands = "%x, %o" if swapped else "%o, %x"
    body = f"{LOAD}\n%v = {op} {operands} : $T\n{STORE}"
    assert over_i(body, context, element) == ([f"{kind} of s over i"], True)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{LOAD}\n%u = arith.addf %o, %x : $T\n%v = arith.addf %x, %u : $T\n{STORE}",
                     id="a chain"),
        pytest.param(f"{LOAD}\n%v = arith.subf %o, %x : $T\n{STORE}", id="differences"),
        pytest.param(f"{LOAD}\n%v = math.fma %x, %x, %o : $T\n{STORE}", id="fma"),
        pytest.param(
            f"""{LOAD}
            %c = arith.cmpf ogt, %x, %x : $T
            %v = scf.if %c -> $T {{ %u = arith.addf %o, %x : $T
              scf.yield %u : $T }} else {{ scf.yield %o : $T }}
            {STORE}""", id="a branch with values"),
        pytest.param(
            f"""%c = arith.cmpf ogt, %x, %x : $T
            scf.if %c {{ {LOAD}
              %v = arith.addf %o, %x : $T
              {STORE} }}""", id="a branch around it"),
        pytest.param(
            f"""{LOAD}
            %v = affine.for %j = 0 to 10 iter_args(%acc = %o) -> $T {{
              %y = affine.load %A[%j] : memref<100x$T>
              %u = arith.addf %acc, %y : $T
              affine.yield %u : $T }}
            {STORE}""", id="an inner loop of iter_args"),
        pytest.param(
            f"""{LOAD}
            %v = arith.addf %o, %x : $T
            {STORE}
            %o2 = memref.load %s[] : $M
            %v2 = arith.addf %o2, %x : $T
            memref.store %v2, %s[] : $M""", id="two updates"),
    ],
)  # fmt: skip
def test_sums(body: str, context: ir.Context) -> None:
    assert over_i(body, context) == (["sum of s over i"], True)


@pytest.mark.parametrize(
    ("body", "element"),
    [
        pytest.param(f"{LOAD}\n%v = arith.subf %x, %o : $T\n{STORE}", "f32", id="turned"),
        pytest.param(f"{LOAD}\n%v = arith.divf %o, %x : $T\n{STORE}", "f32", id="quotients"),
        pytest.param(f"{LOAD}\n%v = arith.addf %o, %o : $T\n{STORE}", "f32", id="doubled"),
        pytest.param(
            f"{LOAD}\n%u = arith.addf %o, %x : $T\n%v = arith.mulf %u, %x : $T\n{STORE}", "f32",
            id="two kinds",
        ),
        pytest.param(
            f"{LOAD}\n%v = arith.addf %o, %x : $T\n{STORE}\n"
            "affine.store %v, %A[%i] : memref<100x$T>", "f32", id="looked at halfway",
        ),
        pytest.param(
            f"{LOAD}\n%v = arith.minsi %o, %x : $T\n%w = arith.minui %v, %x : $T\n"
            "memref.store %w, %s[] : $M", "i32", id="signed and unsigned",
        ),
        pytest.param(
            f"{LOAD}\nmemref.store %x, %s[] : $M\n%v = arith.addf %o, %x : $T\n{STORE}", "f32",
            id="written in between",
        ),
        pytest.param(
            f"""{LOAD}
            %v = affine.for %j = 0 to 10 iter_args(%acc = %o) -> $T {{
              %u = arith.addf %o, %x : $T
              affine.yield %u : $T }}
            {STORE}""", "f32", id="an inner loop that starts again",
        ),
    ],
)  # fmt: skip
def test_what_only_looks_like_one(body: str, element: str, context: ir.Context) -> None:
    assert over_i(body, context, element) == ([], False)


def test_another_reader_forbids(context: ir.Context) -> None:
    body = f"""{LOAD}
      %v = arith.addf %o, %x : $T
      {STORE}
      %w = memref.load %s[] : $M
      affine.store %w, %A[%i] : memref<100x$T>"""
    found, parallel = over_i(body, context)
    assert found == ["sum of s over i"]
    assert not parallel


def test_sum_and_product_of_one_cell_forbid_each_other(context: ir.Context) -> None:
    body = f"""{LOAD}
      %v = arith.addf %o, %x : $T
      {STORE}
      %o2 = memref.load %s[] : $M
      %v2 = arith.mulf %o2, %x : $T
      memref.store %v2, %s[] : $M"""
    assert not over_i(body, context)[1]


def test_a_histogram_is_an_array_reduction(context: ir.Context) -> None:
    scop = scop_of(
        """func.func @f(%H: memref<10xi32>, %p: memref<100xindex>, %one: i32) {
          affine.for %i = 0 to 100 {
            %k = affine.load %p[%i] : memref<100xindex>
            %o = memref.load %H[%k] : memref<10xi32>
            %v = arith.addi %o, %one : i32
            memref.store %v, %H[%k] : memref<10xi32>
          }
          return }""",
        context,
    )
    (found,) = reductions(scop.loops[0], scop)
    assert (found.array.name, found.kind, found.op) == ("H", ReductionKind.SUM, "arith.addi")
    assert not found.fixed
    assert not found.reorders_rounding
    assert not forbidding(scop.loops[0], scop)


def test_atax_reduces_an_array_over_its_rows(context: ir.Context) -> None:
    scop = scop_of(
        """func.func @f(%A: memref<8x9xf64>, %y: memref<9xf64>, %t: memref<8xf64>) {
          affine.for %i = 0 to 8 {
            affine.for %j = 0 to 9 {
              %a = affine.load %A[%i, %j] : memref<8x9xf64>
              %b = affine.load %t[%i] : memref<8xf64>
              %m = arith.mulf %a, %b : f64
              %o = affine.load %y[%j] : memref<9xf64>
              %v = arith.addf %o, %m : f64
              affine.store %v, %y[%j] : memref<9xf64>
            }
          }
          return }""",
        context,
    )
    i, j = scop.loops
    (found,) = reductions(i, scop)
    assert (str(found), found.fixed, found.reorders_rounding) == ("sum of y over i", True, True)
    assert forbidding(i, scop) == ()
    assert reductions(j, scop) == ()


@pytest.mark.parametrize(
    ("loop", "element", "kind"),
    [
        pytest.param(
            """%r = affine.for %i = 0 to 100 iter_args(%acc = %x) -> f32 {
                 %y = affine.load %A[%i] : memref<100xf32>
                 %u = arith.addf %acc, %y : f32
                 affine.yield %u : f32 }""", "f32", "sum", id="affine iter_args"),
        pytest.param(
            """%r = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %x) -> f32 {
                 %y = memref.load %A[%i] : memref<100xf32>
                 %c = arith.cmpf olt, %y, %acc : f32
                 %u = arith.select %c, %y, %acc : f32
                 scf.yield %u : f32 }""", "f32", "minimum", id="compare and select"),
        pytest.param(
            """%r = affine.parallel (%i) = (0) to (100) reduce ("maximumf") -> f32 {
                 %y = affine.load %A[%i] : memref<100xf32>
                 affine.yield %y : f32 }""", "f32", "maximum", id="affine.parallel"),
        pytest.param(
            """%r = scf.parallel (%i) = (%c0) to (%c9) step (%c1) init (%x) -> f32 {
                 %y = memref.load %A[%i] : memref<100xf32>
                 scf.reduce(%y : f32) {
                 ^bb0(%a: f32, %b: f32):
                   %u = arith.mulf %a, %b : f32
                   scf.reduce.return %u : f32 } }""", "f32", "product", id="scf.parallel"),
    ],
)  # fmt: skip
def test_values_carried_by_a_loop(loop: str, element: str, kind: str, context: ir.Context) -> None:
    scop = scop_of(
        f"""func.func @f(%A: memref<100xf32>, %x: f32) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c9 = arith.constant 9 : index
          {loop}
          return }}""",
        context,
    )
    (found,) = reductions(scop.loops[0], scop)
    assert (found.kind.value, found.element_type) == (kind, element)
    assert forbidding(scop.loops[0], scop) == ()


def test_a_recurrence_carried_by_a_loop_is_none(context: ir.Context) -> None:
    scop = scop_of(
        """func.func @f(%A: memref<100xf32>, %x: f32) {
          %r = affine.for %i = 0 to 100 iter_args(%acc = %x) -> f32 {
            %y = affine.load %A[%i] : memref<100xf32>
            %u = arith.mulf %acc, %y : f32
            %v = arith.addf %u, %y : f32
            affine.yield %v : f32 }
          return }""",
        context,
    )
    assert reductions(scop.loops[0], scop) == ()
    (against,) = forbidding(scop.loops[0], scop)
    assert against.reason() == "carried is passed from one iteration of i to the next: line 2"
