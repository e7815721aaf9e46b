"""What one device does in a segment: its operations on blocks, as code on memory.

Segment, the box of every value at a point of the mesh -> a function of the blocks that it reads and
writes, bufferized by MLIR; points with equal blocks share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, bufferization, func, memref, tensor

from avial_lab.compiler.analysis.placements.split_loops import loops_of
from avial_lab.compiler.frontends.mlir.tensors import run_pipeline
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.placements import fit_constant, is_tensor, with_placement
from avial_lab.core.regions import Box
from avial_lab.planning.tensor_placement import Kind

_TO_MEMORY = (
    "builtin.module(func.func(convert-elementwise-to-linalg,eliminate-empty-tensors),"
    "one-shot-bufferize,canonicalize,cse)"
)

COMBINED = {
    Kind.SUM: ("arith.addf", "arith.addi"),
    Kind.MAX: ("arith.maximumf", "arith.maxsi"),
    Kind.MIN: ("arith.minimumf", "arith.minsi"),
}


@dataclass(frozen=True)
class Input:
    """A block that is read: of `value`, the elements of `box`; in memory of type `kind`."""

    value: ir.Value
    box: Box
    kind: ir.MemRefType


@dataclass(frozen=True)
class Output:
    """The block `box` of `value` is written; `added`: it is combined with what is there."""

    value: ir.Value
    box: Box
    kind: ir.MemRefType
    added: Kind | None = None


def local_type(type_: ir.Type, shape: Sequence[int]) -> ir.Type:
    with type_.context, ir.Location.unknown(type_.context):
        return ir.RankedTensorType.get(list(shape), type_.element_type)


@dataclass
class Bodies:
    """The functions made so far, by what tells them apart; `module` is the program's, which gets
    the constants that they need.
    """

    module: ir.Operation
    made: dict[object, ir.Operation] = field(default_factory=dict)
    modules: list[ir.Module] = field(default_factory=list)
    constants: dict[ir.Attribute, str] = field(default_factory=dict)
    indexed: dict[ir.Operation, frozenset[int]] = field(default_factory=dict)
    """The loops whose indices an operation's body reads."""

    def of(
        self,
        operations: Sequence[ir.Operation],
        boxes: Mapping[ir.Value, Box],
        inputs: Sequence[Input],
        outputs: Sequence[Output],
    ) -> ir.Operation:
        """A function whose arguments are the inputs' memory (of those that are not empty) and then
        the outputs'. `operations` hold what is made of numbers, too; `boxes` are those of their
        results, and of operands as they are read (behind moves of this device alone).
        """
        key = (
            tuple(operations),
            tuple((value, box.shape) for value, box in boxes.items()),
            tuple((each.value, each.kind, each.box.shape) for each in inputs),
            tuple((each.value, each.kind, each.added) for each in outputs),
            self._offsets(operations, boxes),
            tuple((value, _inside(value, boxes)) for value in boxes if _is_cut(value, boxes)),
        )
        if key not in self.made:
            self.made[key] = self._make(operations, boxes, inputs, outputs)
        return self.made[key]

    def _offsets(self, operations: Sequence[ir.Operation], boxes: Mapping[ir.Value, Box]) -> object:
        """Where the loops begin whose indices are read."""
        found: list[tuple[int, int, int]] = []
        for k, op in enumerate(operations):
            if op not in self.indexed:
                self.indexed[op] = frozenset(map(_loop_of, _indices(op)))
            if self.indexed[op]:
                begins = first_of_loops(op, boxes).items()
                found += [(k, *each) for each in sorted(begins) if each[0] in self.indexed[op]]
        return tuple(found)

    def _make(
        self,
        operations: Sequence[ir.Operation],
        boxes: Mapping[ir.Value, Box],
        inputs: Sequence[Input],
        outputs: Sequence[Output],
    ) -> ir.Operation:
        with self.module.context, ir.Location.unknown(self.module.context):
            scratch = ir.Module.create()
            kinds = [e.kind for e in inputs if not e.box.empty] + [e.kind for e in outputs]
            with ir.InsertionPoint(scratch.body):
                function = func.FuncOp("body", (kinds, []))
            block = function.add_entry_block()
            with ir.InsertionPoint(block):
                self._write(operations, boxes, inputs, outputs, list(block.arguments))
                func.ReturnOp([])
            scratch.operation.verify()
            run_pipeline(scratch, _TO_MEMORY, "a tensor could not be bufferized")
            self._take_constants(scratch)
            self.modules.append(scratch)  # which the function needs
        return next(
            view.operation for view in scratch.body.operations if view.operation.name == "func.func"
        )

    def _write(
        self,
        operations: Sequence[ir.Operation],
        boxes: Mapping[ir.Value, Box],
        inputs: Sequence[Input],
        outputs: Sequence[Output],
        arguments: list[ir.Value],
    ) -> None:
        local: dict[ir.Value, ir.Value] = {}
        memories = iter(arguments)
        for each in inputs:
            kind = local_type(each.value.type, each.box.shape)
            if each.box.empty:
                local[each.value] = tensor.EmptyOp(list(each.box.shape), kind.element_type).result
            else:
                local[each.value] = bufferization.to_tensor(kind, next(memories), restrict=True)
        for op in operations:
            _clone(op, local, boxes)
        _fill_for_each([view.operation for view in ir.InsertionPoint.current.block.operations])
        totals: list[tuple[Output, ir.Value, ir.Value]] = []
        written: list[tuple[ir.Value, ir.Value]] = []
        for each, memory in zip(outputs, memories, strict=True):
            into = memory
            if each.added is not None:
                kind = ir.MemRefType.get(list(each.box.shape), each.kind.element_type)
                into = memref.AllocOp(kind, [], []).result
                totals.append((each, into, memory))
            written.append((local[each.value], into))
        _write_results(written)
        for each, part, total in totals:
            assert each.added is not None
            combine(part, None, total, each.added)

    def _take_constants(self, scratch: ir.Module) -> None:
        """The globals that bufferization made, in the program's module: one for each value."""
        for view in list(scratch.body.operations):
            op = view.operation
            if op.name != "memref.global":
                continue
            old = ir.StringAttr(op.attributes["sym_name"]).value
            value = op.attributes["initial_value"]
            known = value in self.constants
            new = self.constants.setdefault(value, f"__distir_constant_{len(self.constants)}")
            op.attributes["sym_name"] = ir.StringAttr.get(new)
            for inner in operations_in(scratch.operation):
                if inner.name == "memref.get_global" and str(inner.attributes["name"]) == f"@{old}":
                    inner.attributes["name"] = ir.FlatSymbolRefAttr.get(new)
            if known:
                continue
            first = self.module.regions[0].blocks[0]
            op.clone(ip=ir.InsertionPoint.at_block_begin(first))


def _fill_for_each(operations: Sequence[ir.Operation]) -> None:
    """What several sums begin with is made for each of them: none begins in another's memory."""
    for op in operations:
        if op.name != "linalg.fill":
            continue
        empty = op.operands[-1].owner
        for use in list(op.results[0].uses)[1:]:
            user, place = use.owner, use.operand_number
            fresh = empty.clone(ip=ir.InsertionPoint(user)).results[0]
            again = op.clone(ip=ir.InsertionPoint(user))
            again.operands[len(again.operands) - 1] = fresh
            user.operands[place] = again.results[0]


def _write_results(written: Sequence[tuple[ir.Value, ir.Value]]) -> None:
    """Each value to its memory, in which it is made where that can be.

    `eliminate-empty-tensors` then has that memory hold what the value is made of, too, and trusts
    that nobody else looks there. Where others do (`v1 = f(x); return v1 + v1, v1 + 1`), what they
    make of it may still be there when the value is written, and is not yet where it is wanted. So
    such a value is the last to be written; of several, the others are made elsewhere and copied.
    """
    apart = [pair for pair in written if not _is_made_alone(pair[0])]
    for value, into in [*(pair for pair in written if pair not in apart), *apart]:
        if (value, into) in apart[:-1]:
            memory = bufferization.to_buffer(
                ir.MemRefType.get(value.type.shape, value.type.element_type), value, read_only=True
            )
            memref.CopyOp(memory, into)
            continue
        bufferization.MaterializeInDestinationOp(None, value, into, restrict=True, writable=True)


def _is_made_alone(value: ir.Value) -> bool:
    """Whether what may become this one in place is read by what makes the next alone."""
    for before in _becoming(value):
        if len({use.owner for use in before.uses}) > 1 or not _is_made_alone(before):
            return False
    return True


def _becoming(value: ir.Value) -> list[ir.Value]:
    """Tensors whose memory may be this one's: of an operation on elements any operand."""
    if isinstance(value.owner, ir.Block):
        return []
    op = value.owner
    if op.name == "bufferization.to_tensor" or op.name == "arith.constant":
        return []
    named = op.name.startswith("linalg.")
    inits = list(op.operands)[-len(op.results) :] if named else list(op.operands)
    return [each for each in inits if is_tensor(each.type)]


def combine(part: ir.Value, other: ir.Value | None, total: ir.Value, kind: Kind) -> None:
    """`total` = `part` and `other` combined, element by element; other None: and what it holds."""
    memory = ir.MemRefType(total.type)
    element = memory.element_type
    name = COMBINED[kind][0 if isinstance(element, ir.FloatType) else 1]
    inputs = [part] if other is None else [part, other]
    same = ir.AffineMapAttr.get(ir.AffineMap.get_identity(memory.rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    generic = ir.Operation.create(
        "linalg.generic",
        [],
        [*inputs, total],
        {
            "indexing_maps": ir.ArrayAttr.get([same] * (len(inputs) + 1)),
            "iterator_types": ir.ArrayAttr.get([parallel] * memory.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
        },
        regions=1,
    )
    kinds = [element] * (len(inputs) + 1)
    block = ir.Block.create_at_start(generic.regions[0], kinds, [total.location] * len(kinds))
    with ir.InsertionPoint(block):
        left, right = block.arguments[0], block.arguments[1]
        result = ir.Operation.create(name, [element], [left, right]).result
        ir.Operation.create("linalg.yield", [], [result])


# One operation on blocks --------------------------------------------------------------------------


def _is_cut(value: ir.Value, boxes: Mapping[ir.Value, Box]) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name.startswith("distir.")


def _inside(value: ir.Value, boxes: Mapping[ir.Value, Box]) -> tuple[int, ...]:
    """Where the block of a local move begins in that which it is cut out of."""
    source = value.owner.operation.operands[0]
    if source not in boxes:
        return ()
    pairs = zip(boxes[value].start, boxes[source].start, strict=True)
    return tuple(mine - whole for mine, whole in pairs)


def _indices(op: ir.Operation) -> list[ir.Operation]:
    return [inner for inner in operations_in(op) if inner.name == "linalg.index"]


def _loop_of(index: ir.Operation) -> int:
    return ir.IntegerAttr(index.attributes["dim"]).value


def _clone(
    op: ir.Operation, local: dict[ir.Value, ir.Value], boxes: Mapping[ir.Value, Box]
) -> None:
    if op.name.startswith("distir."):
        _cut_out(op, local, boxes)
        return
    if len(op.results) and all(v in boxes and boxes[v].empty for v in op.results):
        # (A slice of no elements does not verify: its offset is behind the last.)
        for value in op.results:
            shape = list(boxes[value].shape)
            local[value] = tensor.EmptyOp(shape, value.type.element_type).result
        return
    copy = op.clone()
    for each in (copy, *operations_in(copy)):
        remap(each, local)
    for old, new in zip(op.results, copy.results, strict=True):
        if is_tensor(old.type):
            new.set_type(
                local_type(old.type, boxes[old].shape)
                if old in boxes
                else with_placement(old.type, None)
            )
        local[old] = new
    _fit_attributes(op, copy, boxes)
    _count_from(op, copy, boxes)


def _cut_out(
    op: ir.Operation, local: dict[ir.Value, ir.Value], boxes: Mapping[ir.Value, Box]
) -> None:
    """A block of what this device has whole."""
    source, result = op.operands[0], op.results[0]
    whole, mine = boxes[source], boxes[result]
    if whole == mine:
        local[result] = local[source]
        return
    offsets = [a - b for a, b in zip(mine.start, whole.start, strict=True)]
    local[result] = ir.Operation.create(
        "tensor.extract_slice",
        [local_type(result.type, mine.shape)],
        [local[source]],
        {
            "static_offsets": ir.DenseI64ArrayAttr.get(offsets),
            "static_sizes": ir.DenseI64ArrayAttr.get(list(mine.shape)),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(offsets)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        },
    ).result


def _fit_attributes(op: ir.Operation, copy: ir.Operation, boxes: Mapping[ir.Value, Box]) -> None:
    """Sizes that stand in attributes become those of the blocks."""
    if op.name == "arith.constant" and is_tensor(op.results[0].type):
        fit_constant(copy)
    elif op.name == "tensor.expand_shape":
        sizes = list(ir.RankedTensorType(copy.results[0].type).shape)
        copy.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(sizes)
    elif op.name == "tensor.extract_slice":
        old = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
        source, result = op.operands[0].type, op.results[0].type
        if len(source.shape) == len(result.shape):
            block = list(ir.RankedTensorType(copy.results[0].type).shape)
            sizes = [
                b if n == result.shape[d] else n
                for d, (n, b) in enumerate(zip(old, block, strict=True))
            ]
            copy.attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(sizes)
    elif op.name == "tensor.insert_slice" and op.operands[0].type.rank == op.results[0].type.rank:
        block = list(ir.RankedTensorType(copy.operands[0].type).shape)
        copy.attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(block)


def _count_from(op: ir.Operation, copy: ir.Operation, boxes: Mapping[ir.Value, Box]) -> None:
    """Indices in a body count from where the block begins in the whole tensor."""
    indices = _indices(copy)
    if not indices:
        return
    begins = first_of_loops(op, boxes)
    for index in indices:
        start = begins.get(_loop_of(index), 0)
        if not start:
            continue
        with ir.InsertionPoint.after(index), index.location:
            offset = arith.constant(ir.IndexType.get(), start)
            moved = arith.AddIOp(index.results[0], offset)
        index.results[0].replace_all_uses_except(moved.result, moved.operation)


def first_of_loops(op: ir.Operation, boxes: Mapping[ir.Value, Box]) -> dict[int, int]:
    """The first iteration of each loop that is not 0."""
    loops = loops_of(op)
    pairs = (
        *zip(op.operands, loops.operands, strict=True),
        *zip(op.results, loops.results, strict=True),
    )
    return {
        loop: start
        for value, dims in pairs
        if value in boxes
        for loop, start in zip(dims, boxes[value].start, strict=True)
        if loop is not None and start
    }


def inlined(body: ir.Operation, blocks: Sequence[ir.Value]) -> None:
    """The body's operations, on these blocks."""
    block = body.regions[0].blocks[0]
    inside: dict[ir.Value, ir.Value] = {}
    for argument, value in zip(block.arguments, blocks, strict=True):
        if value.type != argument.type and not _takes_any(argument):
            inside[argument] = memref.CastOp(argument.type, value).result
        else:
            inside[argument] = value
    for view in block.operations:
        op = view.operation
        if op.name == "func.return":
            continue
        copy = op.clone()
        remap(copy, inside)
        for inner in operations_in(copy):
            remap(inner, inside)
        inside.update(zip(op.results, copy.results, strict=True))


def _takes_any(argument: ir.Value) -> bool:
    """Whether all its uses take memory however it lies."""
    return all(
        use.owner.operation.name.startswith("linalg.")
        or use.owner.operation.name in ("memref.copy", "memref.load", "memref.store", "memref.dim")
        for use in argument.uses
    )
