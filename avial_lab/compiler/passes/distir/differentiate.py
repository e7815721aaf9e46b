"""Reverse mode on tensors: the gradients of a function's first result, as further results.

Function on tensors that returns a number first -> the same, which also returns the derivatives of
that number by some of its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from avial_lab.compiler.analysis.placements.split_loops import loops_of
from avial_lab.compiler.codegen.math.adjoints import RULES, number
from avial_lab.compiler.frontends.mlir.tensors import run_pipeline
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.placements import has_placements, is_tensor, settle_signature
from avial_lab.compiler.ir.program import program_function, symbol_of
from avial_lab.compiler.passes.distir.propagate import arguments_named
from avial_lab.compiler.passes.distir.windows import from_windows, subscripts_of
from avial_lab.core.errors import PassError, VerifyError
from avial_lab.planning.tensor_placement import Kind

_GENERIC = "builtin.module(func.func(linalg-generalize-named-ops,convert-elementwise-to-linalg))"


@dataclass(frozen=True)
class Differentiate:
    """Also return the gradients of the first result by the arguments that `of` names.

    before:  func.func @loss(%x, %w) -> tensor<f32> { %y = matmul %x, %w … return %l }
    after:   func.func @loss(%x, %w) -> (tensor<f32>, …) {
               %y = matmul %x, %w … %dy = …
               %dw = linalg.generic(%dy, %x) { sums of products }   return %l, %dw }     (of=w)

    Every operation is a linalg.generic that yields F(inputs), or adds that up: the gradient of an
    input is a generic on the same loops that adds up, over the loops that do not run over the
    input, the result's gradient times F's derivative. (Griewank, Walther, Evaluating Derivatives,
    2008, section 3.2.)
    """

    of: str = ""
    """Names, with + between; all floating-point tensors where there is none."""

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        if has_placements(module):
            raise PassError(
                "a function is differentiated before its tensors are placed",
                span=span_of(function.location),
            )
        arguments = arguments_named(function, self.of.replace("+", " ").split())
        if not self.of:
            inputs = function.regions[0].blocks[0].arguments
            arguments = [a for a in inputs if is_tensor(a.type) and _is_float(a.type)]
        _check(function, arguments)
        run_pipeline(module, _GENERIC, "an operation could not be written as loops")
        with module.context:
            _fills_again(function)
            _Reverse(function).run(arguments)
        settle_signature(function)

    def __str__(self) -> str:
        return f"differentiate{{of={self.of}}}" if self.of else "differentiate"


def _check(function: ir.Operation, arguments: Sequence[ir.Value]) -> None:
    block = function.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    first = end.operands[0].type if len(end.operands) else None
    if first is None or not is_tensor(first) or first.rank or not _is_float(first):
        raise VerifyError(
            f"the first result of @{symbol_of(function)} is {first or 'nothing'}: only a number "
            "has a gradient",
            span=span_of(function.location),
            hint="return a loss first, as tensor<f32>",
        )
    for argument in arguments:
        if not _is_float(argument.type):
            raise VerifyError(
                f"{argument.type} has no gradient", span=span_of(argument.location),
                hint="gradients are of floating-point tensors",
            )  # fmt: skip


def _is_float(type_: ir.Type) -> bool:
    return isinstance(type_.element_type, ir.FloatType)


@dataclass
class _Reverse:
    function: ir.Operation
    gradients: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def run(self, arguments: Sequence[ir.Value]) -> None:
        block = self.function.regions[0].blocks[0]
        *operations, end = [view.operation for view in block.operations]
        needed = _depending(operations, arguments)
        with ir.InsertionPoint(end), end.location:
            self.gradients[end.operands[0]] = _filled(end.operands[0].type, 1.0)
            for op in reversed(operations):
                if any(result in self.gradients for result in op.results):
                    with op.location:
                        self._back(op, needed)
            for argument in arguments:
                if argument not in self.gradients:
                    self.gradients[argument] = _filled(argument.type, 0.0)
            found = [self.gradients[argument] for argument in arguments]
            ir.Operation.create("func.return", [], [*end.operands, *found])
        end.erase()

    def _add(self, value: ir.Value, gradient: ir.Value) -> None:
        known = self.gradients.get(value)
        self.gradients[value] = gradient if known is None else arith.addf(known, gradient)

    def _back(self, op: ir.Operation, needed: set[ir.Value]) -> None:
        gradient = self.gradients[op.results[0]]
        wanted = [k for k, v in enumerate(op.operands) if v in needed and is_tensor(v.type)]
        if not wanted:
            return
        if op.name == "linalg.generic" and len(op.results) == 1:
            self._back_generic(op, gradient, wanted)
        elif op.name in _RESHAPES:
            source = op.operands[0]
            back = ir.Operation.create(
                _RESHAPES[op.name],
                [source.type],
                [gradient],
                _reshape_attributes(op, source.type),
            )
            self._add(source, back.result)
        elif op.name in ("tensor.extract_slice", "tensor.insert_slice") and _is_static(op):
            self._back_slice(op, gradient, wanted)
        else:
            raise PassError(
                f"{op.name} has no derivative here",
                span=span_of(op.location),
                hint="write it with linalg, arith and math",
            )

    def _back_slice(self, op: ir.Operation, gradient: ir.Value, wanted: list[int]) -> None:
        """What was cut out is put back among zeros; what was put in is cut out."""
        if op.name == "tensor.extract_slice":
            zeros = _filled(op.operands[0].type, 0.0)
            self._add(op.operands[0], _inserted(op, gradient, zeros))
            return
        part, whole = op.operands[0], op.operands[1]
        if 0 in wanted:
            attributes = {name: op.attributes[name] for name in _PLACES}
            attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
            cut = ir.Operation.create("tensor.extract_slice", [part.type], [gradient], attributes)
            self._add(part, cut.result)
        if 1 in wanted:
            self._add(whole, _inserted(op, _filled(part.type, 0.0), gradient))

    def _back_generic(self, op: ir.Operation, gradient: ir.Value, wanted: list[int]) -> None:
        init = len(op.operands) - 1
        adds = _adds_up(op)
        if _uses_init(op) and not adds and not _finds_extreme(op):
            raise PassError(
                "a loop that neither adds up nor finds an extreme has no derivative here",
                span=span_of(op.location),
                hint="write it with sums: a product is exp of a sum of logarithms",
            )
        for k in wanted:
            if k == init:
                if adds:
                    self._add(op.operands[k], gradient)
                continue
            found = _input_gradient(op, gradient, k, adds=adds)
            if found is not None:
                self._add(op.operands[k], found)


_PLACES = ("static_offsets", "static_sizes", "static_strides")


def _is_static(op: ir.Operation) -> bool:
    """Whether it says with numbers where its slice lies, and the slice has all dimensions."""
    count = 1 if op.name == "tensor.extract_slice" else 2
    ranks = {value.type.rank for value in (*op.operands, *op.results) if is_tensor(value.type)}
    return len(op.operands) == count and len(ranks) == 1


def _inserted(slice_: ir.Operation, part: ir.Value, whole: ir.Value) -> ir.Value:
    """`part` where the slice lies in `whole`."""
    attributes = {name: slice_.attributes[name] for name in _PLACES}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0])
    return ir.Operation.create(
        "tensor.insert_slice", [whole.type], [part, whole], attributes
    ).result


_RESHAPES = {
    "tensor.collapse_shape": "tensor.expand_shape",
    "tensor.expand_shape": "tensor.collapse_shape",
}


def _reshape_attributes(op: ir.Operation, to: ir.Type) -> dict[str, ir.Attribute]:
    attributes = {"reassociation": op.attributes["reassociation"]}
    if op.name == "tensor.collapse_shape":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(to.shape))
    return attributes


def _fills_again(function: ir.Operation) -> None:
    """Loops that only hand a number on are fills again, which transforms know to be neutral."""
    for op in operations_named(function, "linalg.generic"):
        block = op.regions[0].blocks[0]
        if (
            len(op.operands) == 2
            and not is_tensor(op.operands[0].type)
            and _yielded(block) == block.arguments[0]
        ):
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(
                    linalg.fill(op.operands[0], outs=[op.operands[1]])
                )
            op.erase()


def _depending(operations: Sequence[ir.Operation], arguments: Sequence[ir.Value]) -> set[ir.Value]:
    """The floating-point tensors that are computed of the arguments."""
    found = set(arguments)
    for op in operations:
        if any(value in found for value in op.operands):
            found.update(r for r in op.results if is_tensor(r.type) and _is_float(r.type))
    return found


def _filled(type_: ir.Type, value: float) -> ir.Value:
    element = type_.element_type
    constant = arith.constant(element, ir.FloatAttr.get(element, value))
    empty = tensor.EmptyOp(list(type_.shape), element).result
    return linalg.fill(constant, outs=[empty])


def _yielded(block: ir.Block) -> ir.Value:
    return block.operations[len(block.operations) - 1].operation.operands[0]


def _adds_up(op: ir.Operation) -> bool:
    """Whether the body yields the total plus something that does not read it."""
    block = op.regions[0].blocks[0]
    adds = loops_of(op).kind_of(0) is Kind.SUM
    return adds and _yielded(block).owner.operation.name == "arith.addf"


def _finds_extreme(op: ir.Operation) -> bool:
    """Whether it is a reduction to the largest or the smallest."""
    return loops_of(op).kind_of(0) in (Kind.MAX, Kind.MIN)


def _uses_init(op: ir.Operation) -> bool:
    block = op.regions[0].blocks[0]
    return any(True for _ in block.arguments[len(block.arguments) - 1].uses)


def _input_gradient(op: ir.Operation, gradient: ir.Value, k: int, *, adds: bool) -> ir.Value | None:
    """The generic that adds up the result's gradient times the derivative by input k; None where
    that is 0.
    """
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    source = op.operands[k]
    map_ = ir.AffineMapAttr(maps[k]).value
    subscripts = subscripts_of(op, map_)
    if not all(each.is_loop for each in subscripts):
        order = sorted(loop for each in subscripts for loop in each.loops)
        shares = _window_gradient(op, gradient, k, order, adds=adds)
        return None if shares is None else from_windows(shares, order, subscripts, source.type)
    return _plain_gradient(op, gradient, k, source.type, maps[k], adds=adds)


def _window_gradient(
    op: ir.Operation, gradient: ir.Value, k: int, order: Sequence[int], *, adds: bool
) -> ir.Value | None:
    """The gradient of each element of each window, over the loops `order`."""
    maps = [ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"])]
    extents: dict[int, int] = {}
    for value, map_ in zip(op.operands, maps, strict=True):
        for dim, each in enumerate(map_.results):
            if isinstance(each, ir.AffineDimExpr):
                extents[each.position] = value.type.shape[dim]
    source = op.operands[k].type
    kind = ir.RankedTensorType.get([extents[loop] for loop in order], source.element_type)
    dims = [ir.AffineExpr.get_dim(loop) for loop in order]
    map_ = ir.AffineMapAttr.get(ir.AffineMap.get(maps[0].n_dims, 0, dims))
    return _plain_gradient(op, gradient, k, kind, map_, adds=adds)


def _plain_gradient(
    op: ir.Operation,
    gradient: ir.Value,
    k: int,
    kind: ir.Type,
    written: ir.Attribute,
    *,
    adds: bool,
) -> ir.Value | None:
    """That by input k, of the type `kind`, whose subscripts (`written`) are loops."""
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    inputs = list(op.operands)[:-1]
    over = _loops_in(written)
    loops = ir.AffineMapAttr(maps[0]).value.n_dims
    kinds = [
        ir.Attribute.parse(f"#linalg.iterator_type<{'parallel' if d in over else 'reduction'}>")
        for d in range(loops)
    ]
    whole = len(over) == loops
    extreme = _finds_extreme(op)
    begun = tensor.EmptyOp(list(kind.shape), kind.element_type).result
    found = [op.results[0]] if extreme else []
    operands = [gradient, *inputs, *found, begun if whole else _filled(kind, 0.0)]
    types = [v.type.element_type if is_tensor(v.type) else v.type for v in operands]
    new = ir.Operation.create(
        "linalg.generic",
        [kind],
        operands,
        {
            "indexing_maps": ir.ArrayAttr.get(
                [maps[-1], *maps[:-1], *([maps[-1]] if extreme else []), written]
            ),
            "iterator_types": ir.ArrayAttr.get(kinds),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands) - 1, 1]),
        },
        regions=1,
    )
    block = ir.Block.create_at_start(new.regions[0], types, [op.location] * len(types))
    with ir.InsertionPoint(block):
        share = _scalar_gradient(op, block, k, reduces=adds or extreme, extreme=extreme)
        if share is not None and not whole:
            share = arith.addf(block.arguments[len(types) - 1], share)
        if share is not None:
            ir.Operation.create("linalg.yield", [], [share])
    if share is None:
        new.erase()
        return None
    return _without_unused(new)


def _without_unused(op: ir.Operation) -> ir.Value:
    """The same without what its body does not need."""
    block = op.regions[0].blocks[0]
    *body, _ = [view.operation for view in block.operations]
    for each in reversed(body):
        if not any(True for result in each.results for _ in result.uses):
            each.erase()
    last = len(op.operands) - 1
    maps = list(ir.ArrayAttr(op.attributes["indexing_maps"]))
    used = [k for k in range(last) if any(True for _ in block.arguments[k].uses)]
    loops = [_loops_in(each) for each in maps]
    for loop in range(ir.AffineMapAttr(maps[0]).value.n_dims):
        # The extent of a loop is that of some operand, though nobody may read it.
        if not any(loop in loops[k] for k in (*used, last)):
            used.append(next(k for k in range(last) if loop in loops[k]))
    used.sort()
    new = ir.Operation.create(
        op.name,
        [op.results[0].type],
        [op.operands[k] for k in (*used, last)],
        {
            "indexing_maps": ir.ArrayAttr.get([maps[k] for k in (*used, last)]),
            "iterator_types": op.attributes["iterator_types"],
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(used), 1]),
        },
        regions=1,
        ip=ir.InsertionPoint(op),
    )
    for k in reversed(range(last)):
        if k not in used:
            block.erase_argument(k)
    block.append_to(new.regions[0])
    op.erase()
    return new.results[0]


def _loops_in(form: ir.Attribute) -> set[int]:
    """The loops that are subscripts by themselves."""
    results = ir.AffineMapAttr(form).value.results
    return {each.position for each in results if isinstance(each, ir.AffineDimExpr)}


def _scalar_gradient(
    op: ir.Operation, block: ir.Block, k: int, *, reduces: bool, extreme: bool
) -> ir.Value | None:
    """The body of `op` once more, and back through it: the derivative by its input k. The gradient
    of an extreme goes to those that are it, and to no others.
    """
    old = op.regions[0].blocks[0]
    inside: dict[ir.Value, ir.Value] = {
        argument: block.arguments[n + 1] for n, argument in enumerate(list(old.arguments)[:-1])
    }
    *body, _ = [view.operation for view in old.operations]
    target = _yielded(old)
    if reduces:
        sides = list(target.owner.operation.operands)
        target = sides[1] if sides[0] == old.arguments[len(old.arguments) - 1] else sides[0]
        body = [each for each in body if _yielded(old) not in list(each.results)]
    copies: list[ir.Operation] = []
    for each in body:
        copy = each.clone()
        for inner in (copy, *operations_in(copy)):
            remap(inner, inside)
        inside.update(zip(each.results, copy.results, strict=True))
        copies.append(copy)
    last = inside.get(target, target)
    gradient = block.arguments[0]
    if extreme:
        best = block.arguments[len(old.arguments)]
        here = arith.cmpf(arith.CmpFPredicate.OEQ, last, best)
        gradient = arith.select(here, gradient, number(0.0, gradient))
    found: dict[ir.Value, ir.Value] = {last: gradient}
    for each in reversed(copies):
        if not len(each.results) or each.results[0] not in found:
            continue
        if not any(isinstance(value.type, ir.FloatType) for value in each.operands):
            continue  # made of numbers, or of integers
        if each.name not in RULES:
            raise PassError(
                f"{each.name} has no derivative here", span=span_of(each.location),
                hint=f"there are those of: {', '.join(RULES)}",
            )  # fmt: skip
        shares = RULES[each.name](each, found[each.results[0]])
        for operand, share in zip(each.operands, shares, strict=True):
            if share is not None:
                known = found.get(operand)
                found[operand] = share if known is None else arith.addf(known, share)
    return found.get(block.arguments[k + 1])
