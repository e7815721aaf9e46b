"""What the threads of a block do together, in fewer operations.

Launches as other compilers write them -> launches of one block of code, with barriers, shuffles and
memory that threads share: the same code for devices, for their emulation and for the
reference, so that sums are added in the same order everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mlir import ir, passmanager
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.frontends.mlir.gpu_functions import (
    INDICES,
    MEMORY_OF_BLOCK,
    SEGMENTS,
    launch_again,
)
from avial_lab.compiler.ir.captures import remap
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import constant_of, operations_in, operations_named
from avial_lab.core.errors import VerifyError
from avial_lab.machine.devices.cuda import LANES, MOST_THREADS

_THREAD, _BLOCK = 3, 9
"""Where a thread's numbers and a block's sizes begin among a launch's arguments."""

_SHARED = "#gpu.address_space<workgroup>"


def settle_threads(module: ir.Module) -> None:
    """Branches become loops and conditionals, memory of a size given by the launch becomes memory
    of the block, and reductions become what threads add up pair by pair.

    before:  %s = gpu.all_reduce add %v : (f32) -> f32
    after:   memref.store %v, %w[%thread]  gpu.barrier  scf.for %round … {…}  %s = memref.load %w[0]

    before:  %s = gpu.subgroup_reduce add %v : (f32) -> f32
    after:   %o, %ok = gpu.shuffle down %v, 16, 32  …  %s = gpu.shuffle idx %sum, 0, 32

    before:  %l = gpu.lane_id
    after:   %l = arith.remui %thread, 32
    """
    launches = operations_named(module.operation, "gpu.launch")
    if not launches:
        return
    with module.context, ir.Location.unknown():
        if any(len(launch.regions[0].blocks) > 1 for launch in launches):
            passmanager.PassManager.parse("builtin.module(lift-cf-to-scf)").run(module.operation)
            launches = operations_named(module.operation, "gpu.launch")
        for launch in launches:
            _Launch(launch).settle()


@dataclass
class _Launch:
    op: ir.Operation
    body: ir.Block = field(init=False)
    shared: dict[str, ir.Value] = field(default_factory=dict[str, ir.Value])

    def __post_init__(self) -> None:
        self.body = self.op.regions[0].blocks[0]
        self.index = ir.IndexType.get()

    def settle(self) -> None:
        self._dynamic_memory()
        for op in operations_named(self.op, *_WRITTEN):
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(_WRITTEN[op.name](self, op))
            op.erase()

    # -- numbers -----------------------------------------------------------------------------------

    def constant(self, number: int) -> ir.Value:
        return arith.constant(self.index, number)

    def thread(self) -> ir.Value:
        """Of a block, x fastest: its warps are 32 of these in a row (CUDA C++ Guide, 4.1)."""
        x, y, z = list(self.body.arguments)[_THREAD : _THREAD + 3]
        width, height, _ = list(self.body.arguments)[_BLOCK : _BLOCK + 3]
        return arith.addi(arith.muli(arith.addi(arith.muli(z, height), y), width), x)

    def threads(self) -> ir.Value:
        x, y, z = list(self.body.arguments)[_BLOCK : _BLOCK + 3]
        return arith.muli(arith.muli(x, y), z)

    def lane(self, _: ir.Operation | None = None) -> ir.Value:
        return arith.remui(self.thread(), self.constant(LANES))

    def warp(self, _: ir.Operation | None = None) -> ir.Value:
        return arith.divui(self.thread(), self.constant(LANES))

    def warps(self, _: ir.Operation) -> ir.Value:
        return arith.ceildivui(self.threads(), self.constant(LANES))

    def lanes(self, _: ir.Operation) -> ir.Value:
        """Of a warp; the last one of a block may have fewer that run."""
        return self.constant(LANES)

    def most_threads(self) -> int:
        first = ir.DenseI32ArrayAttr(self.op.attributes[SEGMENTS])[0]
        total = 1
        for value in list(self.op.operands)[first + 3 : first + 6]:
            known = constant_of(value)
            if known is None:
                return MOST_THREADS
            total *= known
        return min(total, MOST_THREADS)

    # -- memory ------------------------------------------------------------------------------------

    def add_shared(self, kind: ir.Type) -> ir.Value:
        """Memory of the block, behind what it has."""
        count = 0
        if MEMORY_OF_BLOCK in self.op.attributes:
            count = ir.IntegerAttr(self.op.attributes[MEMORY_OF_BLOCK]).value
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count + 1)
        self.op.attributes[MEMORY_OF_BLOCK] = number
        own = list(self.body.arguments)[INDICES + count :]
        memory = self.body.add_argument(kind, self.op.location)
        for each in own:  # of a thread, which stands behind that of its block
            each.replace_all_uses_with(self.body.add_argument(each.type, each.location))
            self.body.erase_argument(INDICES + count)
        return memory

    def _dynamic_memory(self) -> None:
        """All of a launch's operations for it stand for the same bytes."""
        asked = [op for op in operations_in(self.op) if op.name == "gpu.dynamic_shared_memory"]
        segments = list(ir.DenseI32ArrayAttr(self.op.attributes[SEGMENTS]))
        given = list(self.op.operands)[-1] if segments[10] else None
        nbytes = 0 if given is None else constant_of(given)
        if asked and nbytes is None:
            raise VerifyError(
                "the shared memory of this launch has a size that is known only at run time",
                span=span_of(self.op.location),
                hint="write dynamic_shared_memory_size as a constant",
            )
        if given is not None:
            without = list(self.op.operands)[:-1]
            self.op = launch_again(self.op, without, [*segments[:10], 0])
            self.body = self.op.regions[0].blocks[0]
        if not asked:
            return
        byte = ir.IntegerType.get_signless(8)
        kind = ir.MemRefType.get([nbytes or 0], byte, None, ir.Attribute.parse(_SHARED))
        memory = self.add_shared(kind)
        for op in asked:
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(memref.cast(op.result.type, memory))
            op.erase()

    # -- reductions --------------------------------------------------------------------------------

    def all_reduce(self, op: ir.Operation) -> ir.Value:
        """Halves of the block's values are added to each other, in memory that all of them share:
        thread t takes t + 512, t + 256, …, t + 1, as far as there are such threads.
        """
        value = op.operands[0]
        most = 1 << (self.most_threads() - 1).bit_length()
        memory = self.shared.get(str(value.type))
        if memory is None:
            kind = ir.MemRefType.get(
                [self.most_threads()], value.type, None, ir.Attribute.parse(_SHARED)
            )
            memory = self.shared[str(value.type)] = self.add_shared(kind)
        thread, threads, zero = self.thread(), self.threads(), self.constant(0)
        one, half = self.constant(1), self.constant(most // 2)
        memref.store(value, memory, [thread])
        _barrier()
        rounds = scf.ForOp(zero, self.constant(most.bit_length() - 1), one)
        with ir.InsertionPoint(rounds.body):
            distance = arith.shrui(half, rounds.induction_variable)
            other = arith.addi(thread, distance)
            is_first = arith.cmpi(arith.CmpIPredicate.ult, thread, distance)
            is_there = arith.cmpi(arith.CmpIPredicate.ult, other, threads)
            branch = scf.IfOp(arith.andi(is_first, is_there))
            with ir.InsertionPoint(branch.then_block):
                left, right = memref.load(memory, [thread]), memref.load(memory, [other])
                memref.store(_combined(op, left, right), memory, [thread])
                scf.YieldOp([])
            _barrier()
            scf.YieldOp([])
        result = memref.load(memory, [zero])
        _barrier()  # the next one may have the same memory
        return result

    def subgroup_reduce(self, op: ir.Operation) -> ir.Value:
        """The same by shuffles, and from the first lane of each cluster back to the others."""
        value = op.operands[0]
        if isinstance(value.type, ir.VectorType):
            raise VerifyError(
                f"{op.name} of {value.type}",
                span=span_of(op.location),
                hint="reduce the vector's elements one by one",
            )
        size, stride = (_number(op, f"cluster_{key}") for key in ("size", "stride"))
        size, stride = size or LANES // (stride or 1), stride or 1
        lane, i32 = self.lane(), ir.IntegerType.get_signless(32)
        warp_begins = arith.muli(self.warp(), self.constant(LANES))
        lanes = arith.minui(self.constant(LANES), arith.subi(self.threads(), warp_begins))
        place = arith.remui(arith.divui(lane, self.constant(stride)), self.constant(size))
        step = size // 2
        while step:
            distance = arith.constant(i32, step * stride)
            other = _shuffle("down", value, distance)
            source = arith.addi(lane, self.constant(step * stride))
            is_there = arith.andi(
                arith.cmpi(arith.CmpIPredicate.ult, source, lanes),
                arith.cmpi(
                    arith.CmpIPredicate.ult,
                    arith.addi(place, self.constant(step)),
                    self.constant(size),
                ),
            )
            value = arith.select(is_there, _combined(op, value, other), value)
            step //= 2
        first = arith.subi(lane, arith.muli(place, self.constant(stride)))
        return _shuffle("idx", value, arith.index_castui(i32, first))


_WRITTEN: dict[str, Callable[[_Launch, ir.Operation], ir.Value]] = {
    "gpu.all_reduce": _Launch.all_reduce,
    "gpu.subgroup_reduce": _Launch.subgroup_reduce,
    "gpu.lane_id": _Launch.lane,
    "gpu.subgroup_id": _Launch.warp,
    "gpu.num_subgroups": _Launch.warps,
    "gpu.subgroup_size": _Launch.lanes,
}


def _number(op: ir.Operation, key: str) -> int:
    return ir.IntegerAttr(op.attributes[key]).value if key in op.attributes else 0


def _barrier() -> None:
    ir.Operation.create("gpu.barrier")


def _shuffle(mode: str, value: ir.Value, offset: ir.Value) -> ir.Value:
    i32 = offset.type
    return ir.Operation.create(
        "gpu.shuffle",
        [value.type, ir.IntegerType.get_signless(1)],
        [value, offset, arith.constant(i32, LANES)],
        {"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")},
    ).results[0]


_COMBINED: dict[str, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "add": lambda a, b: (arith.addf if _is_float(a) else arith.addi)(a, b),
    "mul": lambda a, b: (arith.mulf if _is_float(a) else arith.muli)(a, b),
    "minui": arith.minui,
    "minsi": arith.minsi,
    "minnumf": arith.minnumf,
    "maxui": arith.maxui,
    "maxsi": arith.maxsi,
    "maxnumf": arith.maxnumf,
    "and": arith.andi,
    "or": arith.ori,
    "xor": arith.xori,
    "minimumf": arith.minimumf,
    "maximumf": arith.maximumf,
}


def _is_float(value: ir.Value) -> bool:
    return isinstance(value.type, ir.FloatType)


def _combined(op: ir.Operation, left: ir.Value, right: ir.Value) -> ir.Value:
    """By the operation's name, or by the body that it has."""
    if "op" in op.attributes:
        name = str(op.attributes["op"]).removeprefix("#gpu<all_reduce_op ").removesuffix(">")
        return _COMBINED[name](left, right)
    body = op.regions[0].blocks[0]
    if len(op.regions[0].blocks) > 1:
        raise VerifyError(
            f"the body of {op.name} has several blocks",
            span=span_of(op.location),
            hint="use scf.if in place of branches",
        )
    values: dict[ir.Value, ir.Value] = dict(zip(body.arguments, (left, right), strict=True))
    for view in list(body.operations)[:-1]:
        copy = view.operation.clone()
        for each in (copy.operation, *operations_in(copy.operation)):
            remap(each, values)
        values.update(zip(view.operation.results, copy.operation.results, strict=True))
    end = list(body.operations)[-1].operation.operands[0]
    return values.get(end, end)
