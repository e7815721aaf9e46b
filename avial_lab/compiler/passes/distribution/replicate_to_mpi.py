"""Structured programs: every rank runs the control flow, and its own part of each parallel nest.

Module of replicates, converges and tasks, with the ranks that take part -> one entry that calls the
ownership runtime (`native/ownership`) around a function for each phase; the avial dialect is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mlir import ir
from mlir.dialects import arith, func, memref, scf

from avial_lab.compiler.analysis.polyhedral.out_of_bounds import leaving
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.loops.index_arithmetic import open_sizes
from avial_lab.compiler.codegen.outside import Access, Parameters, condition_of, report
from avial_lab.compiler.codegen.runtime_calls import call_of
from avial_lab.compiler.ir.attributes import (
    LAUNCH,
    LEVEL,
    PHASES,
    PLACES,
    SPLIT_DIMENSIONS,
    SYNC,
)
from avial_lab.compiler.ir.dialects.avial import CAST
from avial_lab.compiler.ir.effects import LOADS, STORES, text_attribute
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.nesting import FORS, body_of
from avial_lab.compiler.ir.operations import constant_of, operations_in
from avial_lab.compiler.ir.phases import alone_in, halo_of, reduced_arrays
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.views import VIEWS, defining, is_memref, view_chain
from avial_lab.compiler.passes.distribution.phase_footprints import element_touches, phase_touches
from avial_lab.compiler.passes.distribution.phases import Phase, outline_phase, split_space
from avial_lab.core.errors import PassError
from avial_lab.core.runtime_constants import SPACE_WORDS, PhaseKind

MOST_PARAMETERS = 64
"""Numbers from outside that what a phase touches may hang on."""


@dataclass(frozen=True)
class ReplicateToMpi:
    """Every rank runs the control flow; around each phase the ownership runtime moves what is
    missing.

    before:  "avial.replicate"(%cpu, %A) ({ affine.for %i = 1 to 99 {…} {avial.split = 0} })
    after:   func.func private @S1(%A, %t, %low, %high) { affine.for %i = max(1, %low) to min(99,
             %high) {…} }
             func.func private @S1.touches(%params, %range) { call @avial_read(…) … }
             func.func @main(%A, %B) { …
               %parts = call @avial_begin(0, 0, @S1.touches, %params, %space)
               scf.for %part = 0 to %parts { call @avial_range(%part, %range)  call @S1(…) }
               call @avial_end() … }

    Scalar loads and stores between phases are phases of their own that every rank runs. Where the
    ranks are to meet after each level of phases, `call @avial_barrier()` follows its last one.

    With `bounds`, whether a phase will leave an array is looked at before it where that hangs on
    what the program loads; all ranks find the same, and no phase is run any more.
    """

    bounds: bool = True

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        with module.context, ir.Location.unknown(module.context):
            _Entry(module, function, self.bounds).write()

    def __str__(self) -> str:
        return "replicate-to-mpi" if self.bounds else "replicate-to-mpi{bounds=false}"


_RUNTIME = """
llvm.func @avial_begin(i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i64
llvm.func @avial_range(i64, !llvm.ptr)
llvm.func @avial_end()
llvm.func @avial_scratch(i64, !llvm.ptr)
llvm.func @avial_live() -> i64
llvm.func @avial_again(i64) -> i64
llvm.func @avial_unknown()
llvm.func @avial_cost(i64, !llvm.ptr)
llvm.func @avial_layout(i64, i64, i64, !llvm.ptr)
"""
"""What the ownership runtime offers compiled code (`runtime/native/ownership/ownership.h`)."""

_BARRIER = "llvm.func @avial_barrier()"
"""The same, where ranks meet after each level."""


@dataclass(frozen=True)
class _Room:
    """Words that the runtime reads or writes: as an array, and where it lies."""

    array: ir.Value
    pointer: ir.Value


@dataclass
class _Entry:
    """Turns the program's function into `@main`, phase by phase."""

    module: ir.Operation
    function: ir.Operation
    bounds: bool
    storages: dict[ir.Value, int] = field(default_factory=dict)
    phases: list[str] = field(default_factory=list)
    tainted: set[ir.Value] = field(default_factory=set)

    def write(self) -> None:
        self.i64 = ir.IntegerType.get_signless(64)
        self.pointer = ir.Type.parse("!llvm.ptr")
        self.block = self.function.regions[0].blocks[0]
        self.alone = alone_in(self.function) is not None
        self.meets = any(SYNC in op.attributes for op in operations_in(self.function))
        self._declare()
        self._unfold()
        self._number_storages()
        self._open()
        self._mark_tainted()
        self._control(self.block)
        self._close()

    # -- the function becomes the entry -----------------------------------------------------------

    def _declare(self) -> None:
        offered = _RUNTIME + _BARRIER * self.meets
        declared = ir.Module.parse(offered, self.module.context)
        for op in list(declared.body.operations):
            op.operation.clone(
                ip=ir.InsertionPoint.at_block_begin(self.module.regions[0].blocks[0])
            )

    def _number_storages(self) -> None:
        """Arrays in their order, then what the function allocates, which become arguments, then
        the numbers that it is handed.
        """
        numbers = [each for each in self.block.arguments if not is_memref(each)]
        for argument in self.block.arguments:
            if is_memref(argument):
                self.storages[argument] = len(self.storages)
        for op in allocations_of(self.function):
            if op.block != self.block or not ir.MemRefType(op.result.type).has_static_shape:
                # It has no place among the arrays that are known before the run.
                raise PassError(
                    "memory of a size or count known only at run time is not yet shared by ranks",
                    span=span_of(op.location),
                )
            argument = self.block.add_argument(op.result.type, op.location)
            op.result.replace_all_uses_with(argument)
            op.erase()
            self.storages[argument] = len(self.storages)
        for number in numbers:
            argument = self.block.add_argument(number.type, number.location)
            number.replace_all_uses_with(argument)
        for number in reversed(numbers):
            self.block.erase_argument(number.arg_number)

    def _unfold(self) -> None:
        """What stood in schedules and converges stands where they were."""
        for op in list(operations_in(self.function)):
            if op.name in ("avial.schedule", "avial.converge"):
                for inner in body_of(op):
                    inner.move_before(op)
        for name in ("avial.converge", "avial.schedule"):
            for op in [op for op in operations_in(self.function) if op.name == name]:
                op.erase()

    def _open(self) -> None:
        """Room on the stack for what the runtime is told, and whether this is a run at all."""
        with ir.InsertionPoint.at_block_begin(self.block):
            self.params = self._room(MOST_PARAMETERS)
            self.space = self._room(2 * SPACE_WORDS)
            self.range = self._room(2 * SPLIT_DIMENSIONS)
            live = self._call("avial_live", [])
            self.live = arith.cmpi(arith.CmpIPredicate.ne, live, arith.constant(self.i64, 0))

    def _room(self, words: int) -> _Room:
        kind = ir.MemRefType.get([words], self.i64)
        array = memref.alloca(kind, [], [])
        address = memref.ExtractAlignedPointerAsIndexOp(array).result
        pointer = self._pointer_of(address)
        return _Room(array, pointer)

    def _pointer_of(self, address: ir.Value) -> ir.Value:
        word = arith.index_cast(self.i64, address)
        return ir.Operation.create("llvm.inttoptr", [self.pointer], [word]).result

    def _close(self) -> None:
        attributes = self.function.attributes
        attributes["sym_name"] = ir.StringAttr.get("main")
        attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        for name in ("arg_attrs", "sym_visibility", "avial.storages"):
            if name in attributes:
                del attributes[name]
        inputs = [argument.type for argument in self.block.arguments]
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
        attributes["avial.phases"] = ir.ArrayAttr.get([ir.StringAttr.get(p) for p in self.phases])
        for op in list(operations_in(self.function))[::-1]:
            if op.name in ("avial.target", CAST) and not any(
                True for r in op.results for _ in r.uses
            ):
                op.erase()

    # -- control flow ------------------------------------------------------------------------------

    def _control(self, block: ir.Block) -> None:
        """Translate the phases of a block that every rank runs."""
        operations = [view.operation for view in block.operations]
        for k, op in enumerate(operations):
            if op.name in PHASES:
                self._phase(op, meets=self.meets and _ends_level(operations, k))
            elif op.name in LOADS:
                self._load(op)
            elif op.name in STORES:
                self._store(op)
            elif op.name == "memref.dealloc":
                self._erase(op)
            elif any(map(self._is_array, op.operands)) and not _only_names(op):
                raise PassError(
                    f"{op.name} between loops is not lowered", span=span_of(op.location)
                )
            elif op.name in _DIVISIONS and op.operands[1] in self.tainted:
                self._keep_from_zero(op, 1)
            elif op.name == "cf.assert" and op.operands[0] in self.tainted:
                self._assert_in_runs(op)
            elif len(op.regions):
                self._admit_unknown(op)
                if op.name == "scf.for" and op.operands[2] in self.tainted:
                    self._keep_from_zero(op, 2)
                for region in op.regions:
                    for inner in region.blocks:
                        self._control(inner)

    def _erase(self, op: ir.Operation) -> None:
        """Values are known by where they lie, and the next one may lie where these did."""
        self.tainted.difference_update(op.results)
        op.erase()

    def _mark_tainted(self) -> None:
        """Values of the control flow that come from memory: a plan cannot know them."""
        before = -1
        # What a loop hands to its next iteration may come from memory only later in the text.
        while before != len(self.tainted):
            before = len(self.tainted)
            for op in _control_operations(self.function):
                self._taint(op)

    def _taint(self, op: ir.Operation) -> None:
        tainted = self.tainted
        if op.name in LOADS:
            tainted.update(op.results)
        elif op.name in ("affine.for", "scf.for"):
            body = op.regions[0].blocks[0]
            carried = list(body.arguments)[1:]
            first = len(op.operands) - len(carried)
            if any(operand in tainted for operand in list(op.operands)[:first]):
                tainted.update((*body.arguments, *op.results))
            handed = list(body.operations[-1].operation.operands)
            for start, value, end, result in zip(
                list(op.operands)[first:], carried, handed, op.results, strict=True
            ):
                if start in tainted or end in tainted:
                    tainted.update((value, result))
        elif any(operand in tainted for operand in (*op.operands, *_yielded(op))):
            tainted.update(op.results)
            for region in op.regions:
                for block in region.blocks:
                    tainted.update(block.arguments)

    def _admit_unknown(self, op: ir.Operation) -> None:
        """Where control depends on data, the plan is told that it knows no further."""
        if op.name == "scf.while":
            end = op.regions[0].blocks[0].operations[-1].operation
            with ir.InsertionPoint(end), end.location:
                wide = arith.extui(self.i64, end.operands[0])
                again = self._call("avial_again", [wide])
                zero = arith.constant(self.i64, 0)
                end.operands[0] = arith.cmpi(arith.CmpIPredicate.ne, again, zero)
        elif any(operand in self.tainted for operand in op.operands):
            with ir.InsertionPoint(op), op.location:
                self._call("avial_unknown", [])

    def _keep_from_zero(self, op: ir.Operation, place: int) -> None:
        """A plan has zeros for what it does not know: none divides, and no loop steps by it."""
        with ir.InsertionPoint(op), op.location:
            one = arith.constant(op.operands[place].type, 1)
            op.operands[place] = arith.select(self.live, op.operands[place], one)

    def _assert_in_runs(self, op: ir.Operation) -> None:
        with ir.InsertionPoint(op), op.location:
            planned = arith.xori(self.live, arith.constant(self.live.type, 1))
            op.operands[0] = arith.ori(op.operands[0], planned)

    # -- scalars between phases --------------------------------------------------------------------

    def _load(self, op: ir.Operation) -> None:
        """Every rank needs the element; a plan goes on with zero."""
        with ir.InsertionPoint(op), op.location:
            source, indices = _element(op, 0)
            if not self._is_shared(op, source):
                return
            indices = self._begin_element(op, source, indices, writes=False)
            choice = scf.IfOp(self.live, [op.result.type], has_else=True)
            with ir.InsertionPoint(choice.then_block):
                self._arrived()
                scf.YieldOp([memref.load(source, indices)])
            with ir.InsertionPoint(choice.elseRegion.blocks[0]):
                scf.YieldOp([_zero(op.result.type)])
            self._call("avial_end", [])
        op.result.replace_all_uses_with(choice.results[0])
        self.tainted.add(choice.results[0])
        self._erase(op)

    def _store(self, op: ir.Operation) -> None:
        """Every rank writes the element, and has its last value."""
        with ir.InsertionPoint(op), op.location:
            target, indices = _element(op, 1)
            if not self._is_shared(op, target):
                return
            indices = self._begin_element(op, target, indices, writes=True)
            choice = scf.IfOp(self.live)
            with ir.InsertionPoint(choice.then_block):
                self._arrived()
                memref.store(op.operands[0], target, indices)
                scf.YieldOp([])
            self._call("avial_end", [])
        self._erase(op)

    def _is_shared(self, op: ir.Operation, array: ir.Value) -> bool:
        """Whether that array has an ownership directory; each rank has tables of its own."""
        if view_chain(array)[-1] in self.storages:
            return True
        root = defining(view_chain(array)[-1])
        if root is not None and root.name == "memref.get_global":
            return False
        raise PassError(
            "an element of one of several arrays between loops is not lowered",
            span=span_of(op.location),
        )

    def _is_array(self, value: ir.Value) -> bool:
        return is_memref(value) and view_chain(value)[-1] in self.storages

    def _arrived(self) -> None:
        self._call("avial_range", [arith.constant(self.i64, 0), self.range.pointer])

    def _begin_element(
        self, op: ir.Operation, array: ir.Value, indices: Sequence[ir.Value], *, writes: bool
    ) -> Sequence[ir.Value]:
        """The indices where the element is, once they are looked at."""
        if view_chain(array)[0] != view_chain(array)[-1]:
            raise PassError(
                "an element of a view between loops is not yet lowered", span=span_of(op.location)
            )
        name = self._new_phase("store" if writes else "load")
        unknown = any(index in self.tainted for index in indices)
        indices = self._stay(op, array, indices)
        number, rank = self.storages[array], len(indices)
        touches = element_touches(self.function, f"{name}.touches", number, rank, writes=writes)
        if unknown:
            self._call("avial_unknown", [])
        self._set(self.params, indices)
        self._set(self.space, [0, 1, 1, 0, 0, 0, 1, 1, 0, 0])
        self._begin(PhaseKind.EVERYWHERE, touches.symbol)
        return indices

    # -- phases ------------------------------------------------------------------------------------

    def _phase(self, op: ir.Operation, *, meets: bool) -> None:
        name = self._new_phase(text_attribute(op, "name"))
        if self.bounds:
            self._check(op)
        touches = phase_touches(op, f"{name}.touches", self.function, self.storages)
        with ir.InsertionPoint(op), op.location:
            space = split_space(op)
            phase = outline_phase(op, self.function, name)
            reduced = reduced_arrays(op)
            if len(touches.parameters) > MOST_PARAMETERS:
                raise PassError(
                    f"what '{name}' touches depends on {len(touches.parameters)} numbers "
                    f"(at most {MOST_PARAMETERS})",
                    span=span_of(op.location),
                )
            if any(value in self.tainted for value in (*touches.parameters, *space)):
                self._call("avial_unknown", [])
            self._set(self.params, touches.parameters)
            self._set(self.space, space)
            self._lay_out(op)
            parts = self._begin(_kind_of(op), touches.symbol)
            self._run(phase, parts, reduced, launched=PLACES in op.attributes)
            self._call("avial_end", [])
            if meets:
                self._call("avial_barrier", [])
        self._erase(op)

    def _check(self, op: ir.Operation) -> None:
        """Before a phase whose bounds come from memory: does it stay in its arrays?"""
        if not any(value in self.tainted for each in operations_in(op) for value in each.operands):
            return
        scop = read_scop(op, from_outside=True)
        names = [name for name, value in scop.parameters.items() if value in self.tainted]
        parameters = Parameters(scop)
        for found in leaving(scop, names) if names else ():
            if parameters.knows(found):
                with ir.InsertionPoint(op), op.location:
                    outside, index = condition_of(found, parameters)
                    self._report(outside, Access.of(found), index)

    def _report(self, outside: ir.Value, access: Access, index: ir.Value) -> None:
        """Where an access is outside, the phase begun last is not run, nor what comes after it."""
        branch = scf.IfOp(outside)
        with ir.InsertionPoint(branch.then_block):
            report(self.module, access, index, phase=len(self.phases) - 1)
            scf.YieldOp([])

    def _stay(
        self, op: ir.Operation, array: ir.Value, indices: Sequence[ir.Value]
    ) -> Sequence[ir.Value]:
        """The indices of an element between phases; 0 where they leave the array, which is told.
        Those that do not come from memory were looked at when the program was compiled.
        """
        kind = ir.MemRefType(array.type)
        subscripts = list(op.operands)[1 if op.name in LOADS else 2 :]
        loaded = any(operand in self.tainted for operand in subscripts)
        if not self.bounds or not loaded or not kind.has_static_shape:
            return indices
        inside: list[ir.Value] = []
        for dimension, (index, size) in enumerate(zip(indices, kind.shape, strict=True)):
            known = constant_of(index)
            if known is not None and 0 <= known < size:
                inside.append(index)
                continue
            limit, zero = (arith.constant(index.type, number) for number in (size, 0))
            outside = arith.cmpi(arith.CmpIPredicate.uge, index, limit)
            text = f"{name_of(array.location) or 'memref'}[…]"
            access = Access.at(op, text, dimension, size)
            self._report(outside, access, arith.index_cast(self.i64, index))
            inside.append(arith.select(outside, zero, index))
        return inside

    def _lay_out(self, op: ir.Operation) -> None:
        """How the phase is divided, where it is not in blocks over all ranks."""
        words = [
            ir.IntegerAttr(op.attributes[name]).value if name in op.attributes else 0
            for name in ("avial.block", "avial.columns")
        ]
        ranks: list[int] = []
        for name in ("avial.ranks", PLACES):  # places where there are any
            if name in op.attributes:
                ranks = list(ir.DenseI64ArrayAttr(op.attributes[name]))
        if self.alone:
            ranks = ranks[:1] or [0]
        if "avial.weights" in op.attributes and not any(words):
            self._weigh(list(ir.DenseI64ArrayAttr(op.attributes["avial.weights"])))
        if not any(words) and not ranks:
            return
        room = self._room(max(1, len(ranks)))
        self._set(room, ranks)
        numbers = [arith.constant(self.i64, word) for word in (*words, len(ranks))]
        self._call("avial_layout", [*numbers, room.pointer])

    def _weigh(self, weights: Sequence[int]) -> None:
        """Parts of equal work instead of equal length."""
        room = self._room(len(weights))
        self._set(room, weights)
        self._call("avial_cost", [arith.constant(self.i64, len(weights)), room.pointer])

    def _run(
        self, phase: Phase, parts: ir.Value, reduced: Sequence[ir.Value], *, launched: bool
    ) -> None:
        """The phase's function for each of this rank's ranges, called or to be launched."""
        index = ir.IndexType.get()
        replaced = {array: self._scratch(array) for array in reduced}
        low, step = arith.constant(index, 0), arith.constant(index, 1)
        loop = scf.ForOp(low, arith.index_cast(index, parts), step)
        with ir.InsertionPoint(loop.body):
            part = arith.index_cast(self.i64, loop.induction_variable)
            self._call("avial_range", [part, self.range.pointer])
            bounds = [self._word(self.range, k) for k in range(2 * SPLIT_DIMENSIONS)]
            bounds = [arith.index_cast(index, word) for word in bounds]
            arguments = [replaced.get(value, value) for value in phase.arguments]
            operands = [*arguments, *bounds]
            call = func.CallOp([], phase.symbol, operands)
            if launched:
                numbers = [self._number_of(operand) for operand in operands]
                call.attributes[LAUNCH] = ir.DenseI64ArrayAttr.get(numbers)
            scf.YieldOp([])

    def _number_of(self, operand: ir.Value) -> int:
        return self.storages.get(view_chain(operand)[-1], -1) if is_memref(operand) else -1

    def _scratch(self, array: ir.Value) -> ir.Value:
        """Memory of this rank's own in which its part of a reduction accumulates."""
        with ir.InsertionPoint.at_block_begin(self.block):
            memory = memref.alloc(array.type, open_sizes(array), [])
        pointer = self._pointer_of(memref.ExtractAlignedPointerAsIndexOp(memory).result)
        number = arith.constant(self.i64, self.storages[array])
        self._call("avial_scratch", [number, pointer])
        return memory

    def _new_phase(self, name: str) -> str:
        symbols = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in self.module.regions[0].blocks[0].operations
            if "sym_name" in op.attributes
        }
        wanted = f"phase{name}" if name[0].isdigit() else name
        found, k = wanted, 0
        while found in symbols or f"{found}.touches" in symbols or found in ("main", *self.phases):
            k += 1
            found = f"{wanted}_{k}"
        self.phases.append(found)
        return found

    # -- words for the runtime ---------------------------------------------------------------------

    def _begin(self, kind: PhaseKind, touches: str) -> ir.Value:
        number = arith.constant(self.i64, len(self.phases) - 1)
        kind_word = arith.constant(self.i64, int(kind))
        signature = ir.FunctionType.get([self.pointer, self.pointer], [])
        function = func.ConstantOp(signature, touches).result
        pointer = ir.Operation.create(CAST, [self.pointer], [function]).result
        arguments = [number, kind_word, pointer, self.params.pointer, self.space.pointer]
        return self._call("avial_begin", arguments)

    def _call(self, symbol: str, operands: Sequence[ir.Value]) -> ir.Value | None:
        results = [self.i64] if symbol in ("avial_begin", "avial_live", "avial_again") else []
        call = call_of(symbol, operands, results=results)
        return call.results[0] if results else None

    def _set(self, room: _Room, words: Sequence[ir.Value | int]) -> None:
        for k, word in enumerate(words):
            value = arith.constant(self.i64, word) if isinstance(word, int) else self._wide(word)
            memref.store(value, room.array, [arith.constant(ir.IndexType.get(), k)])

    def _word(self, room: _Room, k: int) -> ir.Value:
        return memref.load(room.array, [arith.constant(ir.IndexType.get(), k)])

    def _wide(self, value: ir.Value) -> ir.Value:
        """`value` as an i64."""
        if isinstance(value.type, ir.IndexType):
            return arith.index_cast(self.i64, value)
        width = ir.IntegerType(value.type).width
        return value if width == 64 else arith.extsi(self.i64, value)


def _ends_level(operations: Sequence[ir.Operation], k: int) -> bool:
    """Whether the phase `operations[k]` is the last of its level in this block. Loops with phases
    of their own end one.
    """
    level = operations[k].attributes.get(LEVEL)
    for later in islice(operations, k + 1, None):
        if later.name in PHASES:
            return level is None or later.attributes.get(LEVEL) != level
        if any(inner.name in PHASES for inner in operations_in(later)):
            return True
    return True


def _kind_of(op: ir.Operation) -> PhaseKind:
    if op.name == "avial.task":
        return PhaseKind.TASK
    return PhaseKind.REPLICATE if halo_of(op) is None else PhaseKind.WIDE


def _element(op: ir.Operation, first: int) -> tuple[ir.Value, Sequence[ir.Value]]:
    """The memref of a load or store (operand `first`) and its indices as plain values."""
    operands = list(op.operands)
    indices: Sequence[ir.Value] = operands[first + 1 :]
    if "map" in op.attributes:
        form = ir.AffineMapAttr(op.attributes["map"]).value
        indices = [
            ir.Operation.create(
                "affine.apply",
                [ir.IndexType.get()],
                indices,
                attributes={
                    "map": ir.AffineMapAttr.get(
                        ir.AffineMap.get(form.n_dims, form.n_symbols, [result])
                    )
                },
            ).result
            for result in form.results
        ]
    return operands[first], indices


def _yielded(op: ir.Operation) -> Iterator[ir.Value]:
    """What its regions hand to it, or to each other."""
    for region in op.regions:
        for block in region.blocks:
            yield from block.operations[-1].operation.operands


def _zero(kind: ir.Type) -> ir.Value:
    if isinstance(kind, ir.IndexType):
        return arith.constant(kind, 0)
    if isinstance(kind, ir.IntegerType):
        return arith.constant(kind, 0)
    if isinstance(kind, ir.ComplexType):
        half = kind.element_type
        parts = ir.ArrayAttr.get([ir.FloatAttr.get(half, 0.0)] * 2)
        return ir.Operation.create("complex.constant", [kind], attributes={"value": parts}).result
    return arith.constant(kind, 0.0)


def _control_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    """Operations that every rank runs: those outside of phases."""
    pending = [function.regions[0].blocks[0]]
    while pending:
        for view in pending.pop(0).operations:
            yield view.operation
            if view.operation.name not in PHASES:
                pending.extend(b for region in view.operation.regions for b in region.blocks)


def allocations_of(function: ir.Operation) -> list[ir.Operation]:
    """What the function itself allocates between phases, in program order."""
    return [
        op for op in _control_operations(function) if op.name in ("memref.alloc", "memref.alloca")
    ]


_DIVISIONS = tuple(
    f"{dialect}.{name}"
    for dialect, names in (
        ("arith", ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi")),
        ("index", ("divs", "divu", "rems", "remu", "ceildivs", "ceildivu", "floordivs")),
    )
    for name in names
)


_NAMES = (*VIEWS, CAST, "memref.dim", "arith.select", *FORS, "affine.yield", "scf.yield")


def _only_names(op: ir.Operation) -> bool:
    """Whether it gives an array another name or form, or asks for its size, without a look into
    it.
    """
    return op.name in _NAMES or op.name.startswith("avial.")
