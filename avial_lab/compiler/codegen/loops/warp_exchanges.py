"""What the threads of a warp, or of a block, find of each other: by one thread, from what each of
them has put into memory.

Operation of the gpu or nvvm dialect that exchanges values, inside the code of one thread -> its
results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.machine.devices.cuda import LANES

_ULT, _EQ, _SLE, _SGE = (
    arith.CmpIPredicate.ult, arith.CmpIPredicate.eq, arith.CmpIPredicate.sle,
    arith.CmpIPredicate.sge,
)  # fmt: skip


@dataclass(frozen=True)
class Together:
    """A thread by its number in the block, how many there are, of each whether it is here (None:
    all are; i1 by thread), and what each of them has (None: nothing), by thread.
    """

    thread: ir.Value
    threads: ir.Value
    here: ir.Value | None
    slots: ir.Value | None

    @property
    def lane(self) -> ir.Value:
        """In its warp, as an index."""
        return arith.remui(self.thread, _index(LANES))

    def fold(
        self,
        start: ir.Value,
        step: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
        mask: ir.Value | None,
    ) -> ir.Value:
        """`step` of a lane (i32), of what its thread has, and of what came out so far: for each
        lane of the warp that is here and whose bit the mask has, in their order. Without a mask for
        all threads of the block, by their numbers.
        """
        index = ir.IndexType.get()
        first = _index(0)
        if mask is not None:
            first = arith.subi(self.thread, self.lane)
        count = self.threads if mask is None else _index(LANES)
        loop = scf.ForOp(_index(0), count, _index(1), [start])
        with ir.InsertionPoint(loop.body):
            other = arith.addi(first, loop.induction_variable)
            number = arith.index_cast(ir.IntegerType.get_signless(32), loop.induction_variable)
            is_in = arith.cmpi(_ULT, other, self.threads)
            if mask is not None:
                is_in = arith.andi(is_in, self._is_in(mask, loop.induction_variable))
            other = arith.select(is_in, other, self.thread)
            if self.here is not None:
                is_in = arith.andi(is_in, memref.load(self.here, [other]))
            value = number if self.slots is None else memref.load(self.slots, [other])
            so_far = loop.inner_iter_args[0]
            scf.YieldOp([arith.select(is_in, step(number, value, so_far), so_far)])
        assert other.type == index
        return loop.results[0]

    def of_lane(self, lane: ir.Value, *, where: ir.Value) -> ir.Value:
        """What that lane (an index) of the warp has, and where it is not meant what one has
        oneself. Of a lane that does not come to it, or is no thread, a device has anything: here
        poison.
        """
        assert self.slots is not None, "it exchanges values"
        source = arith.addi(arith.subi(self.thread, self.lane), lane)
        is_there = arith.andi(where, arith.cmpi(_ULT, source, self.threads))
        source = arith.select(is_there, source, self.thread)
        found = memref.load(self.slots, [source])
        if self.here is not None:
            is_there = arith.andi(is_there, memref.load(self.here, [source]))
        is_known = arith.ori(is_there, arith.xori(where, _bit(1)))
        return arith.select(is_known, found, _poison(found.type))

    def all_come(self, mask: ir.Value) -> ir.Value:
        """Whether those threads of the warp come to it whose bits the mask (i32) has, oneself among
        them: a device waits for all of these (PTX ISA, "membermask").
        """
        assert self.here is not None, "somebody may not come"
        first = arith.subi(self.thread, self.lane)
        loop = scf.ForOp(_index(0), _index(LANES), _index(1), [self._is_in(mask, self.lane)])
        with ir.InsertionPoint(loop.body):
            other = arith.addi(first, loop.induction_variable)
            is_thread = arith.cmpi(_ULT, other, self.threads)
            comes = memref.load(self.here, [arith.select(is_thread, other, self.thread)])
            is_meant = arith.andi(is_thread, self._is_in(mask, loop.induction_variable))
            holds = arith.ori(comes, arith.xori(is_meant, _bit(1)))
            scf.YieldOp([arith.andi(loop.inner_iter_args[0], holds)])
        return loop.results[0]

    def _is_in(self, mask: ir.Value, lane: ir.Value) -> ir.Value:
        number = arith.index_cast(mask.type, lane)
        return arith.cmpi(_EQ, arith.andi(arith.shrui(mask, number), _word(1)), _word(1))


@dataclass(frozen=True)
class Exchange:
    """value: the number of the operand that others see, -1 the last; None: there is none. mask:
    that of the operand that says which lanes come to it; None: all. of_block: all threads of a
    block come to it, not only those of a warp.
    """

    value: int | None
    find: Callable[[ir.Operation, Together, Sequence[ir.Value]], list[ir.Value]]
    mask: int | None = 0
    of_block: bool = False

    def shown(self, op: ir.Operation) -> ir.Value | None:
        return None if self.value is None else list(op.operands)[self.value]

    def members(self, given: Sequence[ir.Value]) -> ir.Value:
        """The bits of the lanes that come to it."""
        return _word(-1) if self.mask is None or not given else given[self.mask]


def is_exchange(op: ir.Operation) -> bool:
    """Whether it is known here: of NVIDIA's barriers those of all threads with a sum."""
    if op.name == "nvvm.barrier":
        return len(op.results) == 1 and not list(_segments(op))[1]
    if op.name == "nvvm.redux.sync":
        return _kind(op) in _REDUCED
    return op.name in EXCHANGES


def _segments(op: ir.Operation) -> ir.DenseI32ArrayAttr:
    return ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])


def _index(number: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), number)


def _word(number: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), number)


def _bit(number: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(1), number)


def _poison(kind: ir.Type) -> ir.Value:
    """All bits set: NaN in every floating-point format, -1 in integers."""
    if isinstance(kind, ir.FloatType):
        return arith.bitcast(kind, arith.constant(ir.IntegerType.get_signless(kind.width), -1))
    return arith.constant(kind, -1)


def _kind(op: ir.Operation) -> str:
    """Of `#nvvm<vote_sync_kind any>`, `any`."""
    return str(op.attributes["kind"]).partition(" ")[2].removesuffix(">")


def _shuffle(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    """Of gpu: within the first `width` lanes of a warp."""
    _, *numbers = given
    offset, width = (arith.index_cast(ir.IndexType.get(), each) for each in numbers)
    mode, lane = str(op.attributes["mode"]), of.lane
    if "xor" in mode:
        other = arith.xori(lane, offset)
    elif "up" in mode:
        other = arith.subi(lane, offset)
    else:
        other = arith.addi(lane, offset) if "down" in mode else offset
    valid = arith.cmpi(_ULT, other, width)
    return [of.of_lane(other, where=valid), valid]


def _shuffle_in_parts(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    """Of nvvm: within parts of a warp, as the instruction is defined (PTX ISA, shfl.sync)."""
    _, _, offset, clamp = given
    i32, mode, low = offset.type, _kind(op), _word(LANES - 1)
    lane = arith.index_cast(i32, of.lane)
    by, last = arith.andi(offset, low), arith.andi(clamp, low)
    parts = arith.andi(arith.shrui(clamp, _word(8)), low)
    within = arith.xori(parts, low)
    first = arith.andi(lane, parts)
    most = arith.ori(first, arith.andi(last, within))
    if mode == "up":
        other = arith.subi(lane, by)
    elif mode == "idx":
        other = arith.ori(first, arith.andi(by, within))
    else:
        other = (arith.addi if mode == "down" else arith.xori)(lane, by)
    valid = arith.cmpi(_SGE if mode == "up" else _SLE, other, most)
    index = ir.IndexType.get()
    return [of.of_lane(arith.index_cast(index, other), where=valid)]


def _vote(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    mask, own = given
    kind = _kind(op)
    if kind == "ballot":
        i32 = mask.type
        return [
            of.fold(
                _word(0),
                lambda lane, p, bits: arith.ori(bits, arith.shli(arith.extui(i32, p), lane)),
                mask,
            )
        ]
    if kind == "any":
        return [of.fold(_bit(0), lambda _, p, found: arith.ori(found, p), mask)]
    if kind == "all":
        return [of.fold(_bit(1), lambda _, p, found: arith.andi(found, p), mask)]
    return [of.fold(_bit(1), lambda _, p, f: arith.andi(f, arith.cmpi(_EQ, p, own)), mask)]


def _match(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    """The lanes that have the same."""
    mask, own = given

    def with_lane(lane: ir.Value, value: ir.Value, bits: ir.Value) -> ir.Value:
        same = arith.extui(mask.type, arith.cmpi(_EQ, value, own))
        return arith.ori(bits, arith.shli(same, lane))

    return [of.fold(_word(0), with_lane, mask)]


_REDUCED: dict[str, tuple[int, Callable[[ir.Value, ir.Value], ir.Value]]] = {
    "add": (0, arith.addi),
    "umin": (-1, arith.minui),
    "umax": (0, arith.maxui),
    "min": (2**31 - 1, arith.minsi),
    "max": (-(2**31), arith.maxsi),
    "and": (-1, arith.andi),
    "or": (0, arith.ori),
    "xor": (0, arith.xori),
}
"""Of whole numbers, whose order does not matter: what it is of none, and of two."""


def _reduce(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    _, mask = given
    none, combine = _REDUCED[_kind(op)]
    return [of.fold(_word(none), lambda _, value, found: combine(found, value), mask)]


def _elect(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    """The first lane; a device may choose another one."""
    mask = given[0] if given else _word(-1)
    first = of.fold(_word(LANES), lambda lane, _, found: arith.minui(found, lane), mask)
    return [arith.cmpi(_EQ, first, arith.index_cast(mask.type, of.lane))]


def _sum_at_barrier(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    """Of all threads: how many have a number that is not 0, or whether one has, or all."""
    kind = str(op.attributes["reductionOp"])
    i32, none = given[-1].type, _word(0)

    def step(_: ir.Value, value: ir.Value, found: ir.Value) -> ir.Value:
        one = arith.extui(i32, arith.cmpi(arith.CmpIPredicate.ne, value, none))
        if "popc" in kind:
            return arith.addi(found, one)
        return (arith.andi if "and" in kind else arith.ori)(found, one)

    return [of.fold(_word(1 if "<and>" in kind else 0), step, None)]


def _nothing(op: ir.Operation, of: Together, given: Sequence[ir.Value]) -> list[ir.Value]:
    """Those of a warp wait for each other."""
    return []


EXCHANGES = {
    "nvvm.barrier": Exchange(-1, _sum_at_barrier, mask=None, of_block=True),
    "gpu.shuffle": Exchange(0, _shuffle, mask=None),
    "nvvm.shfl.sync": Exchange(1, _shuffle_in_parts),
    "nvvm.vote.sync": Exchange(1, _vote),
    "nvvm.match.sync": Exchange(1, _match),
    "nvvm.redux.sync": Exchange(0, _reduce, mask=1),
    "nvvm.elect.sync": Exchange(None, _elect),
    "nvvm.bar.warp.sync": Exchange(None, _nothing),
}
