"""Rows in the lanes of vectors compute the same bits, however many and whatever they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.remarks import remarks_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.mark_parallel import MarkParallel
from avial_lab.compiler.passes.loops.vectors.vectorise_outer import VectoriseOuter
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.kernels.jit import Machine
from tests.quick import examples

DTYPES = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32}
SUBSCRIPTS = {
    "A": ("%j", "%j + 1", "%j * 2", "%j * -1 + 69", "%q", "%j + %q", "%one", "%j mod 3"),
    "B": ("%q, %j", "%j, %q", "%q, %j * 2", "3, %q", "%q + %i, %j"),
}
SHAPES = {"A": "160", "B": "80x160", "P": "160", "X": "3x160", "Y": "3x160", "Z": "24x160"}


@dataclass(frozen=True)
class Rows:
    """For %i, for %j: values that start from X[i, j] go through a loop over %q, and at last to
    Y[i, j]. Each of `steps` is an operation on them: with what is loaded from a place, with what
    stands at a place that was loaded, or a choice.
    """

    kind: str
    rows: int
    turns: int
    steps: tuple[tuple[str, str], ...]
    stores: bool
    twice: bool
    until: bool

    @property
    def text(self) -> str:
        kinds = {k: f"memref<{shape}x{self.kind}>" for k, shape in SHAPES.items()}
        kinds["P"] = f"memref<{SHAPES['P']}xi32>"
        self_kind, real = self.kind, self.kind.startswith("f")
        number = "0.5" if real else "3"
        lines = [
            f"func.func @f({', '.join(f'%{k}: {v}' for k, v in kinds.items())})",
            f'attributes {{{NO_ALIAS}, avial.task = "S1"}} {{',
            f"%half = arith.constant {number} : {self_kind}",
            "%one = arith.constant 1 : index",
            "%most = arith.constant 5 : i32",
            "%no = arith.constant 0 : i32",
            "%single = arith.constant 1 : i32",
            f"affine.for %i = 0 to 3 {{ affine.for %j = 0 to {self.rows} {{",
            f"%x = affine.load %X[%i, %j] : {kinds['X']}",
            f"%r:2 = affine.for %q = 0 to {self.turns} iter_args(%s = %x, %t = %half)"
            f" -> ({self_kind}, {self_kind}) {{",
            *self._body(kinds, real=real),
            f"affine.yield %v{len(self.steps)}, %s : {self_kind}, {self_kind} }}",
        ]
        last = "%r#0"
        if self.twice:
            lines += [
                f"%again = affine.for %q = 0 to 3 iter_args(%s = %r#1) -> ({self_kind}) {{",
                f"%m = arith.{'mulf' if real else 'muli'} %s, %r#0 : {self_kind}",
                f"%n = arith.{'subf' if real else 'subi'} %m, %x : {self_kind}",
                f"affine.yield %n : {self_kind} }}",
            ]
            last = "%again"
        if self.until:
            lines += [
                f"%u:2 = scf.while (%s = {last}, %n = %no) : ({self_kind}, i32)"
                f" -> ({self_kind}, i32) {{",
                f"%less = arith.{'cmpf olt' if real else 'cmpi slt'}, %s, %x : {self_kind}",
                "%few = arith.cmpi slt, %n, %most : i32",
                "%on = arith.andi %less, %few : i1",
                f"scf.condition(%on) %s, %n : {self_kind}, i32 }} do {{",
                f"^bb0(%s: {self_kind}, %n: i32):",
                f"%m = arith.{'addf' if real else 'addi'} %s, %half : {self_kind}",
                "%k = arith.addi %n, %single : i32",
                f"scf.yield %m, %k : {self_kind}, i32 }}",
            ]
            last = "%u#0"
        lines.append(f"affine.store {last}, %Y[%i, %j] : {kinds['Y']}")
        return "\n".join([*lines, "} }", "return", "}"])

    def _body(self, kinds: dict[str, str], *, real: bool) -> Iterator[str]:
        kind, less = self.kind, "cmpf olt" if real else "cmpi slt"
        names = {"add": "addf", "mul": "mulf"} if real else {"add": "addi", "mul": "muli"}
        yield f"%v0 = arith.{names['add']} %s, %t : {kind}"
        for k, (what, place) in enumerate(self.steps):
            old, new = f"%v{k}", f"%v{k + 1}"
            if what in names:
                array = "B" if "," in place else "A"
                yield f"%l{k} = affine.load %{array}[{place}] : {kinds[array]}"
                yield f"{new} = arith.{names[what]} {old}, %l{k} : {kind}"
            elif what == "look up":
                yield f"%p{k} = affine.load %P[%j + %q] : {kinds['P']}"
                yield f"%c{k} = arith.index_cast %p{k} : i32 to index"
                yield f"%l{k} = memref.load %A[%c{k}] : {kinds['A']}"
                yield f"{new} = arith.{names['add']} {old}, %l{k} : {kind}"
            elif what == "count":
                yield f"%n{k} = arith.index_cast %{place} : index to i64"
                cast = "sitofp" if real else "trunci"
                if kind != "i64":
                    yield f"%f{k} = arith.{cast} %n{k} : i64 to {kind}"
                made = f"%{'n' if kind == 'i64' else 'f'}{k}"
                yield f"{new} = arith.{names['add']} {old}, {made} : {kind}"
            elif what == "choose":
                yield f"%g{k} = arith.{less}, {old}, %half : {kind}"
                yield f"{new} = arith.select %g{k}, {old}, %s : {kind}"
            else:
                yield f"%g{k} = arith.{less}, {old}, %x : {kind}"
                yield f"{new} = scf.if %g{k} -> ({kind}) {{"
                yield f"%y{k} = arith.{names['mul']} {old}, %half : {kind}"
                yield f"scf.yield %y{k} : {kind} }} else {{ scf.yield %t : {kind} }}"
        if self.stores:
            yield f"affine.store %v1, %Z[%q, %j] : {kinds['Z']}"

    def arrays(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(len(self.text))
        made: dict[str, np.ndarray] = {}
        for name, shape in SHAPES.items():
            sizes = tuple(map(int, shape.split("x")))
            if name == "P":
                made[name] = rng.integers(0, 160, sizes, dtype=np.int32)
            elif self.kind.startswith("f"):
                made[name] = (rng.random(sizes) - 0.5).astype(DTYPES[self.kind])
            else:
                made[name] = rng.integers(-99, 99, sizes).astype(DTYPES[self.kind])
        return made


PLACES = [*SUBSCRIPTS["A"], *SUBSCRIPTS["B"]]
OPERATIONS = st.one_of(
    st.tuples(st.sampled_from(["add", "mul"]), st.sampled_from(PLACES)),
    st.tuples(st.just("count"), st.sampled_from("ijq")),
    st.tuples(st.sampled_from(["look up", "choose", "branch"]), st.just("")),
)  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> Rows:
    return Rows(
        draw(st.sampled_from(list(DTYPES))),
        draw(st.integers(1, 70)),
        draw(st.integers(1, 20)),
        tuple(draw(st.lists(OPERATIONS, min_size=1, max_size=5))),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )


def check_same_bits(program: Rows, lanes: int) -> bool:
    """Whether there are vectors at all."""
    context = ir.Context()
    module = ir.Module.parse(program.text, context)
    run_passes(module.operation, (MarkParallel(), VectoriseOuter(lanes)))
    module.operation.verify()
    with context:
        machine = Machine([("before", program.text), ("after", str(module))], context)
    arrays = program.arrays()
    before, after = machine.call("before", arrays), machine.call("after", arrays)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    return any("vector" in str(op.results[0].type) for op in operations_in(module.operation)
               if len(op.results))  # fmt: skip


@settings(max_examples=examples(50), deadline=None, suppress_health_check=SLOW)
@given(program=programs(), lanes=st.sampled_from([0, 2, 4, 8, 16]))
def test_random_rows(program: Rows, lanes: int) -> None:
    event("vectors" if check_same_bits(program, lanes) else "left alone")


ALL = (("add", "%q, %j"), ("mul", "%q"), ("count", "j"), ("choose", ""), ("branch", ""))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 15, 16, 17, 33, 67])
@pytest.mark.parametrize("kind", ["f64", "i32"])
def test_rows_that_are_left_over(rows: int, kind: str) -> None:
    assert check_same_bits(Rows(kind, rows, 5, ALL, False, True, True), 8)


@pytest.mark.parametrize("kind", ["f64", "f32", "i32"])
def test_as_many_as_registers_hold(kind: str) -> None:
    assert check_same_bits(Rows(kind, 70, 5, ALL, False, True, False), 0)
    assert not check_same_bits(Rows(kind, 1, 5, ALL, False, True, False), 0)


@pytest.mark.parametrize("place", PLACES)
def test_whatever_is_loaded(place: str) -> None:
    steps = (("mul", place), ("add", place), *ALL)
    assert check_same_bits(Rows("f64", 61, 7, steps, True, False, False), 8)


def test_what_is_told() -> None:
    module = ir.Module.parse(Rows("f64", 61, 7, ALL, False, False, False).text, ir.Context())
    run_passes(module.operation, (VectoriseOuter(8),))
    (lines,) = remarks_in(module.operation).values()
    assert lines[0].startswith("vectorise-outer{lanes=8}: 8 iterations of ")
