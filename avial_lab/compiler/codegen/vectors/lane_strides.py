"""How values differ between iterations of a loop that run at once, each in a lane of vectors.

A loop -> the stride of every value in its body: by how much each lane's is more than that of the
lane before.

    affine.for %j {                                     stride of %j: 1
      %x = affine.load %A[%i, %j * 2]                   none: whatever stands there
      affine.for %q iter_args(%s = %zero) {             of %q: 0, the same in all lanes
        %c = affine.load %C[%q]                         0
        %t = math.fma %s, %x, %c                        none, and so none of %s
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.indices import evaluate
from avial_lab.compiler.ir.attributes import CHOSEN, PARALLEL
from avial_lab.compiler.ir.effects import LOADS, STORES, is_pure
from avial_lab.compiler.ir.nesting import FORS
from avial_lab.compiler.ir.operations import LOOPS, constant_of, operations_in, operations_named
from avial_lab.compiler.ir.views import is_memref

WHILE = "scf.while"
IFS = ("affine.if", "scf.if")

Stride = int | None
"""None: no lane's value says anything of the next one's."""

WIDTHS = (1, 8, 16, 32, 64)
"""Bits of integers that vectors are made of."""

FUNCTIONS = ("absf", "absi", "ceil", "copysign", "ctpop", "floor", "fma", "sqrt", "trunc")
"""Of `math`, with an instruction for vectors; those that `select-math` chose are code."""

SCALAR_ONLY = ("divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi",
               "remf", "addui_extended", "mulsi_extended", "mului_extended")  # fmt: skip
"""Of `arith`, for which a processor takes lane by lane."""


class NoLanes(Exception):
    """Something in the loop has no form for vectors; the text says what."""


@dataclass
class Strides:
    """Of the values in `loop`, whose iterations are independent. Raises NoLanes."""

    loop: ir.Operation
    _of: dict[ir.Value, Stride] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(PARALLEL in op.attributes for op in operations_named(self.loop, *LOOPS)):
            raise NoLanes("an inner loop is divided among threads")
        self._of[self.loop.regions[0].blocks[0].arguments[0]] = 1
        self._block(self.loop.regions[0].blocks[0])

    def of(self, value: ir.Value) -> Stride:
        """0 for all that is computed outside of the loop."""
        return self._of.get(value, 0)

    def are_vectors(self, op: ir.Operation) -> bool:
        """Whether a result of `op` is another one in each lane, and not on a line."""
        return any(self.of(result) is None for result in op.results)

    def of_subscripts(self, op: ir.Operation) -> tuple[Stride, ...]:
        """Of the element that a load or store is of."""
        operands = list(op.operands)[1 + (op.name in STORES) :]
        if not op.name.startswith("affine."):
            return tuple(map(self.of, operands))
        return self.of_forms(ir.AffineMapAttr(op.attributes["map"]).value, operands)

    def of_forms(self, form: ir.AffineMap, operands: Sequence[ir.Value]) -> tuple[Stride, ...]:
        """Of the results of a map."""
        strides = [self.of(operand) for operand in operands]
        if not any(stride != 0 for stride in strides):
            return (0,) * len(form.results)
        known = [
            None if stride is None else Affine(0, ((_LANE, stride),)) if stride else Affine.of("v")
            for stride in strides
        ]
        dims, symbols = known[: form.n_dims], known[form.n_dims :]
        return tuple(_factor(evaluate(each, dims, symbols)) for each in form.results)

    def is_beside(self, op: ir.Operation) -> bool:
        """Whether the elements of the lanes lie side by side in memory, in the lanes' order."""
        strides = self.of_subscripts(op)
        memory = ir.MemRefType(op.operands[op.name in STORES].type)
        *_, last = memory.get_strides_and_offset()[0] or [0]
        return strides[-1:] == (1,) and all(each == 0 for each in strides[:-1]) and last == 1

    # -- reading

    def _block(self, block: ir.Block) -> None:
        for view in list(block.operations)[:-1]:
            self._operation(view.operation)

    def _operation(self, op: ir.Operation) -> None:
        if op.name in FORS:
            self._loop(op)
        elif op.name == WHILE:
            self._while(op)
        elif op.name in IFS:
            self._branch(op)
        elif op.name in LOADS:
            self._load(op)
        elif op.name in STORES:
            self._store(op)
        elif not is_pure(op) or len(op.regions) or any(map(is_memref, op.results)):
            raise NoLanes(f"{op.name} has no vector form")
        else:
            self._computed(op)

    def _computed(self, op: ir.Operation) -> None:
        strides = [self.of(operand) for operand in op.operands]
        if any(stride != 0 for stride in strides):
            for result in op.results:
                self._of[result] = self._stride(op, strides)
            if self.are_vectors(op):
                self._check(op)

    def _stride(self, op: ir.Operation, strides: Sequence[Stride]) -> Stride:
        if op.name == "affine.apply":
            (found,) = self.of_forms(ir.AffineMapAttr(op.attributes["map"]).value, op.operands)
            return found
        if None in strides or not all(
            _is_wide(value.type) for value in (*op.operands, *op.results)
        ):
            return None  # a narrow integer may have gone round its end when it becomes a wide one
        first, *more = (stride or 0 for stride in strides)
        factors = list(map(constant_of, op.operands))
        match op.name:
            case "arith.addi":
                return first + more[0]
            case "arith.subi":
                return first - more[0]
            case "arith.muli" if factors[0] is not None:
                return factors[0] * more[0]
            case "arith.muli" if factors[1] is not None:
                return first * factors[1]
            case "arith.index_cast":
                return first
            case _:
                return None

    def _check(self, op: ir.Operation) -> None:
        """NoLanes where there is nothing to compute it with."""
        dialect, _, name = op.name.partition(".")
        known = (dialect == "arith" and name not in SCALAR_ONLY) or (
            dialect == "math" and (name in FUNCTIONS or CHOSEN in op.attributes)
        )
        if not known:
            raise NoLanes(f"{op.name} has no vector form")
        for value in (*op.operands, *op.results):
            _check_element(value.type)

    def _load(self, op: ir.Operation) -> None:
        if all(stride == 0 for stride in self.of_subscripts(op)):
            return
        self._check_access(op)
        self._of[op.results[0]] = None

    def _store(self, op: ir.Operation) -> None:
        if all(stride == 0 for stride in self.of_subscripts(op)):
            raise NoLanes("all lanes would store to one element")
        self._check_access(op)

    def _check_access(self, op: ir.Operation) -> None:
        memory = ir.MemRefType(op.operands[op.name in STORES].type)
        _check_element(memory.element_type)
        if str(memory.element_type) == "i1":
            raise NoLanes("i1 is stored as bytes")
        operands = list(op.operands)[1 + (op.name in STORES) :]
        if op.name.startswith("affine.") and any(self.of(each) is None for each in operands):
            raise NoLanes("a subscript is computed from a value that differs between lanes")

    def _loop(self, op: ir.Operation) -> None:
        count = len(op.results)
        operands = list(op.operands)
        bounds, starts = operands[: len(operands) - count], operands[len(operands) - count :]
        if any(self.of(bound) != 0 for bound in bounds):
            raise NoLanes("the bounds of an inner loop differ between lanes")
        block = op.regions[0].blocks[0]
        carried = list(block.arguments)[1:]
        self._mix(carried, [starts])
        ends = list(block.operations[len(block.operations) - 1].operation.operands)
        while True:  # at most once for each value that is carried
            self._block(block)
            before = [self.of(each) for each in carried]
            self._mix(carried, [starts, ends])
            if before == [self.of(each) for each in carried]:
                break
        self._mix(op.results, [starts, ends])

    def _while(self, op: ir.Operation) -> None:
        """Lanes that are through stay as they are; those that go on take them along."""
        before, after = (region.blocks[0] for region in op.regions)
        said, *given = before.operations[len(before.operations) - 1].operation.operands
        ends = ends_of(op)[1]
        carried = [*before.arguments, *after.arguments]
        self._mix(before.arguments, [op.operands])
        while True:  # at most once for each value that is carried
            known = [self.of(each) for each in carried]
            self._block(before)
            self._mix(after.arguments, [given])
            self._block(after)
            self._mix(before.arguments, [op.operands, ends])
            if self.of(said) != 0:
                self._differ([*carried, *op.results])
            if known == [self.of(each) for each in carried]:
                break
        self._mix(op.results, [given])
        if self.of(said) != 0:
            if operations_named(op, *STORES):
                raise NoLanes("a lane whose loop has ended would store again")
            self._check_tried(after)

    def _check_tried(self, block: ir.Block) -> None:
        """NoLanes where lanes that are through would do more than compute."""
        for view in list(block.operations)[:-1]:
            op = view.operation
            alike = op.name in LOADS and not self.are_vectors(op)
            if not (alike or _may_be_tried(op)):
                raise NoLanes("lanes leave an inner loop after different numbers of iterations")

    def _branch(self, op: ir.Operation) -> None:
        if any(self.of(operand) != 0 for operand in op.operands):
            self._check_choice(op)
        for region in op.regions:
            for block in region.blocks:
                self._block(block)
        if any(self.of(operand) != 0 for operand in op.operands):
            self._differ(op.results)
        elif len(op.results):
            self._mix(op.results, ends_of(op))

    def _check_choice(self, op: ir.Operation) -> None:
        """Lanes that choose differently compute both: what does nothing but compute."""
        inside = list(operations_in(op))
        if op.name != "scf.if" or not all(map(_may_be_tried, inside)) or not len(op.results):
            raise NoLanes("lanes take different branches")

    def _mix(self, values: Sequence[ir.Value], sources: Sequence[Sequence[ir.Value]]) -> None:
        """Each of `values` may be any of those in its place of `sources`."""
        for place, value in enumerate(values):
            if any(self.of(each[place]) != 0 for each in sources):
                self._differ([value])

    def _differ(self, values: Iterable[ir.Value]) -> None:
        for value in values:
            _check_element(value.type)
            self._of[value] = None


def ends_of(op: ir.Operation) -> list[list[ir.Value]]:
    """What each region of a branch ends with."""
    found: list[list[ir.Value]] = []
    for region in op.regions:
        block = region.blocks[0]
        found.append(list(block.operations[len(block.operations) - 1].operation.operands))
    return found


_LANE = "lane"


def _factor(form: Affine | None) -> Stride:
    """Of a form in which the lane may be."""
    if form is None or any(_LANE in name and name != _LANE for name, _ in form.terms):
        return None
    return dict(form.terms).get(_LANE, 0)


def _is_wide(kind: ir.Type) -> bool:
    """Whether it is as wide as an address."""
    return isinstance(kind, ir.IndexType) or str(kind) == "i64"


def _check_element(kind: ir.Type) -> None:
    """NoLanes where vectors are not made of such."""
    fits = isinstance(kind, (ir.F32Type, ir.F64Type, ir.IndexType)) or (
        isinstance(kind, ir.IntegerType) and kind.is_signless and kind.width in WIDTHS
    )
    if not fits:
        raise NoLanes(f"no vectors of {kind} are written")


def _may_be_tried(op: ir.Operation) -> bool:
    """Whether it has no effect, whatever it is computed of."""
    plain = is_pure(op) and op.name.startswith(("arith.", "math."))
    return (plain and op.name.partition(".")[2] not in SCALAR_ONLY) or op.name == "scf.yield"
