"""What keeps the first least of all with what belongs to it, and what only looks like it."""

from __future__ import annotations

import re

import pytest
from inline_snapshot import snapshot
from mlir import ir

from avial_lab.compiler.analysis.parallelism.partition import Sequential, Split, partition
from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.polyhedral.scop import ReductionKind
from tests.compiler.analysis.polyhedral.texts import named_module, scop_of

ARGUMENTS = (
    "%A: memref<100x$T>, %B: memref<100x$T>, %p: memref<100xindex>, %best: memref<$T>, "
    "%at: memref<index>, %row: memref<4xi32>, %bests: memref<9x$T>, %ats: memref<9xindex>, "
    "%m: i32, %n: index"
)


def over_i(body: str, context: ir.Context, element: str = "f64") -> tuple[list[str], bool]:
    """The reductions over i, and whether it is parallel with them."""
    text = f"""func.func @f({ARGUMENTS}) {{
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      affine.for %i = 0 to 100 {{
        %x = affine.load %A[%i] : memref<100x$T>
        %k = affine.load %p[%i] : memref<100xindex>
        {body}
      }}
      return }}"""
    text = text.replace("$STORES", STORES).replace("$M", "memref<$T>").replace("$T", element)
    scop = scop_of(text, context)
    loop = scop.loops[0]
    return [f"{r}, {r.op}" for r in reductions(loop, scop)], not forbidding(loop, scop)


OLD = "%o = memref.load %best[] : $M"
LESS = f"{OLD}\n%c = arith.cmpf olt, %x, %o : $T\n"
STORES = "memref.store %x, %best[] : $M\nmemref.store %i, %at[] : memref<index>"
SELECTS = """%a = memref.load %at[] : memref<index>
  %v = arith.select %c, %x, %o : $T
  %w = arith.select %c, %i, %a : index
  memref.store %v, %best[] : $M
  memref.store %w, %at[] : memref<index>"""
IF = "scf.if %c { $STORES }"
LEAST = ["minimum of best with at over i, avial.argmin"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(LESS + IF, id="stores under a condition"),
        pytest.param(LESS + SELECTS, id="selects"),
        pytest.param(
            LESS + """%a = memref.load %at[] : memref<index>
            %v, %w = scf.if %c -> ($T, index) { scf.yield %x, %i : $T, index }
              else { scf.yield %o, %a : $T, index }
            memref.store %v, %best[] : $M
            memref.store %w, %at[] : memref<index>""", id="values of a condition"),
        pytest.param(
            LESS + """%v = scf.if %c -> $T { memref.store %i, %at[] : memref<index>
              scf.yield %x : $T } else { scf.yield %o : $T }
            memref.store %v, %best[] : $M""", id="a value and a store"),
        pytest.param(
            LESS + """%v = arith.select %c, %x, %o : $T
            memref.store %v, %best[] : $M
            scf.if %c { memref.store %i, %at[] : memref<index> }""", id="a select and a store"),
        pytest.param(
            f"""{OLD}
            %d = arith.cmpf uge, %x, %o : $T
            scf.if %d {{ }} else {{ $STORES }}""", id="otherwise"),
        pytest.param(
            f"""{OLD}
            %d = arith.cmpf uge, %x, %o : $T
            %c = arith.xori %d, %true : i1
            {IF}""", id="not"),
        pytest.param(
            f"""{OLD}
            %b = affine.load %B[%i] : memref<100x$T>
            %e = arith.cmpf ogt, %b, %b : $T
            %d = arith.cmpf olt, %x, %o : $T
            %c = arith.andi %e, %d : i1
            {IF}""", id="and something else"),
        pytest.param(
            f"""{OLD}
            %b = affine.load %B[%i] : memref<100x$T>
            %e = arith.cmpf ogt, %b, %b : $T
            %d = arith.cmpf uge, %x, %o : $T
            %c = arith.ori %d, %e : i1
            scf.if %c {{ }} else {{ $STORES }}""", id="nor something else"),
        pytest.param(
            f"""%b = affine.load %B[%i] : memref<100x$T>
            %e = arith.cmpf ogt, %b, %b : $T
            scf.if %e {{ {LESS} {IF} }}""", id="where something else holds"),
        pytest.param(
            LESS + """scf.if %c {
              %y = affine.load %A[%i] : memref<100x$T>
              memref.store %y, %best[] : $M
              memref.store %i, %at[] : memref<index> }""", id="loaded again"),
        pytest.param(
            f"{LESS} {IF}" + """
            %o2 = memref.load %best[] : $M
            %b = affine.load %B[%i] : memref<100x$T>
            %c2 = arith.cmpf ogt, %o2, %b : $T
            scf.if %c2 { memref.store %b, %best[] : $M
              memref.store %k, %at[] : memref<index> }""", id="two of them"),
        pytest.param(
            LESS + """%a = memref.load %at[] : memref<index>
            %b = affine.load %B[%i] : memref<100x$T>
            %v1 = arith.select %c, %x, %o : $T
            %w1 = arith.select %c, %i, %a : index
            %c2 = arith.cmpf olt, %b, %v1 : $T
            %v = arith.select %c2, %b, %v1 : $T
            %w = arith.select %c2, %k, %w1 : index
            memref.store %v, %best[] : $M
            memref.store %w, %at[] : memref<index>""", id="a chain"),
        pytest.param(
            f"""{OLD}
            %a = memref.load %at[] : memref<index>
            %v, %w = affine.for %j = 0 to 7 iter_args(%o1 = %o, %a1 = %a) -> ($T, index) {{
              %y = affine.load %B[%i + %j] : memref<100x$T>
              %c = arith.cmpf olt, %y, %o1 : $T
              %s = arith.select %c, %y, %o1 : $T
              %t = arith.select %c, %j, %a1 : index
              affine.yield %s, %t : $T, index }}
            memref.store %v, %best[] : $M
            memref.store %w, %at[] : memref<index>""", id="an inner loop of iter_args"),
        pytest.param(
            f"""{OLD}
            %v = affine.for %j = 0 to 7 iter_args(%o1 = %o) -> $T {{
              %y = affine.load %B[%i + %j] : memref<100x$T>
              %c = arith.cmpf olt, %y, %o1 : $T
              %s = scf.if %c -> $T {{ memref.store %j, %at[] : memref<index>
                scf.yield %y : $T }} else {{ scf.yield %o1 : $T }}
              affine.yield %s : $T }}
            memref.store %v, %best[] : $M""", id="iter_args and a store in an inner loop"),
    ],
)  # fmt: skip
def test_the_least_with_its_place(body: str, context: ir.Context) -> None:
    assert over_i(body, context) == (LEAST, True)


@pytest.mark.parametrize(
    ("compare", "element", "op"),
    [
        ("cmpf olt, %x, %o", "f32", "argmin"),
        ("cmpf olt, %o, %x", "f32", "argmax"),
        ("cmpf ogt, %x, %o", "f64", "argmax"),
        ("cmpf ogt, %o, %x", "f64", "argmin"),
        ("cmpi slt, %x, %o", "i32", "argmin"),
        ("cmpi slt, %o, %x", "i8", "argmax"),
        ("cmpi sgt, %x, %o", "i64", "argmax"),
        ("cmpi sgt, %o, %x", "i16", "argmin"),
        ("cmpi ult, %x, %o", "i32", "argminui"),
        ("cmpi ult, %o, %x", "i32", "argmaxui"),
        ("cmpi ugt, %x, %o", "index", "argmaxui"),
        ("cmpi ugt, %o, %x", "i32", "argminui"),
    ],
)
def test_orders(compare: str, element: str, op: str, context: ir.Context) -> None:
    kind = "minimum" if op.startswith("argmin") else "maximum"
    want = [f"{kind} of best with at over i, avial.{op}"], True
    assert over_i(f"{OLD}\n%c = arith.{compare} : $T\n{IF}", context, element) == want
    # The same by its opposite: that of floats holds for a NaN too.
    opposite = {"olt": "uge", "ogt": "ule", "slt": "sge", "sgt": "sle", "ult": "uge", "ugt": "ule"}
    turned = re.sub(r"(?<= )\w+(?=,)", lambda found: opposite[found[0]], compare, count=1)
    body = f"{OLD}\n%c = arith.{turned} : $T\nscf.if %c {{ }} else {{ $STORES }}"
    assert over_i(body, context, element) == want


@pytest.mark.parametrize(
    "predicate", ["ole", "oge", "ult", "ugt", "ule", "uge", "oeq", "one", "une", "ord"]
)
def test_orders_that_are_not_strict(predicate: str, context: ir.Context) -> None:
    """Of those alike the last stays, or what comes after a NaN."""
    body = f"{OLD}\n%c = arith.cmpf {predicate}, %x, %o : $T\n{IF}"
    assert over_i(body, context) == ([], False)


@pytest.mark.parametrize("predicate", ["sle", "sge", "ule", "uge", "eq", "ne"])
def test_orders_of_integers_that_are_not_strict(predicate: str, context: ir.Context) -> None:
    body = f"{OLD}\n%c = arith.cmpi {predicate}, %x, %o : $T\n{IF}"
    assert over_i(body, context, "i32") == ([], False)


AFTERWARDS = "affine.store %z, %B[%i] : memref<100x$T>"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            LESS + """scf.if %c { $STORES
              affine.store %x, %B[%i] : memref<100x$T> }""", id="something else is stored"),
        pytest.param(
            LESS + """scf.if %c { $STORES } else { affine.store %x, %B[%i] : memref<100x$T> }""",
            id="something else is stored otherwise"),
        pytest.param(
            f"{LESS} {IF}\n%z = arith.select %c, %x, %x : $T\n{AFTERWARDS}", id="who won is told"),
        pytest.param(
            LESS + f"""%v = arith.select %c, %x, %o : $T
            memref.store %v, %best[] : $M
            %z = arith.select %c, %x, %x : $T
            {AFTERWARDS}""", id="who won is told of the least alone"),
        pytest.param(
            LESS + """%z = scf.if %c -> $T { $STORES
              scf.yield %x : $T } else { scf.yield %x : $T }
            """ + AFTERWARDS, id="who won is told by a value"),
        pytest.param(f"{LESS} {IF}\n%z = arith.addf %o, %x : $T\n{AFTERWARDS}",
                     id="the old value is looked at"),
        pytest.param(f"{LESS} {IF}\n%z = memref.load %best[] : $M\n{AFTERWARDS}",
                     id="the new value is looked at"),
        pytest.param(f"%a = memref.load %at[] : memref<index>\n%z = memref.load %A[%a] : "
                     f"memref<100x$T>\n{LESS} {IF}\n{AFTERWARDS}", id="the place is looked at"),
        pytest.param(
            LESS + """scf.if %c { memref.store %x, %best[] : $M
              %a = memref.load %at[] : memref<index>
              %w = arith.addi %a, %i : index
              memref.store %w, %at[] : memref<index> }""", id="times it was found"),
        pytest.param(
            LESS + """%a = memref.load %at[] : memref<index>
            %b = arith.addi %a, %i : index
            %w = arith.select %c, %b, %a : index
            %v = arith.select %c, %x, %o : $T
            memref.store %v, %best[] : $M
            memref.store %w, %at[] : memref<index>""", id="times it was found, by selects"),
        pytest.param(
            LESS + """%b = affine.load %B[%i] : memref<100x$T>
            scf.if %c { memref.store %b, %best[] : $M
              memref.store %i, %at[] : memref<index> }""", id="another value is kept"),
        pytest.param(
            f"{LESS} memref.store %x, %best[] : $M\nscf.if %c {{ memref.store %i, %at[] : "
            "memref<index> }", id="the last is kept"),
        pytest.param(
            LESS + """%b = affine.load %B[%i] : memref<100x$T>
            %d = arith.cmpf ogt, %b, %b : $T
            scf.if %c { memref.store %x, %best[] : $M
              scf.if %d { memref.store %i, %at[] : memref<index> } }""",
            id="the place is not always kept"),
        pytest.param(
            LESS + """%b = affine.load %B[%i] : memref<100x$T>
            %d = arith.cmpf ogt, %b, %b : $T
            %a = memref.load %at[] : memref<index>
            %v = arith.select %c, %x, %o : $T
            %w = arith.select %c, %i, %a : index
            memref.store %v, %best[] : $M
            scf.if %d { memref.store %w, %at[] : memref<index> }""",
            id="the place is not always stored"),
        pytest.param(
            LESS + """%b = affine.load %B[%i] : memref<100x$T>
            %d = arith.cmpf ogt, %b, %b : $T
            %a = memref.load %at[] : memref<index>
            %v1 = arith.select %c, %x, %o : $T
            %w1 = arith.select %c, %i, %a : index
            %v = arith.select %d, %v1, %o : $T
            memref.store %v, %best[] : $M
            memref.store %w1, %at[] : memref<index>""", id="the least is not always stored"),
        pytest.param(
            f"{LESS} {IF}" + """
            %o2 = memref.load %best[] : $M
            %b = affine.load %B[%i] : memref<100x$T>
            %c2 = arith.cmpf olt, %b, %o2 : $T
            scf.if %c2 { memref.store %b, %best[] : $M }""", id="once without its place"),
        pytest.param(
            f"{LESS} {IF}" + """
            %o2 = memref.load %best[] : $M
            %b = affine.load %B[%i] : memref<100x$T>
            %c2 = arith.cmpf ogt, %b, %o2 : $T
            scf.if %c2 { memref.store %b, %best[] : $M
              memref.store %k, %at[] : memref<index> }""", id="once the greatest"),
        pytest.param(
            f"""memref.store %x, %best[] : $M
            {LESS} {IF}""", id="it begins anew"),
        pytest.param(
            f"""{OLD}
            memref.store %x, %best[] : $M
            %c = arith.cmpf olt, %x, %o : $T
            {IF}""", id="written in between"),
        pytest.param(
            LESS + """scf.if %c {
              memref.store %x, %best[] : $M
              memref.store %i, %ats[%k] : memref<9xindex> }""", id="a place for each"),
        pytest.param(
            LESS + """scf.if %c {
              affine.store %x, %A[%i] : memref<100x$T>
              memref.store %i, %at[] : memref<index> }""", id="the least is kept elsewhere"),
        pytest.param(
            """%o = memref.load %bests[%k] : memref<9x$T>
            %c = arith.cmpf olt, %x, %o : $T
            scf.if %c { memref.store %x, %bests[%k] : memref<9x$T>
              memref.store %i, %at[] : memref<index> }""", id="one place for all"),
        pytest.param(
            """%o = memref.load %bests[%k] : memref<9x$T>
            %c = arith.cmpf olt, %x, %o : $T
            scf.if %c { memref.store %x, %bests[%k] : memref<9x$T>
              memref.store %i, %p[%k] : memref<100xindex> }""", id="arrays of other shapes"),
        pytest.param(
            LESS + """scf.if %c { memref.store %x, %best[] : $M
              affine.store %m, %row[0] : memref<4xi32>
              affine.store %m, %row[2] : memref<4xi32> }""", id="elements with one between"),
        pytest.param(
            f"""{OLD}
            affine.for %j = 0 to 7 {{
              %y = affine.load %B[%i + %j] : memref<100x$T>
              %c = arith.cmpf olt, %y, %o : $T
              scf.if %c {{ memref.store %y, %best[] : $M
                memref.store %j, %at[] : memref<index> }} }}""", id="compared to before the loop"),
    ],
)  # fmt: skip
def test_what_only_looks_like_one(body: str, context: ir.Context) -> None:
    found, parallel = over_i(body, context)
    assert not parallel
    assert not any("with" in each for each in found)


def test_several_elements_belong_to_one(context: ir.Context) -> None:
    body = (
        LESS
        + """scf.if %c { memref.store %x, %best[] : $M
      affine.store %m, %row[2] : memref<4xi32>
      affine.store %m, %row[1] : memref<4xi32> }"""
    )
    assert over_i(body, context) == (["minimum of best with row over i, avial.argmin"], True)


def test_the_least_of_each_bucket(context: ir.Context) -> None:
    body = """%o = memref.load %bests[%k] : memref<9x$T>
      %c = arith.cmpf olt, %x, %o : $T
      scf.if %c { memref.store %x, %bests[%k] : memref<9x$T>
        memref.store %i, %ats[%k] : memref<9xindex> }"""
    assert over_i(body, context) == (["minimum of bests with ats over i, avial.argmin"], True)


def test_the_least_alone(context: ir.Context) -> None:
    """Bit for bit, as select has it: of a positive and a negative zero the first stays."""
    kept = LESS + "scf.if %c { memref.store %x, %best[] : $M }"
    selected = LESS + "%v = arith.select %c, %x, %o : $T\nmemref.store %v, %best[] : $M"
    for body in (kept, selected):
        assert over_i(body, context) == (["minimum of best over i, avial.argmin"], True)


def nodes(text: str, context: ir.Context) -> list[str]:
    module = named_module(text, context)
    found: list[str] = []
    for node in partition(module.body.operations[0]):
        if isinstance(node, Split):
            over = " ".join(map(str, node.loops))
            found.append(f"split {over}: {', '.join(map(str, node.reductions))}")
        elif isinstance(node, Sequential):
            found.append(f"sequential: {node.reasons[0].partition(': line')[0]}")
    return found


ROWS = """func.func @f(%A: memref<40x30xf64>, %best: memref<$Exf64>, %at: memref<$Exindex>) {
  %c0 = arith.constant 0 : index
  affine.for %i = 0 to 40 {
    $BEGIN
    affine.for %j = 0 to 30 {
      %x = affine.load %A[%i, %j] : memref<40x30xf64>
      %o = affine.load %best[$P] : memref<$Exf64>
      %c = arith.cmpf olt, %x, %o : f64
      scf.if %c { affine.store %x, %best[$P] : memref<$Exf64>
        affine.store %j, %at[$Q] : memref<$Exindex> }
    }
  }
  return
}"""


@pytest.mark.parametrize(
    ("begin", "best", "at", "want"),
    [
        pytest.param("", "0", "0", snapshot(["split i: minimum of best with at over i"]), id="all"),
        pytest.param("", "%i", "%i", snapshot(["split i: "]), id="of each row"),
        pytest.param("", "%j", "%j", snapshot(["split j: "]), id="of each column"),
        pytest.param(
            "affine.store %x0, %best[%i] : memref<40xf64>", "%i", "%i", snapshot(["split i: "]),
            id="of each row, begun anew",
        ),
        pytest.param(
            "affine.store %x0, %best[0] : memref<40xf64>", "0", "0",
            snapshot(["sequential: best[0] is written by an earlier iteration of i"]),
            id="the last row's",
        ),
        pytest.param(
            "", "0", "%i",
            snapshot(["sequential: best[0] may be written by an earlier iteration of i"]),
            id="one for all, places for each row",
        ),
    ],
)  # fmt: skip
def test_nests(begin: str, best: str, at: str, want: list[str], context: ir.Context) -> None:
    if begin:
        begin = f"%x0 = affine.load %A[%i, 0] : memref<40x30xf64>\n{begin}"
    text = ROWS.replace("$BEGIN", begin).replace("$P", best).replace("$Q", at).replace("$E", "40")
    assert nodes(text, context) == want


def test_the_place_in_the_last_row_of_which_each_has_its_own_least(context: ir.Context) -> None:
    """The least is private to each row, so that nothing tells which row's place is the last."""
    text = ROWS.replace("%best: memref<$Exf64>, ", "").replace(
        "affine.for %i", "%best = memref.alloc() : memref<1xf64>\n  affine.for %i", 1
    )
    begin = """%x0 = affine.load %A[%i, 0] : memref<40x30xf64>
      affine.store %x0, %best[0] : memref<1xf64>"""
    for before, after in (("$BEGIN", begin), ("$P", "0"), ("$Q", "0"), ("$E", "1")):
        text = text.replace(before, after)
    assert nodes(text, context) == snapshot(
        ["sequential: at[0] may be written again by a later iteration of i"]
    )


def test_a_leader_names_its_companions(context: ir.Context) -> None:
    scop = scop_of(
        """func.func @f(%A: memref<9xi64>, %best: memref<i64>, %at: memref<index>) {
          affine.for %i = 0 to 9 {
            %x = affine.load %A[%i] : memref<9xi64>
            %o = memref.load %best[] : memref<i64>
            %c = arith.cmpi sgt, %x, %o : i64
            scf.if %c { memref.store %x, %best[] : memref<i64>
              memref.store %i, %at[] : memref<index> }
          }
          return }""",
        context,
    )
    (found,) = reductions(scop.loops[0], scop)
    assert [array.name for array in found.arrays] == ["best", "at"]
    assert (found.kind, found.fixed, found.reorders_rounding) == (
        ReductionKind.MAXIMUM, True, False
    )  # fmt: skip
    key, payload = found.updates
    assert payload.key == key
    assert (key.load, key.store, payload.load, payload.store) == ("S1", "S2", "S3", "S3")
    assert {d.array.name for d in found.relaxed} == {"best", "at"}
