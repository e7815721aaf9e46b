"""GPU kernels as loops over blocks and threads, for machines without a GPU.

Module with gpu.launch -> module without the gpu dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, cf, memref, scf

from avial_lab.compiler.analysis.parallelism.varying_values import varying_values
from avial_lab.compiler.analysis.parallelism.waiting_loops import waiting_loops
from avial_lab.compiler.codegen.gpu_prints import PRINT, print_on_host
from avial_lab.compiler.codegen.loops.copies_at_once import copy_at_once
from avial_lab.compiler.codegen.loops.launch_bodies import (
    FENCES,
    first_not_launched,
    not_emulated,
)
from avial_lab.compiler.codegen.loops.warp_exchanges import EXCHANGES, Together, is_exchange
from avial_lab.compiler.ir.attributes import ON_DEVICE
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import constant_of, nbytes_of, operations_in
from avial_lab.core.errors import PassError
from avial_lab.core.words import format_bytes
from avial_lab.machine.devices import CPU, kind_for
from avial_lab.machine.devices.cuda import (
    MOST_BLOCKS,
    MOST_THREADS,
    MOST_THREADS_OF,
    most_shared_bytes,
)

_DIMENSIONS = ("x", "y", "z")
_FIRST_ARGUMENT = {
    "gpu.block_id": 0,
    "gpu.thread_id": 3,
    "gpu.grid_dim": 6,
    "gpu.block_dim": 9,
}
"""Where the launch's body finds the value of an index operation: its block argument for dimension
x.
"""


@dataclass(frozen=True)
class EmulateGpu:
    """Every launch becomes loops over its blocks and, in each block, over its threads.

    before:  gpu.launch blocks(…) threads(…) { A; gpu.barrier; B }
    after:   scf.for %block … { scf.for %thread … { A }  scf.for %thread … { B } }

    A barrier ends the loop over the threads and starts the next one. What a thread keeps across it
    (`%x` of A used in B) is computed again where that is the same, else kept in an array with one
    place for each thread. A loop or an if around a barrier has to be uniform (the same for all
    threads of a block, as the barrier itself demands); it is then drawn out of the loop over the
    threads. A shuffle is two such ends: what all lanes of a warp have is written before it is read;
    around it a condition may differ between threads.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context, ir.Location.unknown(module.context):
            # The launches first, each on its own: what was inside one is gone with it.
            ops = list(_for_the_host(module))
            launches = [op for op in ops if op.name == "gpu.launch"]
            for launch in launches:
                _Launch(launch).emulate()
            if launches:
                _drop_memory_spaces(module)
                ops = list(_for_the_host(module))
            others = [op for op in ops if op.name.startswith("gpu.") and op.name != PRINT]
            print_on_host(module, [op for op in ops if op.name == PRINT])
            for op in others:
                _lower_host_operation(op)

    def __str__(self) -> str:
        return "emulate-gpu"


@dataclass
class _Scope:
    """What values of the kernel's body are called where code is being written now."""

    values: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def copy(self) -> _Scope:
        return _Scope(dict(self.values))


class _Launch:
    """Rewrites one gpu.launch in place."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.body = _body(op)
        self.index = ir.IndexType.get()
        # For every value that outlives a barrier: one place for each thread.
        self.places: dict[ir.Value, ir.Value] = {}
        self.segment_of: dict[ir.Value, int] = {}
        self.allocated: list[ir.Value] = []
        # Of which threads run what is written now, where that are not all.
        self.active: ir.Value | None = None
        self.conditions: dict[ir.Operation, list[ir.Value]] = {}
        self.slots: dict[str, ir.Value] = {}

    def emulate(self) -> None:
        _replace_index_operations(self.op, self.body)
        copy_at_once(self.op)
        for op in operations_in(self.op):
            if op.name in FENCES:
                op.erase()
            elif not_emulated(op):
                raise PassError(
                    f"{op.name} is what only a GPU does: an emulated one does not",
                    span=span_of(op.location),
                    hint="run it on an NVIDIA GPU, by itself: nothing here can check its values; "
                    '`avial-lab lower PROGRAM --on gpu --to "ptx:TASK"` shows what it gets',
                )
            elif op.name.startswith("gpu.") and op.name not in _KNOWN:
                raise PassError(
                    f"{op.name} is not yet lowered for the emulated GPU", span=span_of(op.location)
                )
        for loop in waiting_loops(self.op):
            with ir.InsertionPoint.at_block_begin(loop.regions[1].blocks[0]), loop.location:
                cf.AssertOp(arith.constant(ir.IntegerType.get_signless(1), 0), _WAITS)
        sizes = list(self.op.operands)[:6]
        self.grid, self.block = sizes[:3], sizes[3:]
        with ir.InsertionPoint(self.op), self.op.location:
            self.threads = _product(self.block)
            self._check_sizes()
            self.zero = arith.constant(self.index, 0)
            self.one = arith.constant(self.index, 1)
            outside = _Scope()
            arguments = list(self.body.arguments)
            for d in range(3):
                outside.values[arguments[6 + d]] = self.grid[d]
                outside.values[arguments[9 + d]] = self.block[d]
            self._place_attributions(arguments[12:], outside)
            self._dynamic_memory()
            self._number_segments(list(self.body.operations), 0)
            self.varying = varying_values(self.op, arguments[3:6])
            with ir.InsertionPoint(self._loops(self.grid, arguments[:3], outside)):
                self._write_block(list(self.body.operations)[:-1], outside)
            for buffer in self.allocated:
                memref.dealloc(buffer)
        self.op.erase()

    def _check_sizes(self) -> None:
        """What is known only now; `check_launches` has seen the others, and a device sees all."""
        if any(constant_of(size) is None for size in self.block):
            one = arith.constant(self.index, 1)
            few = self._is_up_to(self.threads, MOST_THREADS)
            for size, most in zip(self.block, MOST_THREADS_OF, strict=True):
                few = arith.andi(few, self._is_up_to(arith.subi(size, one), most - 1))
            cf.AssertOp(few, _TOO_MANY_THREADS)
        if any(constant_of(size) is None for size in self.grid):
            x, y, z = map(self._is_up_to, self.grid, MOST_BLOCKS)
            cf.AssertOp(arith.andi(x, arith.andi(y, z)), _TOO_MANY_BLOCKS)

    def _is_up_to(self, number: ir.Value, most: int) -> ir.Value:
        """From 0 on."""
        return arith.cmpi(arith.CmpIPredicate.ule, number, arith.constant(self.index, most))

    # -- loops -------------------------------------------------------------------------------------

    def _loops(
        self, extents: Sequence[ir.Value], variables: Sequence[ir.Value], scope: _Scope
    ) -> ir.Operation:
        """A loop nest over three extents, x innermost; the terminator of its innermost body."""
        point = None
        for d in (2, 1, 0):
            if point is None:
                loop = scf.ForOp(self.zero, extents[d], self.one)
            else:
                with ir.InsertionPoint(point):
                    loop = scf.ForOp(self.zero, extents[d], self.one)
            with ir.InsertionPoint(loop.body):
                point = scf.YieldOp([]).operation
            scope.values[variables[d]] = loop.induction_variable
        return point

    def _write_block(self, ops: Sequence[ir.OpView], scope: _Scope) -> None:
        """The operations of one block of threads: a loop over the threads for each stretch without
        a barrier.
        """
        stretch: list[ir.Operation] = []
        for view in ops:
            op = view.operation
            if not _ends_stretch(op):
                stretch.append(op)
                continue
            self._write_threads(stretch, scope)
            stretch = []
            if op.name == "scf.for":
                self._write_uniform_for(op, scope)
            elif op.name == "scf.if":
                self._write_if(op, scope)
            elif op.name == "scf.while":
                self._write_while(op, scope)
            elif is_exchange(op):
                self._write_exchange(op, scope)
            elif op.name != "gpu.barrier":
                raise PassError(
                    f"{_phase_in(op)} inside {op.name} is not yet lowered for the emulated GPU",
                    span=span_of(op.location),
                    hint="move it to the kernel's top level, or into a uniform scf.for",
                )
        self._write_threads(stretch, scope)

    def _write_threads(self, ops: Sequence[ir.Operation], scope: _Scope) -> None:
        if not ops:
            return
        with self._each_thread(scope) as inner:
            for op in ops:
                self._write_op(op, inner)

    @contextmanager
    def _each_thread(self, scope: _Scope, *, all_: bool = False) -> Iterator[_Scope]:
        """What is written meanwhile is for each active thread, or for each that there is."""
        inner = scope.copy()
        arguments = list(self.body.arguments)
        with ir.InsertionPoint(self._loops(self.block, arguments[3:6], inner)):
            self.thread = self._thread_number(inner)
            if all_ or self.active is None:
                yield inner
                return
            branch = scf.IfOp(memref.load(self.active, [self.thread]))
            with ir.InsertionPoint(branch.then_block):
                end = scf.YieldOp([])
            with ir.InsertionPoint(end.operation):
                yield inner

    def _thread_number(self, scope: _Scope) -> ir.Value:
        x, y, z = (scope.values[argument] for argument in list(self.body.arguments)[3:6])
        row = arith.addi(arith.muli(z, self.block[1]), y)
        return arith.addi(arith.muli(row, self.block[0]), x)

    def _write_op(self, op: ir.Operation, scope: _Scope) -> ir.Operation | None:
        """A copy of `op` for this thread; what outlives the stretch goes to its place."""
        if op.name == "memref.alloca" and op.result in self.places:
            scope.values[op.result] = self._fetch_place(op.result)
            return None
        for operand in _used_by(op):
            self._bind(operand, scope, op)
        copy = op.clone()
        remap(copy, scope.values)
        for inner in operations_in(copy):
            remap(inner, scope.values)
        for old, new in zip(op.results, copy.results, strict=True):
            scope.values[old] = new
            if old in self.places:
                memref.store(new, self.places[old], [self.thread])
        return copy

    # -- values that outlive a barrier -------------------------------------------------------------

    def _bind(self, value: ir.Value, scope: _Scope, user: ir.Operation) -> None:
        """Make `value` known in `scope`: from its place, or by computing it again."""
        if value in scope.values or value not in self.segment_of:
            return
        if value in self.places:
            scope.values[value] = self._fetch_place(value)
            return
        owner = value.owner
        if isinstance(owner, ir.Block) or not is_pure(owner.operation):
            raise PassError(
                f"a value of type {value.type} is kept across a gpu.barrier;"
                " not yet lowered for the emulated GPU",
                span=span_of(user.location),
            )
        self._write_op(owner.operation, scope)

    def _fetch_place(self, value: ir.Value) -> ir.Value:
        place = self.places[value]
        if not isinstance(value.type, ir.MemRefType):
            return memref.load(place, [self.thread])
        kind = ir.MemRefType(value.type)
        size = arith.constant(self.index, _nbytes(kind))
        return memref.ViewOp(_in_host_memory(kind), place, arith.muli(self.thread, size), []).result

    def _number_segments(self, ops: Sequence[ir.OpView], segment: int) -> int:
        """Number the stretches between barriers; give a place to each value used in a later one
        than its own.
        """
        for view in ops:
            op = view.operation
            if not _ends_stretch(op):
                for result in op.results:
                    self.segment_of[result] = segment
                for operand in _used_by(op):
                    self._keep(operand, segment)
                continue
            segment += 1
            for operand in op.operands:
                self._keep(operand, segment)
            self._make_room_around(op)
            for region in op.regions:
                for block in region.blocks:
                    for argument in _carried(op, block):
                        self.segment_of[argument] = segment
                        self._give_place(argument)
                    segment = self._number_segments(list(block.operations), segment) + 1
            for result in op.results:
                self.segment_of[result] = -1
                self._give_place(result)
        return segment

    def _make_room_around(self, op: ir.Operation) -> None:
        """For what a shuffle exchanges, and for which threads what is around it is done."""
        if is_exchange(op):
            shown = EXCHANGES[op.name].shown(op)
            if shown is not None and str(shown.type) not in self.slots:
                self.slots[str(shown.type)] = self._place_for(shown.type)
        elif op.name in ("scf.if", "scf.while"):
            bit = ir.IntegerType.get_signless(1)
            self.conditions[op] = [self._place_for(bit) for _ in op.regions]

    def _place_for(self, kind: ir.Type) -> ir.Value:
        dynamic = ir.ShapedType.get_dynamic_size()
        place = memref.alloc(ir.MemRefType.get([dynamic], kind), [self.threads], [])
        self.allocated.append(place)
        return place

    def _keep(self, value: ir.Value, segment: int) -> None:
        defined = self.segment_of.get(value)
        if defined is None or defined == segment or value in self.places:
            return
        owner = value.owner
        if isinstance(owner, ir.Block):
            return
        if is_pure(owner.operation):
            # Computed again there, from what it needs, which has to be kept then.
            for operand in _used_by(owner.operation):
                self._keep(operand, segment)
        else:
            self._give_place(value)

    def _give_place(self, value: ir.Value) -> None:
        if value in self.places:
            return
        dynamic = ir.ShapedType.get_dynamic_size()
        if isinstance(value.type, ir.MemRefType):
            kind = ir.MemRefType(value.type)
            if isinstance(value.owner, ir.Block) or value.owner.operation.name != "memref.alloca":
                return  # refused where it is used
            if not kind.has_static_shape:
                return
            size = arith.muli(self.threads, arith.constant(self.index, _nbytes(kind)))
            place = ir.MemRefType.get([dynamic], ir.IntegerType.get_signless(8))
            self.places[value] = memref.alloc(place, [size], [])
            self.allocated.append(self.places[value])
        else:
            self.places[value] = self._place_for(value.type)

    def _place_attributions(self, arguments: Sequence[ir.Value], scope: _Scope) -> None:
        """Workgroup memory is one buffer for all blocks in turn; private memory one place for each
        thread.
        """
        shared = 0
        if "workgroup_attributions" in self.op.attributes:
            shared = ir.IntegerAttr(self.op.attributes["workgroup_attributions"]).value
        for k, argument in enumerate(arguments):
            kind = _in_host_memory(ir.MemRefType(argument.type))
            if k < shared:
                scope.values[argument] = memref.alloc(kind, [], [])
                self.allocated.append(scope.values[argument])
                continue
            self.segment_of[argument] = -1
            size = arith.muli(self.threads, arith.constant(self.index, _nbytes(kind)))
            dynamic = ir.ShapedType.get_dynamic_size()
            place = ir.MemRefType.get([dynamic], ir.IntegerType.get_signless(8))
            self.places[argument] = memref.alloc(place, [size], [])
            self.allocated.append(self.places[argument])

    def _dynamic_memory(self) -> None:
        """Of a size that the launch is given: one buffer for all blocks in turn."""
        asked = [op for op in operations_in(self.op) if op.name == _DYNAMIC_MEMORY]
        if not asked:
            return
        given = list(self.op.operands)[6:]
        size = arith.index_cast(self.index, given[0]) if given else self.zero
        cf.AssertOp(self._is_up_to(size, most_shared_bytes("gpu")), _TOO_MUCH_SHARED)
        dynamic = ir.ShapedType.get_dynamic_size()
        byte = ir.IntegerType.get_signless(8)
        memory = memref.alloc(ir.MemRefType.get([dynamic], byte), [size], [])
        self.allocated.append(memory)
        for op in asked:
            op.result.set_type(_in_host_memory(ir.MemRefType(op.result.type)))
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(memref.cast(op.result.type, memory))
            op.erase()

    # -- uniform control flow around barriers ------------------------------------------------------

    def _is_uniform(self, value: ir.Value, scope: _Scope) -> bool:
        """Whether `_uniform` can compute it."""
        if value in scope.values:
            return True
        if value not in self.segment_of and value not in list(self.body.arguments):
            return True
        owner = value.owner
        if isinstance(owner, ir.Block) or not is_pure(owner.operation):
            return False
        return all(self._is_uniform(operand, scope) for operand in _used_by(owner.operation))

    def _uniform(self, value: ir.Value, scope: _Scope, user: ir.Operation) -> ir.Value:
        """`value`, computed once for the whole block of threads."""
        if value in scope.values:
            return scope.values[value]
        if value not in self.segment_of and value not in list(self.body.arguments):
            return value
        owner = value.owner
        if isinstance(owner, ir.Block) or not is_pure(owner.operation):
            raise _differs(user)
        for operand in _used_by(owner.operation):
            scope.values.setdefault(operand, self._uniform(operand, scope, user))
        copy = owner.operation.clone()
        remap(copy, scope.values)
        return copy.results[list(owner.operation.results).index(value)]

    def _of_first(self, value: ir.Value, scope: _Scope, user: ir.Operation) -> ir.Value:
        """`value`, which all threads have, as the first of them has it."""
        inner = scope.copy()
        for argument in list(self.body.arguments)[3:6]:
            inner.values[argument] = self.zero
        self.thread = self.zero
        self._bind(value, inner, user)
        return inner.values.get(value, value)

    def _write_uniform_for(self, op: ir.Operation, scope: _Scope) -> None:
        low, high, step = (self._uniform(value, scope, op) for value in list(op.operands)[:3])
        block = op.regions[0].blocks[0]
        carried = list(block.arguments)[1:]
        self._hand_over(list(op.operands)[3:], carried, scope, op)
        with op.location:
            loop = scf.ForOp(low, high, step)
        inner = scope.copy()
        inner.values[block.arguments[0]] = loop.induction_variable
        with ir.InsertionPoint(loop.body):
            ops = list(block.operations)
            self._write_block(ops[:-1], inner)
            self._hand_over(list(ops[-1].operands), carried, inner, op)
            scf.YieldOp([])
        self._hand_over(carried, list(op.results), scope, op)

    def _write_if(self, op: ir.Operation, scope: _Scope) -> None:
        differs = not self._is_uniform(op.operands[0], scope)
        if differs and not _waits_for_block(op):
            self._write_branches(op, scope)
        else:
            self._write_uniform_if(op, scope)

    def _write_branches(self, op: ir.Operation, scope: _Scope) -> None:
        """One after the other, each for those of the threads that take it."""
        taken, outer = self.conditions[op], self.active
        true = arith.constant(ir.IntegerType.get_signless(1), 1)
        with self._each_thread(scope, all_=True) as inner:
            self._bind(op.operands[0], inner, op)
            condition = inner.values.get(op.operands[0], op.operands[0])
            runs = true if outer is None else memref.load(outer, [self.thread])
            memref.store(arith.andi(runs, condition), taken[0], [self.thread])
            others = arith.andi(runs, arith.xori(condition, true))
            memref.store(others, taken[1], [self.thread])
        for region, active in zip(op.regions, taken, strict=True):
            if not len(region.blocks):
                continue
            self.active = active
            ops = list(region.blocks[0].operations)
            inner = scope.copy()
            self._write_block(ops[:-1], inner)
            self._hand_over(list(ops[-1].operands), list(op.results), inner, op)
        self.active = outer

    def _write_while(self, op: ir.Operation, scope: _Scope) -> None:
        """Round by round for those of the threads that go on, until there is none."""
        runs, outer = self.conditions[op][0], self.active
        bit, flag = ir.IntegerType.get_signless(1), self.conditions[op][1]
        true, false = arith.constant(bit, 1), arith.constant(bit, 0)
        before, after = (region.blocks[0] for region in op.regions)
        if _waits_for_block(op) and _last(before).operands[0] in self.varying:
            raise _differs(op)
        self._hand_over(list(op.operands), list(before.arguments), scope, op)
        with self._each_thread(scope, all_=True):
            begins = true if outer is None else memref.load(outer, [self.thread])
            memref.store(begins, runs, [self.thread])
        self.active = runs
        with op.location:
            loop = scf.WhileOp([], [])
        rounds = [ir.Block.create_at_start(region, []) for region in loop.operation.regions]
        with ir.InsertionPoint(rounds[0]):
            inner, ops = scope.copy(), list(before.operations)
            self._write_block(ops[:-1], inner)
            goes_on, *handed = list(ops[-1].operands)
            self._hand_over(handed, list(op.results), inner, op)
            self._hand_over(handed, list(after.arguments), inner, op)
            memref.store(false, flag, [self.zero])
            with self._each_thread(inner) as own:
                self._bind(goes_on, own, op)
                condition = own.values.get(goes_on, goes_on)
                memref.store(condition, runs, [self.thread])
                any_ = arith.ori(condition, memref.load(flag, [self.zero]))
                memref.store(any_, flag, [self.zero])
            scf.ConditionOp(memref.load(flag, [self.zero]), [])
        with ir.InsertionPoint(rounds[1]):
            inner, ops = scope.copy(), list(after.operations)
            self._write_block(ops[:-1], inner)
            self._hand_over(list(ops[-1].operands), list(before.arguments), inner, op)
            scf.YieldOp([])
        self.active = outer

    def _write_exchange(self, op: ir.Operation, scope: _Scope) -> None:
        """What each thread shows goes to its slot, then each finds its own among the slots."""
        exchange = EXCHANGES[op.name]
        shown, slots = exchange.shown(op), None
        with op.location:
            if shown is not None:
                slots = self.slots[str(shown.type)]
                with self._each_thread(scope) as inner:
                    self._bind(shown, inner, op)
                    memref.store(inner.values.get(shown, shown), slots, [self.thread])
            here = None if exchange.of_block else self.active
            if here is None and not len(op.results):
                return
            with self._each_thread(scope) as inner:
                for operand in op.operands:
                    self._bind(operand, inner, op)
                given = [inner.values.get(operand, operand) for operand in op.operands]
                together = Together(self.thread, self.threads, here, slots)
                if here is not None:
                    all_come = together.all_come(exchange.members(given))
                    cf.AssertOp(all_come, _some_do_not_come(op))
                found = exchange.find(op, together, given)
                for result, got in zip(op.results, found, strict=True):
                    memref.store(got, self.places[result], [self.thread])

    def _write_uniform_if(self, op: ir.Operation, scope: _Scope) -> None:
        condition = op.operands[0]
        if self._is_uniform(condition, scope) or condition in self.varying:
            condition = self._uniform(condition, scope, op)
        else:
            condition = self._of_first(condition, scope, op)
        has_else = len(op.regions[1].blocks) > 0
        with op.location:
            branch = scf.IfOp(condition, has_else=has_else)
        targets = [branch.then_block, branch.else_block] if has_else else [branch.then_block]
        for region, target in zip(op.regions, targets, strict=False):
            ops = list(region.blocks[0].operations)
            inner = scope.copy()
            with ir.InsertionPoint(target):
                self._write_block(ops[:-1], inner)
                self._hand_over(list(ops[-1].operands), list(op.results), inner, op)
                scf.YieldOp([])

    def _hand_over(
        self,
        sources: Sequence[ir.Value],
        targets: Sequence[ir.Value],
        scope: _Scope,
        user: ir.Operation,
    ) -> None:
        """Each thread's `sources` go to the places of `targets` (loop-carried values, results)."""
        if not targets:
            return
        for target in targets:
            if target not in self.places:
                raise PassError(
                    f"a value of type {target.type} is carried through {user.name} across a"
                    " gpu.barrier; not yet lowered for the emulated GPU",
                    span=span_of(user.location),
                )
        with self._each_thread(scope) as inner:
            for source in sources:
                self._bind(source, inner, user)
            # All are read before the first is written: a loop may swap two values.
            values = [inner.values.get(source, source) for source in sources]
            for value, target in zip(values, targets, strict=True):
                memref.store(value, self.places[target], [self.thread])


def _for_the_host(module: ir.Operation) -> Iterator[ir.Operation]:
    """All operations but those of kernels that only devices run, now or later."""
    for view in module.regions[0].blocks[0].operations:
        if ON_DEVICE in view.operation.attributes:
            continue
        inside = list(operations_in(view.operation))
        later = [op for op in inside if op.name == "gpu.launch" and _is_for_devices(op)]
        left_out = {*later, *(op for launch in later for op in operations_in(launch))}
        yield view.operation
        yield from (op for op in inside if op not in left_out) if left_out else inside


def _is_for_devices(launch: ir.Operation) -> bool:
    """Whether it is in a task for GPUs, which is made a kernel later."""
    around = parent_of(launch)
    while around is not None and around.name != "avial.task":
        around = parent_of(around)
    if around is None:
        return False
    target = around.operands[0].owner
    arch = ir.StringAttr(target.attributes["arch"]).value
    return kind_for(arch).family != CPU.family and first_not_launched(around) is None


def _body(op: ir.Operation) -> ir.Block:
    blocks = list(op.regions[0].blocks)
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    if len(blocks) != 1:
        raise PassError(
            "a kernel of several blocks is not yet lowered for the emulated GPU",
            span=span_of(op.location),
            hint="use scf.if and scf.for in place of branches",
        )
    if segments[0] or any(segments[7:10]) or len(op.results):
        raise PassError(
            "gpu.launch with async or clusters is not yet lowered for the emulated GPU",
            span=span_of(op.location),
        )
    return blocks[0]


def _replace_index_operations(launch: ir.Operation, body: ir.Block) -> None:
    """`gpu.thread_id x` and its like are the launch's own block arguments."""
    arguments = list(body.arguments)
    for op in list(operations_in(launch)):
        if op.name not in _FIRST_ARGUMENT and op.name != "gpu.global_id":
            continue
        d = next(
            k
            for k, name in enumerate(_DIMENSIONS)
            if f"dim {name}" in str(op.attributes["dimension"])
        )
        if op.name == "gpu.global_id":
            with ir.InsertionPoint(op), op.location:
                skipped = arith.muli(arguments[d], arguments[9 + d])
                value = arith.addi(skipped, arguments[3 + d])
        else:
            value = arguments[_FIRST_ARGUMENT[op.name] + d]
        op.result.replace_all_uses_with(value)
        op.erase()


_PHASES = ("gpu.barrier", *EXCHANGES)
"""What all threads of a block, or of a warp, come to before any of them goes on; those of a block
first.
"""

_DYNAMIC_MEMORY = "gpu.dynamic_shared_memory"

_KNOWN = (*_PHASES, PRINT, _DYNAMIC_MEMORY, "gpu.terminator")


def _differs(op: ir.Operation) -> PassError:
    return PassError(
        f"{_phase_in(op)} inside {op.name} whose bounds or condition may differ between threads",
        span=span_of(op.location),
        hint="compute them from constants, arguments and block ids only",
    )


_TOO_MANY_THREADS = (
    f"gpu.launch: a block has from 1 to {MOST_THREADS:,} threads, up to "
    f"{' x '.join(f'{most:,}' for most in MOST_THREADS_OF)}; use smaller blocks, and more of them"
)

_TOO_MANY_BLOCKS = (
    f"gpu.launch: a grid has up to {' x '.join(f'{most:,}' for most in MOST_BLOCKS)} blocks; let "
    "each thread do several elements, in a loop"
)

_TOO_MUCH_SHARED = (
    f"gpu.launch: a block has up to {format_bytes(most_shared_bytes('gpu'))} of shared memory; use "
    "smaller tiles"
)


_WAITS = (
    "scf.while: it waits for memory that nobody writes meanwhile: threads, blocks and launches run "
    "one after the other here, and on a GPU launches do; let another launch, after the one that "
    "writes, do what comes then"
)


def _some_do_not_come(op: ir.Operation) -> str:
    return (
        f"{op.name}: threads of a warp that it waits for do not come to it, and a GPU may wait for "
        "ever; move it out of the condition, or give a mask of those that take it"
    )


def _ends_stretch(op: ir.Operation) -> bool:
    return bool(_phase_in(op))


def _phase_in(op: ir.Operation) -> str:
    """What in it, or what it is, ends a stretch: a barrier, else a shuffle, else nothing."""
    names = {op.name, *(inner.name for inner in operations_in(op))}
    return next((name for name in _PHASES if name in names), "")


def _waits_for_block(op: ir.Operation) -> bool:
    phase = _phase_in(op)
    return phase == "gpu.barrier" or (phase in EXCHANGES and EXCHANGES[phase].of_block)


def _last(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def _carried(op: ir.Operation, block: ir.Block) -> Sequence[ir.Value]:
    """What each thread has in a block of its own; a loop's counter is the same for all."""
    return list(block.arguments)[1:] if op.name == "scf.for" else list(block.arguments)


def _used_by(op: ir.Operation) -> list[ir.Value]:
    """The values that `op`, or what is inside it, uses."""
    return [*op.operands, *(operand for inner in operations_in(op) for operand in inner.operands)]


def _product(values: Sequence[ir.Value]) -> ir.Value:
    x, y, z = values
    return arith.muli(arith.muli(x, y), z)


def _nbytes(kind: ir.MemRefType) -> int:
    """Rounded up: places of neighbouring threads stay aligned whatever the element."""
    return (nbytes_of(kind) + 15) // 16 * 16


def _in_host_memory(kind: ir.MemRefType) -> ir.MemRefType:
    """The type in the host's one memory space."""
    if kind.memory_space is None:
        return kind
    return ir.MemRefType.get(list(kind.shape), kind.element_type, kind.layout)


def _drop_memory_spaces(module: ir.Operation) -> None:
    """A CPU has one memory: `memref<4xf32, 3>` becomes `memref<4xf32>` everywhere in the functions'
    bodies.
    """
    for op in _for_the_host(module):
        for result in op.results:
            if isinstance(result.type, ir.MemRefType):
                result.set_type(_in_host_memory(ir.MemRefType(result.type)))
        if op.name == "memref.global":
            kind = ir.MemRefType(ir.TypeAttr(op.attributes["type"]).value)
            op.attributes["type"] = ir.TypeAttr.get(_in_host_memory(kind))
        for region in op.regions:
            for block in region.blocks if op.name not in ("func.func", "gpu.func") else ():
                for argument in block.arguments:
                    if isinstance(argument.type, ir.MemRefType):
                        argument.set_type(_in_host_memory(ir.MemRefType(argument.type)))


def _lower_host_operation(op: ir.Operation) -> None:
    """gpu operations outside kernels: memory is the host's; anything else is refused."""
    plain = {
        "gpu.alloc": "memref.alloc",
        "gpu.dealloc": "memref.dealloc",
        "gpu.memcpy": "memref.copy",
    }
    if op.name not in plain or len(op.results) > 1 or _is_asynchronous(op):
        raise PassError(
            f"{op.name} is not yet lowered for the emulated GPU", span=span_of(op.location)
        )
    with ir.InsertionPoint(op), op.location:
        if op.name == "gpu.alloc":
            kind = _in_host_memory(ir.MemRefType(op.results[0].type))
            fresh = memref.alloc(kind, list(op.operands), [])
            op.results[0].replace_all_uses_with(fresh)
        elif op.name == "gpu.dealloc":
            memref.dealloc(op.operands[0])
        else:
            # gpu.memcpy names the target first, memref.copy the source.
            memref.copy(op.operands[1], op.operands[0])
    op.erase()


def _is_asynchronous(op: ir.Operation) -> bool:
    token = "!gpu.async.token"
    return any(str(value.type) == token for value in [*op.operands, *op.results])
