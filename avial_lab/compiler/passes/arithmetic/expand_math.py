"""Elementary functions that `select-math` chose, as code.

Module with marked operations -> calls of private functions that hold the code and are always
written out, so that LLVM makes vectors of the loop around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mlir import ir
from mlir.dialects import arith, func, scf, vector

from avial_lab.compiler.codegen.math.floats import Kind, Real
from avial_lab.compiler.codegen.math.functions import FAR, FUNCTIONS, LIMITS
from avial_lab.compiler.ir.attributes import CHOSEN, NEAR
from avial_lab.compiler.ir.operations import operations_in

NAME = "expand-math"

_IN_LINE = "{always_inline, llvm.linkage = #llvm.linkage<internal>}"
_OUT_OF_LINE = '{passthrough = ["noinline"], llvm.linkage = #llvm.linkage<internal>}'


@dataclass(frozen=True)
class ExpandMath:
    """One function for each name and type.

    before:  %y = math.exp %x {avial.expand = "fused"} : f64
    after:   func.func private @avial.exp.f64(%x: f64) -> f64 attributes {always_inline, …} {…}
             %y = func.call @avial.exp.f64(%x) : (f64) -> f64

    Where the code has a limit, other code has what is beyond, infinities and NaN:

    before:  %y = math.sin %x {avial.expand = "fused"} : f64
    after:   %far = arith.cmpf ugt, |%x|, %limit : f64                (in @avial.sin.f64)
             %y = scf.if %far { func.call @avial.sin.f64.far(%x) } else { … }

    Of vectors it has only the lanes that are far. An operation that is `NEAR` is not asked, and has
    a function of its own, @avial.sin.f64.near.
    """

    def __call__(self, module: ir.Operation) -> None:
        chosen = [op for op in operations_in(module) if CHOSEN in op.attributes]
        with module.context, ir.Location.unknown(module.context):
            functions = _Functions(module)
            for op in chosen:
                symbol = functions.of(op)
                with ir.InsertionPoint(op), op.location:
                    value = _call(symbol, *op.operands)
                op.results[0].replace_all_uses_with(value)
                op.erase()

    def __str__(self) -> str:
        return NAME


@dataclass
class _Functions:
    """What is written at the beginning of `module`, by symbol."""

    module: ir.Operation
    known: set[str] = field(default_factory=set)

    def of(self, op: ir.Operation) -> str:
        """The symbol of the function that does what `op` does."""
        symbol, name = _symbol(op), op.name
        fused = ir.StringAttr(op.attributes[CHOSEN]).value == "fused"
        asked = name in LIMITS and NEAR not in op.attributes

        def body(*x: ir.Value) -> ir.Value:
            numbers = [Real(Kind(each.type, fused), each) for each in x]
            return self._asked(name, *numbers) if asked else FUNCTIONS[name](*numbers).value

        self._write(symbol, [each.type for each in op.operands], _IN_LINE, body)
        return symbol

    def _far(self, name: str, kind: ir.Type, *, fused: bool) -> str:
        """That of the function of any argument, out of line: it is long, and seldom asked."""
        symbol = f"avial.{name.removeprefix('math.')}.{kind}{'.apart' * (not fused)}.far"

        def body(x: ir.Value) -> ir.Value:
            return FAR[name](Real(Kind(kind, fused), x)).value

        self._write(symbol, [kind], _OUT_OF_LINE, body)
        return symbol

    def _write(
        self, symbol: str, kinds: Sequence[ir.Type], how: str, body: Callable[..., ir.Value]
    ) -> None:
        if symbol in self.known:
            return
        self.known.add(symbol)
        with ir.InsertionPoint.at_block_begin(self.module.regions[0].blocks[0]):
            function = func.FuncOp(symbol, (kinds, kinds[:1]), visibility="private")
        for attribute in ir.DictAttr(ir.Attribute.parse(how)):
            function.attributes[attribute.name] = attribute.attr
        with ir.InsertionPoint(function.add_entry_block()):
            func.ReturnOp([body(*function.arguments)])

    def _asked(self, name: str, x: Real) -> ir.Value:
        """The function `name` of x, however great."""
        limit = x.kind.number(LIMITS[name][x.kind.width]).value
        far = arith.cmpf(arith.CmpFPredicate.UGT, abs(x).value, limit)
        kind = x.value.type
        if not isinstance(kind, ir.VectorType):
            symbol = self._far(name, kind, fused=x.kind.fused)
            call = partial(_call, symbol, x.value)
            return _either(far, kind, call, lambda: FUNCTIONS[name](x).value)
        near = FUNCTIONS[name](x).value
        bit = ir.IntegerType.get_signless(1)
        some = vector.ReductionOp(bit, ir.Attribute.parse("#vector.kind<or>"), far).result
        symbol = self._far(name, kind.element_type, fused=x.kind.fused)
        lanes = partial(_lane_by_lane, symbol, x.value, far, near)
        return _either(some, kind, lanes, lambda: near)


def _symbol(op: ir.Operation) -> str:
    """`avial.exp.f64`, `avial.exp.4xf32`, `avial.exp.f64.apart`, `avial.sin.f64.near`."""
    kind = str(op.results[0].type).removeprefix("vector<").removesuffix(">")
    how = ir.StringAttr(op.attributes[CHOSEN]).value
    near = op.name in LIMITS and NEAR in op.attributes
    more = (*(how,) * (how != "fused"), *("near",) * near)
    return ".".join(("avial", op.name.removeprefix("math."), kind, *more))


def _lane_by_lane(symbol: str, x: ir.Value, far: ir.Value, near: ir.Value) -> ir.Value:
    """`near`, and in the lanes that are far what the function of that name has."""
    index = ir.IndexType.get()
    first, last, step = (arith.constant(index, n) for n in (0, near.type.shape[0], 1))
    loop = scf.ForOp(first, last, step, [near])
    lane, (so_far,) = loop.induction_variable, loop.inner_iter_args

    def replaced() -> ir.Value:
        value = _call(symbol, _lane(x, lane))
        return vector.InsertOp(value, so_far, [lane], [ir.ShapedType.get_dynamic_size()]).result

    with ir.InsertionPoint(loop.body):
        scf.YieldOp([_either(_lane(far, lane), near.type, replaced, lambda: so_far)])
    return loop.results[0]


def _call(symbol: str, *x: ir.Value) -> ir.Value:
    return func.CallOp([x[0].type], symbol, list(x)).result


def _lane(values: ir.Value, lane: ir.Value) -> ir.Value:
    return vector.ExtractOp(values, [lane], [ir.ShapedType.get_dynamic_size()]).result


def _either(
    condition: ir.Value,
    kind: ir.Type,
    if_true: Callable[[], ir.Value],
    if_false: Callable[[], ir.Value],
) -> ir.Value:
    branch = scf.IfOp(condition, [kind], has_else=True)
    for region, write in zip(branch.regions, (if_true, if_false), strict=True):
        with ir.InsertionPoint(region.blocks[0]):
            scf.YieldOp([write()])
    return branch.results[0]
