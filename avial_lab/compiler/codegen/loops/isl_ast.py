"""isl's loops as affine operations.

isl.AstNode, the values its names stand for -> affine.for, affine.if and copies of the units' bodies
at the insertion point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl
from mlir import ir
from mlir.dialects import affine

from avial_lab.compiler.analysis.polyhedral.scop import Loop
from avial_lab.compiler.analysis.polyhedral.units import Immovable, Unit, computed_by
from avial_lab.compiler.ir.nesting import holds

NODE, EXPR, OP = isl.ast_node_type, isl.ast_expr_type, isl.ast_expr_op_type


Leaf = Callable[..., None]
"""Called with one value for each dimension."""


@dataclass
class AstLoops:
    """Writes `units` of the nest `root` in the order that an AST says.

    `values` are those of parameters by name, and of the loops' variables as they are opened.
    `leaves` write what is no unit, given their place in the order; `moved` an operation of a unit
    with other operands, in place of a copy of it. Loops of the variables (isl's) in `marked` get
    that attribute.
    """

    root: ir.Operation
    units: Mapping[str, Unit]
    values: dict[str, ir.Value]
    variables: set[str] = field(default_factory=set[str])
    leaves: Mapping[str, Callable[..., None]] = field(
        default_factory=dict[str, Callable[..., None]]
    )
    moved: Mapping[ir.Operation, Callable[[ir.Operation, list[ir.Value]], ir.Operation]] = field(
        default_factory=dict[ir.Operation, Callable[..., ir.Operation]]
    )
    marked: Mapping[str, str] = field(default_factory=dict[str, str])

    def write(self, node: isl.AstNode) -> None:
        """Raises Immovable for what affine cannot say; what was written until then stays."""
        kind = node.get_type()
        if kind == NODE.block:
            for child in _children(node):
                self.write(child)
        elif kind == NODE.for_:
            self._for(node)
        elif kind == NODE.if_:
            self._if(node)
        elif kind == NODE.mark:
            self.write(node.mark_get_node())
        else:
            self._unit(node.user_get_expr())

    # -- control

    def _for(self, node: isl.AstNode) -> None:
        name = node.for_get_iterator().get_id().get_name()
        lows = _alternatives(node.for_get_init(), OP.max)
        if node.for_is_degenerate():
            self.values[name] = self._value(node.for_get_init())
            self.write(node.for_get_body())
            return
        end = node.for_get_cond()
        if end.op_get_arg(0).get_id().get_name() != name or end.op_get_type() not in (OP.le, OP.lt):
            raise Immovable(f"the generated loop has no affine upper bound: {end.to_C_str()}")
        more = 1 if end.op_get_type() == OP.le else 0
        origin = self._loop_of(node, name)
        low, high = _Map(self), _Map(self)
        starts = [low.of(expr) for expr in lows]
        ends = [high.of(expr) + more for expr in _alternatives(end.op_get_arg(1), OP.min)]
        loop = affine.AffineForOp(
            low.map(starts),
            high.map(ends),
            node.for_get_inc().get_val().to_python(),
            iter_args=[],
            lower_bound_operands=low.operands,
            upper_bound_operands=high.operands,
            loc=self.root.location if origin is None else origin.op.location,
        )
        body = loop.operation.regions[0].blocks[0]
        if origin is not None:
            body.arguments[0].set_location(origin.variable.location)
        self.values[name] = body.arguments[0]
        self.variables.add(name)
        if name in self.marked:
            loop.operation.attributes[self.marked[name]] = ir.UnitAttr.get()
        with ir.InsertionPoint(body):
            self.write(node.for_get_body())
            affine.AffineYieldOp([])

    def _if(self, node: isl.AstNode) -> None:
        where = _Map(self)
        tests = [_constraint(where, test) for test in _conjunction(node.if_get_cond())]
        held = where.set([form for form, _ in tests], [equal for _, equal in tests])
        branch = ir.Operation.create(
            "affine.if",
            operands=where.operands,
            attributes={"condition": ir.IntegerSetAttr.get(held)},
            regions=2,
        )
        nodes = [node.if_get_then()]
        if node.if_has_else():
            nodes.append(node.if_get_else())
        for region, inner in zip(branch.regions, nodes, strict=False):
            with ir.InsertionPoint(region.blocks.append()):
                self.write(inner)
                affine.AffineYieldOp([])

    def _loop_of(self, node: isl.AstNode, variable: str) -> Loop | None:
        """The loop of ours that goes on with the variable of `node`, of the first unit in it."""
        for call in _calls(node.for_get_body()):
            if _name(call) in self.leaves:
                continue
            unit, arguments = self._called(call)
            for loop, argument in zip(unit.loops, arguments, strict=True):
                if argument.get_type() == EXPR.id and argument.get_id().get_name() == variable:
                    return loop
        return None

    # -- bodies

    def _called(self, call: isl.AstExpr) -> tuple[Unit, list[isl.AstExpr]]:
        return self.units[_name(call)], _arguments(call)

    def _unit(self, call: isl.AstExpr) -> None:
        if _name(call) in self.leaves:
            self.leaves[_name(call)](*map(self._value, _arguments(call)))
            return
        unit, arguments = self._called(call)
        inside: dict[ir.Value, ir.Value] = {}
        for loop, argument in zip(unit.loops, arguments, strict=True):
            inside[loop.variable] = self._value(argument)
        for op in self._body(unit):
            copy = self._copied(op, [inside.get(operand, operand) for operand in op.operands])
            inside.update(zip(op.results, copy.results, strict=True))

    def _copied(self, op: ir.Operation, operands: list[ir.Value]) -> ir.Operation:
        if op in self.moved:
            with op.location:
                return self.moved[op](op, operands)
        copy = op.clone().operation
        for place, operand in enumerate(operands):
            copy.operands[place] = operand
        return copy

    def _body(self, unit: Unit) -> list[ir.Operation]:
        """Its accesses in program order, and before each what it is computed by."""
        done: dict[ir.Operation, None] = {}

        def add(op: ir.Operation) -> None:
            for used in computed_by(op):
                if used not in done and holds(self.root, used):
                    add(used)
            done[op] = None

        for op in unit.operations:
            if op not in done:
                add(op)
        return list(done)

    def _value(self, expr: isl.AstExpr) -> ir.Value:
        if expr.get_type() == EXPR.id and expr.get_id().get_name() in self.values:
            return self.values[expr.get_id().get_name()]
        form = _Map(self)
        return affine.AffineApplyOp(form.map([form.of(expr)]), form.operands).result


@dataclass
class _Map:
    """The dimensions and symbols of one affine map, numbered as they are met."""

    loops: AstLoops
    dims: list[str] = field(default_factory=list[str])
    symbols: list[str] = field(default_factory=list[str])

    def of(self, expr: isl.AstExpr) -> ir.AffineExpr:
        kind = expr.get_type()
        if kind == EXPR.int:
            return ir.AffineConstantExpr.get(expr.get_val().to_python())
        if kind == EXPR.id:
            return self._named(expr.get_id().get_name())
        arguments = [self.of(expr.op_get_arg(k)) for k in range(expr.op_get_n_arg())]
        operation = expr.op_get_type()
        if operation == OP.add:
            return arguments[0] + arguments[1]
        if operation == OP.sub:
            return arguments[0] - arguments[1]
        if operation == OP.mul:
            return arguments[0] * arguments[1]
        if operation == OP.minus:
            return arguments[0] * -1
        if operation in (OP.fdiv_q, OP.pdiv_q, OP.div):
            # pdiv_q is of what is not negative, div of what divides: both are floors.
            return ir.AffineExpr.get_floor_div(*arguments)
        if operation in (OP.pdiv_r, OP.zdiv_r):
            return ir.AffineExpr.get_mod(*arguments)
        raise Immovable(f"{expr.to_C_str()} is not an affine expression")

    def _named(self, name: str) -> ir.AffineExpr:
        if name not in self.loops.values:
            raise Immovable(f"{name} is not defined here")
        if not _is_affine(self.loops.values[name]):
            raise Immovable(f"{name} is the variable of a loop that is not affine")
        if name in self.loops.variables or _is_dimension(self.loops.values[name]):
            known, get = self.dims, ir.AffineDimExpr.get
        else:
            known, get = self.symbols, ir.AffineSymbolExpr.get
        if name not in known:
            known.append(name)
        return get(known.index(name))

    def map(self, results: Sequence[ir.AffineExpr]) -> ir.AffineMap:
        return ir.AffineMap.get(len(self.dims), len(self.symbols), list(results))

    def set(self, forms: Sequence[ir.AffineExpr], equal: Sequence[bool]) -> ir.IntegerSet:
        return ir.IntegerSet.get(len(self.dims), len(self.symbols), list(forms), list(equal))

    @property
    def operands(self) -> list[ir.Value]:
        return [self.loops.values[name] for name in (*self.dims, *self.symbols)]


def _is_dimension(value: ir.Value) -> bool:
    """Whether it is the variable of a loop around, or computed from one: no symbol."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation.name != "func.func"
    return owner.operation.name != "arith.constant"


def _is_affine(value: ir.Value) -> bool:
    """Whether affine operations take it as a dimension or symbol."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner.operation.name in ("func.func", "affine.for", "affine.parallel")
    op = owner.operation
    if op.name == "affine.apply":
        return all(map(_is_affine, op.operands))
    return (
        op.name in ("arith.constant", "memref.dim") or op.block.owner.operation.name == "func.func"
    )


def _name(call: isl.AstExpr) -> str:
    return call.op_get_arg(0).get_id().get_name()


def _arguments(call: isl.AstExpr) -> list[isl.AstExpr]:
    return [call.op_get_arg(k) for k in range(1, call.op_get_n_arg())]


def _calls(node: isl.AstNode) -> list[isl.AstExpr]:
    """Every unit's place in `node`."""
    found: list[isl.AstExpr] = []

    def look(inner: isl.AstNode) -> bool:
        if inner.get_type() == NODE.user:
            found.append(inner.user_get_expr())
        return True

    node.foreach_descendant_top_down(look)
    return found


def _alternatives(expr: isl.AstExpr, operation: isl.ast_expr_op_type) -> list[isl.AstExpr]:
    """`max(a, max(b, c))` -> a, b, c."""
    if expr.get_type() != EXPR.op or expr.op_get_type() != operation:
        return [expr]
    inner = (expr.op_get_arg(k) for k in range(expr.op_get_n_arg()))
    return [each for argument in inner for each in _alternatives(argument, operation)]


def _conjunction(expr: isl.AstExpr) -> list[isl.AstExpr]:
    if expr.get_type() == EXPR.op and expr.op_get_type() in (OP.and_, OP.and_then):
        return [
            each for k in range(expr.op_get_n_arg()) for each in _conjunction(expr.op_get_arg(k))
        ]
    return [expr]


def _constraint(where: _Map, test: isl.AstExpr) -> tuple[ir.AffineExpr, bool]:
    """The form that has to be ≥ 0, or 0 where the flag says so."""
    if test.get_type() != EXPR.op or test.op_get_n_arg() != 2:
        raise Immovable(f"{test.to_C_str()} is not an affine condition")
    left, right = (where.of(test.op_get_arg(k)) for k in range(2))
    match test.op_get_type():
        case OP.ge:
            return left - right, False
        case OP.le:
            return right - left, False
        case OP.gt:
            return left - right - 1, False
        case OP.lt:
            return right - left - 1, False
        case OP.eq:
            return left - right, True
        case _:
            raise Immovable(f"{test.to_C_str()} is not an affine condition")


def _children(node: isl.AstNode) -> Iterator[isl.AstNode]:
    children = node.block_get_children()
    for k in range(children.n_ast_node()):
        yield children.get_at(k)


def written_before(loop: ir.Operation, write: Callable[[], None]) -> bool:
    """Whether `write`, which stands before `loop`, could say all of it; if not, nothing is left."""
    before = [view.operation for view in loop.block.operations]
    try:
        with loop.location, ir.InsertionPoint(loop):
            write()
    except Immovable:
        for op in reversed([view.operation for view in loop.block.operations]):
            if op not in before:
                op.erase()
        return False
    return True
