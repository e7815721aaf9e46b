"""What reading a piece of code finds: statements, and the elements of arrays they touch."""

from __future__ import annotations

import islpy as isl
import pytest
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.budget import forget, limited
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import operations_in
from tests.compiler.analysis.polyhedral.texts import scop_of

JACOBI = """func.func @f(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %n: index, %T: index) {
  affine.for %t = 0 to %T {
    affine.for %i = 1 to affine_map<()[s0] -> (s0 - 1)>()[%n] {
      affine.for %j = 1 to affine_map<()[s0] -> (s0 - 1)>()[%n] {
        %a = affine.load %A[%i - 1, %j] : memref<?x?xf32>
        %b = affine.load %A[%i + 1, %j] : memref<?x?xf32>
        %c = affine.load %A[%i, %j - 1] : memref<?x?xf32>
        %d = affine.load %A[%i, %j + 1] : memref<?x?xf32>
        %x = arith.addf %a, %b : f32
        affine.store %x, %B[%i, %j] : memref<?x?xf32>
      }
    }
  }
  return }"""


def test_may_and_must(context: ir.Context) -> None:
    scop = scop_of(
        """func.func @f(%A: memref<9xf32>, %B: memref<9xf32>, %p: memref<9xindex>, %x: f32) {
          affine.for %i = 0 to 9 {
            %y = affine.load %B[%i] : memref<9xf32>
            %c = arith.cmpf ogt, %y, %x : f32
            scf.if %c { memref.store %x, %A[%i] : memref<9xf32> }
            %k = affine.load %p[%i] : memref<9xindex>
            memref.store %x, %B[%k] : memref<9xf32>
          }
          return }""",
        context,
    )
    writes = [(s, access) for s in scop.statements for access in s.accesses if access.writes]
    assert [(str(access), s.exact, access.exact) for s, access in writes] == [
        ("A[i]", False, True), ("B[p[i]]", True, False),
    ]  # fmt: skip
    assert not any(s.must_write(access) for s, access in writes)
    assert [s.note for s in scop.statements if s.note] == ["scf.if depends on data"]


def test_a_copy_into_every_second_column(context: ir.Context) -> None:
    scop = scop_of(
        """func.func @f(%A: memref<4x6xf32>, %B: memref<2x3xf32>) {
          %v = memref.subview %A[1, 0] [2, 3] [1, 2]
            : memref<4x6xf32> to memref<2x3xf32, strided<[6, 2], offset: 6>>
          memref.copy %B, %v : memref<2x3xf32> to memref<2x3xf32, strided<[6, 2], offset: 6>>
          return }""",
        context,
    )
    (copied,) = scop.statements
    (write,) = [access for access in copied.accesses if access.writes]
    assert copied.must_write(write)
    want = "{ A[x, y] : 1 <= x <= 2 and 0 <= y <= 4 and y mod 2 = 0 }"
    assert write.relation.range().is_equal(isl.Set(want))


@pytest.mark.parametrize(
    ("view", "elements"),
    [
        pytest.param(
            "%v = memref.collapse_shape %A [[0, 1]] : memref<4x6xf32> into memref<24xf32>\n"
            "memref.store %x, %v[%c9] : memref<24xf32>", "x = 1 and y = 3", id="collapse"),
        pytest.param(
            "%u = memref.subview %A[2, 3] [1, 1] [1, 1]\n"
            ": memref<4x6xf32> to memref<1x1xf32, strided<[6, 1], offset: 15>>\n"
            "%v = memref.collapse_shape %u [] : memref<1x1xf32, strided<[6, 1], offset: 15>>\n"
            "into memref<f32, strided<[], offset: 15>>\n"
            "memref.store %x, %v[] : memref<f32, strided<[], offset: 15>>",
            "x = 2 and y = 3", id="a number"),
        pytest.param(
            "%v = memref.expand_shape %A [[0], [1, 2]] output_shape [4, 2, 3]\n"
            ": memref<4x6xf32> into memref<4x2x3xf32>\n"
            "memref.store %x, %v[%c2, %c1, %c2] : memref<4x2x3xf32>",
            "x = 2 and y = 5", id="expand"),
        pytest.param(
            "%v = memref.transpose %A (i, j) -> (j, i)\n"
            ": memref<4x6xf32> to memref<6x4xf32, strided<[1, 6]>>\n"
            "memref.store %x, %v[%c1, %c2] : memref<6x4xf32, strided<[1, 6]>>",
            "x = 2 and y = 1", id="transpose"),
        pytest.param(
            "%v = memref.reinterpret_cast %A to offset: [7], sizes: [5], strides: [2]\n"
            ": memref<4x6xf32> to memref<5xf32, strided<[2], offset: 7>>\n"
            "memref.store %x, %v[%c2] : memref<5xf32, strided<[2], offset: 7>>",
            "x = 1 and y = 5", id="reinterpret"),
        pytest.param(
            "%v = memref.subview %A[2, 0] [1, 6] [1, 1]\n"
            ": memref<4x6xf32> to memref<6xf32, strided<[1], offset: 12>>\n"
            "memref.store %x, %v[%c1] : memref<6xf32, strided<[1], offset: 12>>",
            "x = 2 and y = 1", id="a row"),
        pytest.param(
            "%u = memref.cast %A : memref<4x6xf32> to memref<*xf32>\n"
            "%v = memref.cast %u : memref<*xf32> to memref<?x?xf32>\n"
            "memref.store %x, %v[%c1, %c2] : memref<?x?xf32>",
            "0 <= x < 4 and 0 <= y < 6", id="unranked"),
        pytest.param(
            "%v = vector.broadcast %x : f32 to vector<3xf32>\n"
            "vector.store %v, %A[%c1, %c2] : memref<4x6xf32>, vector<3xf32>",
            "x = 1 and 2 <= y < 5", id="a vector"),
    ],
)  # fmt: skip
def test_views(view: str, elements: str, context: ir.Context) -> None:
    constants = "\n".join(f"%c{k} = arith.constant {k} : index" for k in range(10))
    text = f"func.func @f(%A: memref<4x6xf32>, %x: f32) {{\n{constants}\n{view}\nreturn }}"
    (statement,) = scop_of(text, context).statements
    (write,) = statement.accesses
    assert write.relation.range().is_equal(isl.Set(f"{{ A[x, y] : {elements} }}"))


def test_what_is_loaded_inside_is_no_parameter_for_who_stands_before(context: ir.Context) -> None:
    around = scop_of(
        """func.func @f(%A: memref<20xf32>, %P: memref<4xi32>, %zero: f32) {
          scf.execute_region {
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %p = memref.load %P[%c1] : memref<4xi32>
            %k = arith.index_cast %p : i32 to index
            scf.for %i = %c0 to %k step %c1 {
              memref.store %zero, %A[%i] : memref<20xf32>
            }
            scf.yield
          }
          return }""",
        context,
    )
    region = next(op for op in operations_in(around.op) if op.name == "scf.execute_region")

    def inner(scop: Scop) -> int:
        return sum(v is not None and defined_in(region, v) for v in scop.parameters.values())

    assert inner(read_scop(region)) == 1
    assert inner(read_scop(region, from_outside=True)) == 0


def test_statements_say_where_they_stand(context: ir.Context) -> None:
    scop = scop_of(JACOBI, context)
    store = scop.statements[-1]
    assert str(store) == "S4: B[j, k]"
    assert store.position == (0, 0, 0, 4)
    assert store.span is not None
    assert store.span.line == 10
    # Every statement's schedule and domain agree, and all schedules tell the statements apart.
    times = [statement.schedule.range() for statement in scop.statements]
    for k, time in enumerate(times):
        assert scop.statements[k].schedule.domain().is_equal(scop.statements[k].domain)
        assert all(time.is_disjoint(other) for other in times[:k])


def test_what_isl_finds_too_hard_is_taken_to_be_possible(
    context: ir.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    scop = scop_of(JACOBI, context)
    exact = dependences(scop)
    forget()
    monkeypatch.setattr(
        "avial_lab.compiler.analysis.polyhedral.budget.limited.__kwdefaults__", {"limit": 5}
    )
    coarse = dependences(scop)
    assert {(d.source.name, d.target.name, d.carrier) for d in exact} <= {
        (d.source.name, d.target.name, d.carrier) for d in coarse
    }
    noted = [d for d in coarse if d.note]
    assert noted
    assert all(not d.exact for d in noted)
    assert "isl gave up" in noted[0].reason()
    coarse_scop = scop_of(JACOBI, context)
    assert "isl gave up" in coarse_scop.notes[0]
    monkeypatch.undo()
    forget()
    assert not any(s.exact for s in coarse_scop.statements)
    for ours, theirs in zip(scop.statements, coarse_scop.statements, strict=True):
        assert ours.domain.is_subset(theirs.domain)
        name = ours.accesses[0].array.name
        inside = isl.Set(
            f"[{name}_0, {name}_1] -> {{ {name}[x, y] : 0 <= x < {name}_0 and 0 <= y < {name}_1 }}"
        )
        exactly = ours.accesses[0].relation.intersect_range(inside)
        assert not exactly.is_empty()
        assert exactly.is_subset(theirs.accesses[0].relation)
    assert limited(lambda: isl.Set("{ [i] : 0 <= i < 3 }").is_empty(), lambda: True) is False
