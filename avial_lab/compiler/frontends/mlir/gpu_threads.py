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
_SHARED_SPACES = (_SHARED, "3", "3 : i64", "3 : i32", "#spirv.storage_class<Workgroup>")

_MEMORY = ("memref.alloc", "memref.alloca", "memref.get_global")


def settle_threads(module: ir.Module) -> None:
    """Branches become loops and conditionals, memory of a size given by the launch becomes memory
    of the block, and reductions become what threads add up pair by pair.

    before:  %s = gpu.all_reduce add %v : (f32) -> f32
    after:   memref.store %v, %w[%thread]  gpu.barrier  scf.for %round … {…}  %s = memref.load %w[0]

    before:  %s = gpu.subgroup_reduce add %v : (f32) -> f32
    after:   %o, %ok = gpu.shuffle down %v, 16, 32  …  %s = gpu.shuffle idx %sum, 0, 32

    before:  %l = gpu.lane_id
    after:   %l = arith.remui %thread, 32

    before:  %x = nvvm.read.ptx.sreg.tid.x : i32
    after:   %x = arith.index_cast %tx : index to i32

    Memory of a size that the launch computes stays `gpu.dynamic_shared_memory`; so does what only
    NVIDIA's dialect has (votes, `redux`, shuffles of parts of a warp): a kernel has it as it is.
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
        self._memory_in_body()
        for op in operations_named(self.op, *_OF_NVIDIA):
            with ir.InsertionPoint(op), op.location:
                self._in_gpu(op)
        for name, write in (("rotate", self.rotate), ("subgroup_broadcast", self.broadcast)):
            for op in operations_named(self.op, f"gpu.{name}"):
                with ir.InsertionPoint(op), op.location:
                    write(op)
        for op in operations_named(self.op, *_WRITTEN):
            with ir.InsertionPoint(op), op.location:
                op.result.replace_all_uses_with(_WRITTEN[op.name](self, op))
            op.erase()
        while shuffles := [op for op in operations_named(self.op, "gpu.shuffle") if _is_odd(op)]:
            for op in shuffles:
                with ir.InsertionPoint(op), op.location:
                    self.in_words(op)

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
        if nbytes is not None and nbytes < 0:
            raise VerifyError(
                f"the shared memory of this launch is of {nbytes} bytes",
                span=span_of(self.op.location),
                hint="dynamic_shared_memory_size is a number of bytes, from 0 on",
            )
        if asked and nbytes is None:
            return  # the device is told when it is launched
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

    def _memory_in_body(self) -> None:
        """What the body allocates, or has a name for, in a block's memory is the launch's own: a
        name stands for the same bytes wherever it is used.
        """
        named: dict[str, ir.Value] = {}
        for op in operations_named(self.op, *_MEMORY):
            kind = ir.MemRefType(op.results[0].type)
            if str(kind.memory_space) not in _SHARED_SPACES:
                continue
            if not kind.has_static_shape:
                raise VerifyError(
                    "memory of a block has a size that is known only at run time",
                    span=span_of(op.location),
                    hint="allocate it with a size that is a constant",
                )
            name = str(op.attributes["name"]) if op.name == "memref.get_global" else ""
            memory = named.get(name) if name else None
            if memory is None:
                memory = self.add_shared(kind)
            if name:
                named[name] = memory
            for use in list(op.results[0].uses):
                if use.owner.name == "memref.dealloc":
                    use.owner.erase()
            op.results[0].replace_all_uses_with(memory)
            op.erase()

    # -- what NVIDIA's dialect has -----------------------------------------------------------------

    def _in_gpu(self, op: ir.Operation) -> None:
        """As the gpu dialect has it, or arith; what neither has stays."""
        if op.name in _ASKED:
            name, dimension = _ASKED[op.name]
            which = {"dimension": ir.Attribute.parse(f"#gpu<dim {dimension}>")} if dimension else {}
            number = ir.Operation.create(name, [self.index], [], which).result
            op.result.replace_all_uses_with(arith.IndexCastOp(op.result.type, number).result)
        elif op.name in _MASKS:
            one = arith.constant(op.result.type, 1)
            own = arith.shli(one, arith.index_cast(op.result.type, self.lane()))
            op.result.replace_all_uses_with(_MASKS[op.name](own, one))
        elif op.name == "nvvm.shfl.sync":
            if not self._shuffle(op):
                return
        elif op.name == "nvvm.match.sync":
            if _kind_of(op) != "all" or not _match_all(op):
                return
        elif not self._is_of_the_block(op):
            return
        else:
            _barrier()
        op.erase()

    def _is_of_the_block(self, barrier: ir.Operation) -> bool:
        """Whether all threads of a block come to it, and it adds nothing up: whichever of the
        block's sixteen barriers it is.
        """
        if len(barrier.results):
            return False
        if barrier.name == "nvvm.barrier0":
            return True
        _, threads, predicates = ir.DenseI32ArrayAttr(barrier.attributes[SEGMENTS])
        if not threads:
            return not predicates
        known = [constant_of(value) for value in self._widths()]
        total = 1
        for each in known:
            total = 0 if each is None else total * each
        return constant_of(list(barrier.operands)[-1 - predicates]) == total and not predicates

    def _widths(self) -> list[ir.Value]:
        first = ir.DenseI32ArrayAttr(self.op.attributes[SEGMENTS])[0]
        return list(self.op.operands)[first + 3 : first + 6]

    def _shuffle(self, op: ir.Operation) -> bool:
        """Whether nobody needs it any more."""
        mode, (mask, value, offset, clamp) = _kind_of(op), list(op.operands)
        pair = op.result.type != value.type
        if _has_no_parts(op):
            moved, is_there = _shuffled(mode, value, offset)
            if not pair:
                op.result.replace_all_uses_with(moved)
                return True
            return _replace_parts(op, (moved, is_there))
        if not pair:
            return False
        lane = arith.index_cast(offset.type, self.lane())
        kind = {"kind": op.attributes["kind"]}
        moved = ir.Operation.create(op.name, [value.type], [mask, value, offset, clamp], kind)
        return _replace_parts(op, (moved.result, _is_in_source(lane, mode, offset, clamp)))

    def in_words(self, op: ir.Operation) -> None:
        """Devices exchange words of 32 bits: others are split, or widened; and among the first
        lanes alone by an instruction that has such parts.
        """
        value, offset, width = list(op.operands)
        mode = str(op.attributes["mode"]).partition(" ")[2].removesuffix(">")
        i32 = ir.IntegerType.get_signless(32)
        if value.type not in (i32, ir.F32Type.get()):
            parts = [_shuffled(mode, part, offset, width) for part in _in_words(value)]
            moved, is_there = _from_words([word for word, _ in parts], value.type), parts[0][1]
        elif constant_of(width) != LANES:
            moved, is_there = self._among_first(mode, value, offset, width)
        else:
            return
        for old, new in zip(op.results, (moved, is_there), strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _among_first(
        self, mode: str, value: ir.Value, offset: ir.Value, width: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        lane = arith.index_cast(offset.type, self.lane())
        if mode == "idx":
            other = offset
        else:
            other = {"xor": arith.xori, "up": arith.subi, "down": arith.addi}[mode](lane, offset)
        one = arith.constant(width.type, 1)
        clamp = arith.constant(width.type, 0) if mode == "up" else arith.subi(width, one)
        kind = {"xor": "bfly"}.get(mode, mode)
        moved = ir.Operation.create(
            "nvvm.shfl.sync",
            [value.type],
            [arith.constant(offset.type, -1), value, offset, clamp],
            {"kind": ir.Attribute.parse(f"#nvvm<shfl_kind {kind}>")},
        ).result
        return moved, arith.cmpi(arith.CmpIPredicate.ult, other, width)

    def rotate(self, op: ir.Operation) -> None:
        """Lane k has what lane k + offset has, counted around in each `width` of them."""
        i32, lane = ir.IntegerType.get_signless(32), self.lane()
        offset, width = (_number(op, key) for key in ("offset", "width"))
        inside = self.constant(width - 1)
        place = arith.andi(arith.addi(lane, self.constant(offset)), inside)
        first = arith.subi(lane, arith.andi(lane, inside))
        moved, _ = _shuffled("idx", op.operands[0], arith.index_cast(i32, arith.addi(first, place)))
        below = arith.cmpi(arith.CmpIPredicate.ult, lane, self.constant(width))
        for old, new in zip(op.results, (moved, below), strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def broadcast(self, op: ir.Operation) -> None:
        """From the lane that it says; which one is the first that runs, only a device knows."""
        if "specific_lane" in str(op.attributes["broadcast_type"]):
            moved = _shuffle("idx", op.operands[0], op.operands[1])
            op.result.replace_all_uses_with(moved)
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


_REGISTERS = {"tid": "thread_id", "ctaid": "block_id", "ntid": "block_dim", "nctaid": "grid_dim"}

_ASKED = {
    f"nvvm.read.ptx.sreg.{register}.{dimension}": (f"gpu.{name}", dimension)
    for register, name in _REGISTERS.items()
    for dimension in "xyz"
} | {
    "nvvm.read.ptx.sreg.laneid": ("gpu.lane_id", ""),
    "nvvm.read.ptx.sreg.warpid": ("gpu.subgroup_id", ""),
    "nvvm.read.ptx.sreg.nwarpid": ("gpu.num_subgroups", ""),
    "nvvm.read.ptx.sreg.warpsize": ("gpu.subgroup_size", ""),
}
"""NVIDIA's registers, and who asks for the same number."""

_LANE_MASKS: dict[str, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "eq": lambda own, _: own,
    "lt": arith.subi,
    "le": lambda own, one: arith.ori(own, arith.subi(own, one)),
    "gt": lambda own, one: _inverted(arith.ori(own, arith.subi(own, one))),
    "ge": lambda own, one: _inverted(arith.subi(own, one)),
}
"""Of the bit of one's own lane, and 1."""

_SHUFFLES = {"bfly": "xor", "up": "up", "down": "down", "idx": "idx"}

_MASKS = {f"nvvm.read.ptx.sreg.lanemask.{key}": make for key, make in _LANE_MASKS.items()}

_OF_NVIDIA = (*_ASKED, *_MASKS, "nvvm.barrier0", "nvvm.barrier", "nvvm.shfl.sync",
              "nvvm.match.sync")  # fmt: skip


def _inverted(value: ir.Value) -> ir.Value:
    return arith.xori(value, arith.constant(value.type, -1))


def _has_no_parts(op: ir.Operation) -> bool:
    """Whether a shuffle is of all lanes of a warp, with each other."""
    mode = _kind_of(op)
    mask, _, _, clamp = list(op.operands)
    return constant_of(mask) == -1 and constant_of(clamp) == (0 if mode == "up" else LANES - 1)


def _kind_of(op: ir.Operation) -> str:
    """Of `#nvvm<shfl_kind bfly>`, `xor`."""
    name = str(op.attributes["kind"]).partition(" ")[2].removesuffix(">")
    return _SHUFFLES.get(name, name)


def _is_in_source(lane: ir.Value, mode: str, offset: ir.Value, clamp: ir.Value) -> ir.Value:
    """Whether the lane that a shuffle reads is one of its part of the warp: a function of numbers
    that each thread has itself (PTX ISA, shfl.sync). All are i32.
    """

    def number(value: int) -> ir.Value:
        return arith.constant(lane.type, value)

    b, c = arith.andi(offset, number(LANES - 1)), arith.andi(clamp, number(LANES - 1))
    parts = arith.andi(arith.shrui(clamp, number(8)), number(LANES - 1))
    within = arith.xori(parts, number(LANES - 1))
    first = arith.andi(lane, parts)
    last = arith.ori(first, arith.andi(c, within))
    if mode == "up":
        return arith.cmpi(arith.CmpIPredicate.sge, arith.subi(lane, b), last)
    if mode == "idx":
        source = arith.ori(first, arith.andi(b, within))
    else:
        source = (arith.addi if mode == "down" else arith.xori)(lane, b)
    return arith.cmpi(arith.CmpIPredicate.sle, source, last)


def _replace_parts(op: ir.Operation, parts: tuple[ir.Value, ir.Value]) -> bool:
    """Who takes one of the two values of its result takes these; whether that are all."""
    users = {use.owner.operation for use in op.result.uses}
    if any(user.name != "llvm.extractvalue" for user in users):
        return False
    for user in users:
        (which,) = ir.DenseI64ArrayAttr(user.attributes["position"])
        user.result.replace_all_uses_with(parts[which])
        user.erase()
    return True


def _number(op: ir.Operation, key: str) -> int:
    return ir.IntegerAttr(op.attributes[key]).value if key in op.attributes else 0


def _barrier() -> None:
    ir.Operation.create("gpu.barrier")


def _shuffle(mode: str, value: ir.Value, offset: ir.Value) -> ir.Value:
    return _shuffled(mode, value, offset)[0]


def _is_odd(shuffle: ir.Operation) -> bool:
    """Whether it is of other than words, or among other than all lanes of a warp."""
    value, _, width = list(shuffle.operands)
    plain = value.type in (ir.IntegerType.get_signless(32), ir.F32Type.get())
    return not plain or constant_of(width) != LANES


def _in_words(value: ir.Value) -> list[ir.Value]:
    """The bits of a number in as many words of 32 as it takes, the low ones first."""
    i32 = ir.IntegerType.get_signless(32)
    kind = value.type
    if isinstance(kind, ir.FloatType):
        value = arith.bitcast(ir.IntegerType.get_signless(kind.width), value)
    elif isinstance(kind, ir.IndexType):
        value = arith.index_cast(ir.IntegerType.get_signless(64), value)
    width = ir.IntegerType(value.type).width
    if width <= i32.width:
        return [arith.extui(i32, value) if width < i32.width else value]
    return [
        arith.trunci(i32, arith.shrui(value, arith.constant(value.type, first)))
        for first in range(0, width, i32.width)
    ]


def _from_words(words: list[ir.Value], kind: ir.Type) -> ir.Value:
    """The number of that type again."""
    is_index = isinstance(kind, ir.IndexType)
    width = 64 if is_index else kind.width  # pyright: ignore[reportAttributeAccessIssue]
    own = ir.IntegerType.get_signless(width)
    if width <= words[0].type.width:
        bits = words[0] if width == words[0].type.width else arith.trunci(own, words[0])
    else:
        bits = arith.extui(own, words[0])
        for k, word in enumerate(words[1:], 1):
            above = arith.shli(arith.extui(own, word), arith.constant(own, 32 * k))
            bits = arith.ori(bits, above)
    if is_index:
        return arith.index_cast(kind, bits)
    return arith.bitcast(kind, bits) if isinstance(kind, ir.FloatType) else bits


def _shuffled(
    mode: str, value: ir.Value, offset: ir.Value, width: ir.Value | None = None
) -> tuple[ir.Value, ir.Value]:
    """What another lane of the warp has, and whether there is such a lane."""
    moved, is_there = ir.Operation.create(
        "gpu.shuffle",
        [value.type, ir.IntegerType.get_signless(1)],
        [value, offset, arith.constant(offset.type, LANES) if width is None else width],
        {"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")},
    ).results
    return moved, is_there


def _match_all(op: ir.Operation) -> bool:
    """All lanes have one value where those with one's own are all that there are. Whether nobody
    needs the operation any more.
    """
    mask, value = list(op.operands)
    i32 = mask.type
    true = arith.constant(ir.IntegerType.get_signless(1), 1)
    alike = {"kind": ir.Attribute.parse("#nvvm<match_sync_kind any>")}
    ballot = {"kind": ir.Attribute.parse("#nvvm<vote_sync_kind ballot>")}
    same = ir.Operation.create(op.name, [i32], [mask, value], alike).result
    there = ir.Operation.create("nvvm.vote.sync", [i32], [mask, true], ballot).result
    is_one = arith.cmpi(arith.CmpIPredicate.eq, same, there)
    return _replace_parts(op, (arith.select(is_one, there, arith.constant(i32, 0)), is_one))


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
