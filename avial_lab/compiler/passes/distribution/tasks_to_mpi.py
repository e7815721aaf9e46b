"""Tasks become functions; the schedule becomes one entry in which every rank finds its own block of
steps.

Placed module -> module of func, mpi, scf, memref and whatever the bodies hold; the avial dialect is
gone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from mlir import ir
from mlir.dialects import arith, func, memref, scf

from avial_lab.compiler.codegen.outline_tasks import ArrayPart, TaskFunction, outline_tasks
from avial_lab.compiler.codegen.runtime_calls import call_of
from avial_lab.compiler.codegen.task_parameters import beginning_anywhere
from avial_lab.compiler.ir.attributes import COPIES, LAUNCH, PLACES, TOUCHES
from avial_lab.compiler.ir.effects import is_pure, symbols_in, text_attribute
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.program import PROGRAMS, scheduled_function, schedules_of, tasks_of
from avial_lab.core.errors import PassError
from avial_lab.core.regions import Box


@dataclass(frozen=True)
class TasksToMpi:
    """One function for each (different) task body, and an entry that calls them, rank by rank.

    before:  avial.task … {name = "task1", avial.rank = 0}, with avial.programs = [["run task1",
    "send 0"], …]
    after:   func.func private @task1(%a, %b, %c) {…}
             func.func @main(%a, %b, %c, %d) {
               %comm = mpi.comm_world   %retval, %rank = mpi.comm_rank(%comm)
               %on0 = arith.cmpi eq, %rank, %c0
               scf.if %on0 { call @task1(%a, %b, %c)  mpi.isend(%c, %tag, %dest, %comm) … }  …
             }

    A contiguous box is sent from where it lies; any other is packed into a staging buffer. One rank
    alone needs no MPI: its steps stand in the entry without a guard.
    """

    def __call__(self, module: ir.Operation) -> None:
        function = scheduled_function(module)
        _check_supported(function)
        _check_others(module, function)
        refuse_many(function, len(ir.ArrayAttr(function.attributes["avial.storages"])))
        with module.context, ir.Location.unknown(module.context):
            calls = outline_tasks(module, function)
            _EntryWriter(module, function, calls).write()
            function.erase()

    def __str__(self) -> str:
        return "tasks-to-mpi"


_DEVICES = """
llvm.func @avial_step_copy(i64, i64, i64, !llvm.ptr)
llvm.func @avial_step_post(i64, i64, i64, i64, i64, !llvm.ptr)
llvm.func @avial_step_send(i64, i64, i64, i64, i64, !llvm.ptr)
llvm.func @avial_step_received(i64)
llvm.func @avial_step_sent(i64)
"""


def _check_supported(function: ir.Operation) -> None:
    """PassError at the first operation that has no lowering yet, or a task that is not placed."""
    if PROGRAMS not in function.attributes:
        raise PassError(
            "the program has no avial.programs; run place-tasks before tasks-to-mpi",
            span=span_of(function.location),
        )
    block = function.regions[0].blocks[0]
    for op in block.operations:
        if op.operation.name not in ("avial.schedule", "func.return"):
            _check_between(op.operation)
    for schedule in schedules_of(function):
        for op in schedule.regions[0].blocks[0].operations:
            if op.operation.name not in ("avial.task", "avial.target", "omp.terminator"):
                _check_between(op.operation)


MOST_STORAGES = 1000
"""The entry takes an argument for each; Python's ctypes passes at most 1024."""


def refuse_many(function: ir.Operation, count: int) -> None:
    """PassError where so many arrays are more than an entry takes."""
    if count > MOST_STORAGES:
        raise PassError(
            f"a program of {count} arrays is not yet lowered (at most {MOST_STORAGES})",
            span=span_of(function.location),
            hint="make views of fewer, larger arrays",
        )


def _check_others(module: ir.Operation, program: ir.Operation) -> None:
    """PassError at a function beside the program that cannot be linked with it."""
    for op in module.regions[0].blocks[0].operations:
        function = op.operation
        if function.name != "func.func" or function == program:
            continue
        name = ir.StringAttr(function.attributes["sym_name"]).value
        if name == "main":
            raise PassError(
                "a function other than the program cannot be named @main",
                span=span_of(function.location),
                hint="give it another name",
            )
        if len(function.regions[0].blocks) == 0 and not hasattr(ctypes.CDLL(None), name):
            raise PassError(
                f"function @{name} has no body, and the C library has none of that name",
                span=span_of(function.location),
                hint="define it in the cell",
            )


def _check_between(op: ir.Operation) -> None:
    if is_pure(op) or op.name == "memref.alloc" or op.name == "memref.dealloc":
        return
    hint = "put it into a task"
    if op.name in ("avial.replicate", "avial.converge"):
        hint = "use avial.task for now"
    raise PassError(
        f"{op.name} between tasks is not yet lowered", span=span_of(op.location), hint=hint
    )


@dataclass(frozen=True)
class _Message:
    """A transfer as the entry needs it: an entry of avial.transfers."""

    index: int
    storage: str
    box: Box
    source: int
    dest: int
    producer: str
    consumer: str
    places: tuple[int, ...] = ()

    @staticmethod
    def read(index: int, attribute: ir.Attribute) -> _Message:
        facts = ir.DictAttr(attribute)
        box = Box(
            tuple(ir.DenseI64ArrayAttr(facts["start"])), tuple(ir.DenseI64ArrayAttr(facts["stop"]))
        )
        return _Message(
            index,
            facts["storage"].value,
            box,
            facts["source"].value,
            facts["dest"].value,
            facts["producer"].value,
            facts["consumer"].value,
            tuple(ir.DenseI64ArrayAttr(facts[PLACES])) if PLACES in facts else (),
        )


@dataclass(frozen=True)
class _Storage:
    """A storage as the entry needs it: an entry of avial.storages."""

    name: str
    nbytes: int
    buffers: tuple[str, ...]

    @staticmethod
    def read(attribute: ir.Attribute) -> _Storage:
        facts = ir.DictAttr(attribute)
        nbytes = prod(ir.DenseI64ArrayAttr(facts["shape"])) * facts["itemsize"].value
        buffers = tuple(ir.StringAttr(name).value for name in ir.ArrayAttr(facts["buffers"]))
        return _Storage(facts["name"].value, nbytes, buffers)


@dataclass
class _InFlight:
    """A message between its start and its wait: the request, and the staging buffer where it needs
    one.
    """

    request: ir.Value | None
    staging: ir.Value | None


@dataclass
class _EntryWriter:
    """Writes `@main` after the tasks' functions."""

    module: ir.Operation
    function: ir.Operation
    calls: dict[str, TaskFunction]
    storages: dict[str, ir.Value] = field(default_factory=dict)
    packers: dict[tuple[str, ir.Type, Box], str] = field(default_factory=dict)
    in_flight: dict[tuple[str, int], _InFlight] = field(default_factory=dict)
    buffers: dict[ir.Value, ir.Value] = field(default_factory=dict)
    numbers: dict[ir.Value, int] = field(default_factory=dict)
    on_devices: dict[str, dict[str, ir.Attribute]] = field(default_factory=dict)
    copies: list[list[int]] = field(default_factory=list)
    declared: bool = False

    def write(self) -> None:
        attributes = self.function.attributes
        self.messages = [
            _Message.read(k, facts)
            for k, facts in enumerate(ir.ArrayAttr(attributes["avial.transfers"]))
        ]
        self.task_locations = {
            text_attribute(task, "name"): _place(task.location) for task in tasks_of(self.function)
        }
        for task in tasks_of(self.function):
            if PLACES in task.attributes:
                facts = {name: task.attributes[name] for name in (PLACES, TOUCHES)}
                self.on_devices[text_attribute(task, "name")] = facts
        if COPIES in attributes:
            self.copies = [
                list(ir.DenseI64ArrayAttr(words)) for words in ir.ArrayAttr(attributes[COPIES])
            ]
        self.function.attributes["sym_name"] = ir.StringAttr.get("the tasks, being lowered")
        self.names = symbols_in(self.module)
        self.roots = _roots(self.function)
        storages = [_Storage.read(facts) for facts in ir.ArrayAttr(attributes["avial.storages"])]
        self._open_entry(storages)
        block = self.entry.regions[0].blocks[0]
        for storage, argument in zip(storages, block.arguments, strict=True):
            self.storages[storage.name] = argument
        programs = _programs(self.function)
        with ir.InsertionPoint(block), self.function.location:
            self._write_buffers(storages)
            if len(programs) == 1:
                self._write_steps(programs[0])
            else:
                self._write_ranks(programs)
            func.ReturnOp([])

    def _open_entry(self, storages: Sequence[_Storage]) -> None:
        """`@main` with one argument for each storage, named as it is."""
        with ir.InsertionPoint(self.function), self.function.location:
            entry = func.FuncOp("main", ([self._type_of(storage) for storage in storages], []))
        entry.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        entry.attributes["avial.ranks"] = self.function.attributes["avial.ranks"]
        places = [_place(self.roots[storage.buffers[0]].location) for storage in storages]
        entry.add_entry_block(
            [
                ir.Location.name(storage.name, place)
                for storage, place in zip(storages, places, strict=True)
            ]
        )
        self.entry = entry.operation

    # -- memory ------------------------------------------------------------------------------------

    def _type_of(self, storage: _Storage) -> ir.Type:
        """The buffer's own type; bytes where several buffers share the storage."""
        if len(storage.buffers) == 1:
            return self.roots[storage.buffers[0]].type
        return ir.MemRefType.get([storage.nbytes], ir.IntegerType.get_signless(8))

    def _write_buffers(self, storages: Sequence[_Storage]) -> None:
        """Map each array of the program to its storage, through a view where that is shared."""
        for number, storage in enumerate(storages):
            memory = self.storages[storage.name]
            for name in storage.buffers:
                root = self.roots[name]
                shared = len(storage.buffers) > 1
                self.buffers[root] = self._view(memory, root) if shared else memory
                self.numbers[root] = number

    def _view(self, storage: ir.Value, root: ir.Value) -> ir.Value:
        """The array `root`, with its own type, inside the bytes of `storage`."""
        offset = _argument_attributes(root)["avial.offset"].value
        wanted = ir.MemRefType(root.type)
        strides, first = wanted.get_strides_and_offset()
        itemsize = itemsize_of(wanted.element_type)
        fixed_first = 0 if first == ir.ShapedType.get_dynamic_stride_or_offset() else first
        with ir.Location.name(name_of(root.location) or "view", _place(root.location)):
            start = arith.constant(ir.IndexType.get(), offset - fixed_first * itemsize)
            flat = ir.MemRefType.get([1], wanted.element_type)
            element = memref.ViewOp(flat, storage, start, []).result
            return _reinterpret(element, wanted, fixed_first, list(wanted.shape), strides)

    # -- steps -------------------------------------------------------------------------------------

    def _write_ranks(self, programs: Sequence[Sequence[str]]) -> None:
        i32 = ir.IntegerType.get_signless(32)
        retval, comm_type = ir.Type.parse("!mpi.retval"), ir.Type.parse("!mpi.comm")
        place = _place(self.function.location)
        with ir.Location.name("comm", place):
            self.comm = ir.Operation.create("mpi.comm_world", [comm_type]).result
        with ir.Location.name("rank", place):
            asked = ir.Operation.create("mpi.comm_rank", [retval, i32], [self.comm])
        for rank, steps in enumerate(programs):
            if not steps:
                continue
            own = arith.constant(i32, rank)
            with ir.Location.name(f"on{rank}", place):
                here = arith.cmpi(arith.CmpIPredicate.eq, asked.results[1], own)
            guarded = scf.IfOp(here)
            with ir.InsertionPoint(guarded.then_block):
                self._write_steps(steps)
                scf.YieldOp([])

    def _write_steps(self, steps: Sequence[str]) -> None:
        i64 = ir.IntegerType.get_signless(64)
        writers = {
            "run": self._run,
            "post": self._post,
            "send": self._send,
            "received": self._received,
            "sent": self._sent,
            "copy": self._copy,
        }
        blocking = False
        for k, (step, following) in enumerate(zip(steps, [*steps[1:], ""], strict=False)):
            if blocking:  # this wait is part of the message before it
                blocking = False
                continue
            self.step = ir.IntegerAttr.get(i64, k)
            kind, _, what = step.partition(" ")
            if self._between_devices(kind, what):
                continue
            blocking = (kind, following) in (("send", f"sent {what}"), ("post", f"received {what}"))
            if blocking:
                self._message(kind, what)
            elif kind != "barrier":
                writers[kind](what)
            elif hasattr(self, "comm"):
                self._mpi("mpi.barrier", [self.comm], [])

    def _marked(self, op: ir.Operation) -> ir.Operation:
        op.attributes["avial.step"] = self.step
        return op

    def _mpi(
        self, name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type]
    ) -> ir.Operation:
        retval = ir.Type.parse("!mpi.retval")
        return self._marked(ir.Operation.create(name, [retval, *results], operands))

    def _run(self, task: str) -> None:
        if task not in self.calls:
            raise PassError(
                f"avial.programs runs '{task}', but there is no such task",
                span=span_of(self.function.location),
            )
        called = self.calls[task]
        with self.task_locations[task]:
            operands = [self._given(argument) for argument in called.arguments]
            operands += [arith.constant(number.type, number) for number in called.numbers]
            call = self._marked(func.CallOp([], called.symbol, operands).operation)
        if task in self.on_devices:
            numbers = [self._number_of(argument) for argument in called.arguments]
            numbers += [-1] * len(called.numbers)
            call.attributes[LAUNCH] = ir.DenseI64ArrayAttr.get(numbers)
            for name, fact in self.on_devices[task].items():
                call.attributes[name] = fact

    def _number_of(self, argument: ir.Value | ArrayPart) -> int:
        root = argument.array if isinstance(argument, ArrayPart) else argument
        return self.numbers[root]

    def _copy(self, index: str) -> None:
        """To a device or from one."""
        source, dest, array, *box = self.copies[int(index)]
        self._on_devices("avial_step_copy", (source, dest, array), box)

    def _between_devices(self, kind: str, what: str) -> bool:
        """A step of a message from device to device; whether it is one."""
        if kind not in ("post", "send", "received", "sent"):
            return False
        message = self.messages[int(what)]
        if not message.places:
            return False
        if kind in ("received", "sent"):
            self._on_devices(f"avial_step_{kind}", (message.index,))
            return True
        sends = kind == "send"
        place, peer = message.places[not sends], message.dest if sends else message.source
        array = list(self.storages).index(message.storage)
        box = [*message.box.start, *message.box.stop]
        numbers = message.index, place, array, peer, message.index % 32768
        self._on_devices(f"avial_step_{kind}", numbers, box)
        return True

    def _on_devices(
        self, name: str, numbers: Sequence[int], box: Sequence[int] | None = None
    ) -> None:
        """A call of `runtime/native/devices/places.h`; a box is its last argument."""
        i64 = ir.IntegerType.get_signless(64)
        if not self.declared:
            declared = ir.Module.parse(_DEVICES, self.module.context)
            for op in list(declared.body.operations):
                start = self.module.regions[0].blocks[0]
                op.operation.clone(ip=ir.InsertionPoint.at_block_begin(start))
            self.declared = True
        with _place(self.function.location):
            arguments = [arith.constant(i64, number) for number in numbers]
            if box is not None:
                arguments.append(_address_of_words(box))
            self._marked(call_of(name, arguments))

    def _given(self, argument: ir.Value | ArrayPart) -> ir.Value:
        """An array, or a part of one, as a task's function takes it."""
        if not isinstance(argument, ArrayPart):
            return self.buffers[argument]
        array, cut = self.buffers[argument.array], argument.cut
        view = memref.subview(array, list(cut.starts), list(cut.sizes), list(cut.steps))
        anywhere = beginning_anywhere(view.type)
        return view if view.type == anywhere else memref.cast(anywhere, view)

    def _post(self, index: str) -> None:
        message = self.messages[int(index)]
        op, staging = self._start("post", "mpi.irecv", message, message.source, message.consumer)
        self.in_flight["post", message.index] = _InFlight(op.results[1], staging)

    def _send(self, index: str) -> None:
        message = self.messages[int(index)]
        op, staging = self._start("send", "mpi.isend", message, message.dest, message.producer)
        self.in_flight["send", message.index] = _InFlight(op.results[1], staging)

    def _message(self, key: str, index: str) -> None:
        """A send or receive whose wait comes at once: one call that blocks."""
        message = self.messages[int(index)]
        if key == "send":
            _, staging = self._start(key, "mpi.send", message, message.dest, message.producer)
        else:
            _, staging = self._start(key, "mpi.recv", message, message.source, message.consumer)
        self._finish(key, message, _InFlight(None, staging))

    def _start(
        self, key: str, name: str, message: _Message, peer: int, task: str
    ) -> tuple[ir.Operation, ir.Value | None]:
        """The message from where the box lies or through a staging buffer; the call, the buffer."""
        i32 = ir.IntegerType.get_signless(32)
        request = [ir.Type.parse("!mpi.request")] if name in ("mpi.isend", "mpi.irecv") else []
        place = self.task_locations.get(task, _place(self.function.location))
        storage = self.storages[message.storage]
        with place:
            window = _window(storage, message.box)
            staging = None
            if window is None:
                element = ir.MemRefType(storage.type).element_type
                flat = ir.MemRefType.get([message.box.size], element)
                with ir.Location.name(f"staging{message.index}", place):
                    window = staging = self._marked(memref.alloc(flat, [], []).owner).result
                if key == "send":
                    self._pack("pack", message, staging)
            with ir.Location.name(f"tag{message.index}", place):
                tag = arith.constant(i32, message.index % 32768)
            with ir.Location.name("dest" if key == "send" else "source", place):
                rank = arith.constant(i32, peer)
            with ir.Location.name(f"{key}{message.index}", place):
                started = self._mpi(name, [window, tag, rank, self.comm], request)
        return started, staging

    def _received(self, index: str) -> None:
        self._finish("post", self.messages[int(index)], self._flight("post", index))

    def _sent(self, index: str) -> None:
        self._finish("send", self.messages[int(index)], self._flight("send", index))

    def _flight(self, key: str, index: str) -> _InFlight:
        flight = self.in_flight.pop((key, int(index)), None)
        if flight is None:
            raise PassError(
                f"avial.programs waits for transfer {index} before it starts",
                span=span_of(self.function.location),
            )
        return flight

    def _finish(self, key: str, message: _Message, flight: _InFlight) -> None:
        """Wait for the message; what arrived in a staging buffer goes to its place, and the buffer
        goes.
        """
        task = message.consumer if key == "post" else message.producer
        with self.task_locations.get(task, _place(self.function.location)):
            if flight.request is not None:
                self._mpi("mpi.wait", [flight.request], [])
            if flight.staging is None:
                return
            if key == "post":
                self._pack("unpack", message, flight.staging)
            self._marked(memref.DeallocOp(flight.staging).operation)

    # -- boxes that are not contiguous -------------------------------------------------------------

    def _pack(self, direction: str, message: _Message, staging: ir.Value) -> None:
        """Call the function that copies the box between storage and staging buffer."""
        storage = self.storages[message.storage]
        key = (direction, storage.type, message.box)
        if key not in self.packers:
            name = _fresh(f"{direction}_{message.storage}", self.names)
            self.packers[key] = name
            _write_packer(self.entry, name, direction, storage, staging.type, message.box)
        call = self._marked(func.CallOp([], self.packers[key], [storage, staging]).operation)
        call.attributes["avial.copy"] = ir.StringAttr.get(direction)


def _address_of_words(words: Sequence[int]) -> ir.Value:
    """Of memory of the function's that has them."""
    i64, pointer = ir.IntegerType.get_signless(64), ir.Type.parse("!llvm.ptr")
    memory = memref.alloca(ir.MemRefType.get([max(1, len(words))], i64), [], [])
    for k, word in enumerate(words):
        memref.store(arith.constant(i64, word), memory, [arith.constant(ir.IndexType.get(), k)])
    begin = arith.index_cast(i64, memref.ExtractAlignedPointerAsIndexOp(memory).result)
    return ir.Operation.create("llvm.inttoptr", [pointer], [begin]).result


def _write_packer(
    before: ir.Operation,
    name: str,
    direction: str,
    storage: ir.Value,
    flat: ir.Type,
    box: Box,
) -> None:
    """`@pack_c(%storage, %staging)`: a loop nest over the box, the staging buffer in row-major
    order.
    """
    index = ir.IndexType.get()
    with ir.InsertionPoint(before):
        function = func.FuncOp(name, ([storage.type, flat], []), visibility="private")
    block = function.add_entry_block(
        [
            ir.Location.name("storage", ir.Location.unknown()),
            ir.Location.name("staging", ir.Location.unknown()),
        ]
    )
    whole, staging = block.arguments
    with ir.InsertionPoint(block):
        one = arith.constant(index, 1)
        position: ir.Value = arith.constant(index, 0)
        outer = ir.InsertionPoint.current
        places: list[ir.Value] = []
        with outer:
            _write_nest(direction, whole, staging, box, position, one, places)
        func.ReturnOp([])


def _write_nest(
    direction: str,
    whole: ir.Value,
    staging: ir.Value,
    box: Box,
    position: ir.Value,
    one: ir.Value,
    places: list[ir.Value],
) -> None:
    """The loops of dimensions len(places)… around one copied element at `position` of the staging
    buffer.
    """
    index = ir.IndexType.get()
    d = len(places)
    if d == len(box.start):
        if direction == "pack":
            memref.store(memref.load(whole, places), staging, [position])
        else:
            memref.store(memref.load(staging, [position]), whole, places)
        return
    low, high = arith.constant(index, box.start[d]), arith.constant(index, box.stop[d])
    width = arith.constant(index, box.shape[d])
    loop = scf.ForOp(low, high, one)
    with ir.InsertionPoint(loop.body):
        here = arith.addi(arith.muli(position, width), arith.subi(loop.induction_variable, low))
        _write_nest(direction, whole, staging, box, here, one, [*places, loop.induction_variable])
        scf.YieldOp([])


def _window(storage: ir.Value, box: Box) -> ir.Value | None:
    """The box as one stretch of memory, rank 1; None where it has gaps."""
    kind = ir.MemRefType(storage.type)
    shape = tuple(kind.shape)
    if len(shape) == 1 and Box.whole(shape) == box:
        return storage
    if box.empty:
        return _reinterpret(storage, ir.MemRefType.get([0], kind.element_type), 0, [0], [1])
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    wide = [d for d in range(len(shape)) if box.shape[d] > 1]
    first = wide[0] if wide else len(shape)
    if any(box.shape[d] != shape[d] for d in range(first + 1, len(shape))):
        return None
    offset = sum(a * s for a, s in zip(box.start, strides, strict=True))
    layout = ir.StridedLayoutAttr.get(offset, [1])
    flat = ir.MemRefType.get([box.size], kind.element_type, layout if offset else None)
    return _reinterpret(storage, flat, offset, [box.size], [1])


def _reinterpret(
    source: ir.Value, result: ir.MemRefType, offset: int, shape: list[int], strides: list[int]
) -> ir.Value:
    return memref.ReinterpretCastOp(result, source, [], [], [], [offset], shape, strides).result


def _roots(function: ir.Operation) -> dict[str, ir.Value]:
    """Every array of the program by name: arguments, and allocations between tasks."""
    roots: dict[str, ir.Value] = {}
    for argument in function.regions[0].blocks[0].arguments:
        attributes = _argument_attributes(argument)
        if "avial.name" in attributes:
            roots[attributes["avial.name"].value] = argument
    for block in [
        function.regions[0].blocks[0],
        *(schedule.regions[0].blocks[0] for schedule in schedules_of(function)),
    ]:
        for op in block.operations:
            if op.operation.name == "memref.alloc":
                roots[text_attribute(op.operation, "avial.name")] = op.operation.result
    return roots


def _argument_attributes(value: ir.Value) -> ir.DictAttr:
    argument = ir.BlockArgument(value)
    function = argument.owner.owner
    if "arg_attrs" not in function.attributes:
        return ir.DictAttr.get({})
    return ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[argument.arg_number])


def _place(location: ir.Location) -> ir.Location:
    """The location without the value's name around it."""
    return location.child_loc if location.is_a_name() else location


def _programs(function: ir.Operation) -> list[list[str]]:
    """The steps of each rank, as text."""
    return [
        [ir.StringAttr(step).value for step in ir.ArrayAttr(steps)]
        for steps in ir.ArrayAttr(function.attributes[PROGRAMS])
    ]


def _fresh(name: str, taken: set[str]) -> str:
    """`name`, or `name_1`, … : the first that is not taken; taken from now on."""
    candidate, k = name, 0
    while candidate in taken:
        k += 1
        candidate = f"{name}_{k}"
    taken.add(candidate)
    return candidate
