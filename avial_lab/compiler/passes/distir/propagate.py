"""A new axis of the meshes, and what follows for every value from how arguments lie along it.

Function, how its arguments lie along the axis -> the same function with placements that verify:
moves stand where an operation needs its operands otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from mlir import ir

from avial_lab.compiler.analysis.placements.check import is_neutral, mend
from avial_lab.compiler.analysis.placements.dimension_classes import DimensionClasses
from avial_lab.compiler.analysis.placements.reading import Reading
from avial_lab.compiler.analysis.placements.split_loops import Loops
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import (
    MOVES,
    RESHARD,
    PlacedTypes,
    has_placements,
    is_tensor,
    meshes_in,
    placement_of,
    settle_signature,
    values_in,
    with_placement,
    write_mesh,
)
from avial_lab.compiler.ir.program import program_function
from avial_lab.core.errors import ScheduleError, VerifyError
from avial_lab.core.words import count, format_bytes
from avial_lab.planning.tensor_placement import COPY, Along, Kind, Mesh, Placement

FIRST = "m"
"""The name of the mesh of a function that had none."""


def place_on_one(module: ir.Operation, function: ir.Operation) -> None:
    """All tensors of a function that has no placements lie on one device."""
    if has_placements(module):
        return
    mesh = Mesh(FIRST, (), (0,))
    write_mesh(module, mesh)
    types, copies = PlacedTypes({FIRST: mesh}), Placement.copies(mesh)
    arguments = function.regions[0].blocks[0].arguments
    types.place_as((*arguments, *_results(function)), lambda _: copies)
    settle_signature(function)


def _results(function: ir.Operation) -> list[ir.Value]:
    return [r for view in function.regions[0].blocks[0].operations for r in view.results]


def stage_names(meshes: Mapping[str, Mesh], stage: int) -> list[str]:
    """The mesh of that stage of a pipeline, and others on the same devices; ScheduleError where
    there is none.
    """
    names = sorted(meshes, key=lambda name: (len(name), name))  # as `pipeline-parallel` counts
    if stage >= len(names):
        raise ScheduleError(
            f"there is no stage {stage}",
            hint=f"the stages are 0 to {len(names) - 1}; write `in` behind the pipeline: "
            "pipeline 2 x 4, horizontal 2 in 1",
        )
    there = set(meshes[names[stage]].devices)
    return [name for name in names if there & set(meshes[name].devices)]


def _widened_alone(meshes: Sequence[Mesh], parts: int, total: int) -> list[Mesh]:
    """As `widened`, for some of the meshes: new devices are numbered on from `total`."""
    devices = sorted({device for mesh in meshes for device in mesh.devices})
    new = {
        device: (device, *range(total + k * (parts - 1), total + (k + 1) * (parts - 1)))
        for k, device in enumerate(devices)
    }
    return [
        replace(
            mesh, shape=(*mesh.shape, parts), devices=tuple(n for d in mesh.devices for n in new[d])
        )
        for mesh in meshes
    ]


def widened(mesh: Mesh, parts: int, total: int, *, turns: bool) -> Mesh:
    """The mesh with one more axis: of time, or of `parts` times as many devices, of which all
    meshes had `total`.
    """
    if turns:
        return replace(mesh, turns=parts)
    devices = tuple(part * total + device for device in mesh.devices for part in range(parts))
    return Mesh(mesh.name, (*mesh.shape, parts), devices, mesh.turns)


def add_axis(
    module: ir.Operation,
    function: ir.Operation,
    parts: int,
    seeds: Mapping[ir.Value, int],
    *,
    turns: bool = False,
    stage: int | None = None,
    reading: Reading | None = None,
) -> str:
    """Every mesh, or that of a `stage` alone, gets an axis of that length, along which arguments in
    `seeds` are divided in the dimension that stands there, and others are copies. An argument of
    which some operation needs blocks alone lies in these from the beginning. The function
    may be made anew: `program_function(module)` is what it is then. What was done, in words.
    `reading`: of this function, used up here.
    """
    arguments = list(function.regions[0].blocks[0].arguments)
    numbers = {arguments.index(value): dim for value, dim in seeds.items()}
    while True:  # each time with more arguments in blocks
        before = module.clone().operation
        given: dict[ir.Value, int] = {
            function.regions[0].blocks[0].arguments[k]: dim for k, dim in numbers.items()
        }
        propagation = _add_axis(
            module, function, parts, given, turns=turns, stage=stage, reading=reading or Reading()
        )
        more = {k: dim for k, dim in _scattered(function) if k not in numbers}
        if not more:
            return propagation.told
        numbers |= more
        _become(module, before)
        function, reading = program_function(module), None


def _become(module: ir.Operation, other: ir.Operation) -> None:
    """All of `other` in place of what the module holds."""
    block = module.regions[0].blocks[0]
    for view in list(block.operations):
        view.operation.erase()
    for view in list(other.regions[0].blocks[0].operations):
        block.append(view.operation)


def _scattered(function: ir.Operation) -> Iterator[tuple[int, int]]:
    """Arguments by number of which blocks are taken, and the dimension."""
    for view in function.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "distir.scatter" and isinstance(op.operands[0].owner, ir.Block):
            have, made = str(op.operands[0].type.encoding), str(op.results[0].type.encoding)
            changed = next(
                (b for a, b in zip(_entries(have), _entries(made), strict=True) if a != b), ""
            )
            yield op.operands[0].arg_number, Along.parse(changed).dim


def _entries(encoding: str) -> list[str]:
    return [each.strip(' ">') for each in encoding.partition(", ")[2].split(",")]


def _add_axis(
    module: ir.Operation,
    function: ir.Operation,
    parts: int,
    seeds: Mapping[ir.Value, int],
    *,
    turns: bool,
    stage: int | None,
    reading: Reading,
) -> Propagation:
    place_on_one(module, function)
    meshes = meshes_in(module)
    total = 1 + max(device for mesh in meshes.values() for device in mesh.devices)
    if stage is None:
        wider = {name: widened(mesh, parts, total, turns=turns) for name, mesh in meshes.items()}
    else:
        alone = [meshes[name] for name in stage_names(meshes, stage)]
        wider = {mesh.name: mesh for mesh in _widened_alone(alone, parts, total)}
    axes = {name: len(meshes[name].axes if turns else meshes[name].shape) for name in wider}
    received = {} if stage is None else _rows_received(function, meshes, set(wider), seeds)
    for mesh in wider.values():
        write_mesh(module, mesh)

    def copied(placement: Placement | None) -> Placement | None:
        if placement is None or placement.mesh.name not in wider:
            return None
        axis, along = axes[placement.mesh.name], placement.along
        return Placement(wider[placement.mesh.name], (*along[:axis], COPY, *along[axis:]))

    PlacedTypes(meshes).place_as(list(values_in(function)), copied)
    propagation = Propagation({**meshes, **wider}, axes, received, reading)
    propagation.seed(seeds)
    propagation.run(function)
    settle_signature(function)
    return propagation


def _rows_received(
    function: ir.Operation,
    meshes: Mapping[str, Mesh],
    there: Container[str],
    seeds: Mapping[ir.Value, int],
) -> dict[ir.Value, int]:
    """What comes to these meshes from others with a dimension that is one of the seeds'."""
    moved = [
        view.operation.results[0]
        for view in function.regions[0].blocks[0].operations
        if view.operation.name in MOVES
    ]
    coming: list[ir.Value] = []
    for value in moved:
        source = placement_of(value.owner.operation.operands[0].type, meshes)
        made = placement_of(value.type, meshes)
        if source and made and made.mesh.name in there and source.mesh.name not in there:
            coming.append(value)
    classes = DimensionClasses.of(function)
    found: dict[ir.Value, int] = {}
    for seed in seeds.items():
        found |= classes.dimensions_like(seed, coming)
    return found


@dataclass
class Propagation:
    """`axes`: by the name of a mesh, the axis along which values are placed; what lies on others
    stays. `received`: dimensions in which what comes from those is divided.
    """

    meshes: Mapping[str, Mesh]
    axes: Mapping[str, int]
    received: Mapping[ir.Value, int] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    moved: dict[tuple[ir.Value, Along], ir.Value] = field(default_factory=dict)
    placed: dict[ir.Value, Placement] = field(default_factory=dict)
    """What types say, read once: a type is text in the IR."""
    gone: list[ir.Operation] = field(default_factory=list)
    """Erased at the end: values are known by their addresses."""
    done: Counter[Kind] = field(default_factory=Counter)
    """How many operations make blocks, partial results, the same on all devices."""
    added: Counter[str] = field(default_factory=Counter)
    """Moves by name; `added_bytes` are those of the tensors that they move."""
    added_bytes: int = 0
    types: PlacedTypes = field(init=False)

    def __post_init__(self) -> None:
        self.types = PlacedTypes(self.meshes)

    def seed(self, dimensions: Mapping[ir.Value, int]) -> None:
        """These values are divided so."""
        for value, dim in dimensions.items():
            if self._is_here(value):
                self._set(value, Along(Kind.SPLIT, dim))

    def run(self, function: ir.Operation) -> None:
        block = function.regions[0].blocks[0]
        for view in list(block.operations):
            op = view.operation
            if op.name in MOVES:
                self._pass_through(op)
            elif op.name == "func.return":
                for k, value in enumerate(op.operands):
                    if self._is_here(value) and self._along(value).kind.is_partial:
                        op.operands[k] = self._brought(value, COPY)
            elif any(map(self._is_here, op.operands)):
                for value in self.reading.captured(op):
                    self.reading.replace_captured(op, value, self._brought(value, COPY))
                self.place(op)
        for op in self.gone:
            op.erase()
        _erase_unused(block)

    def _is_here(self, value: ir.Value) -> bool:
        """Whether it lies on a mesh with the axis."""
        return is_tensor(value.type) and self._placement(value).mesh.name in self.axes

    def _placement(self, value: ir.Value) -> Placement:
        if value not in self.placed:
            placement = self.types.placement_of(value)
            assert placement is not None
            self.placed[value] = placement
        return self.placed[value]

    def _axis(self, value: ir.Value) -> int:
        return self.axes[self._placement(value).mesh.name]

    def _along(self, value: ir.Value) -> Along:
        return self._placement(value).along[self._axis(value)]

    def _set(self, value: ir.Value, along: Along) -> None:
        self.placed[value] = self._placement(value).with_axis(self._axis(value), along)
        self.types.place(value, self.placed[value])

    def _pass_through(self, move: ir.Operation) -> None:
        """A move along other axes; one that adds up partial results does so along this one, too."""
        here, there = self._is_here(move.operands[0]), self._is_here(move.results[0])
        if not (here and there):
            self._cross(move, here=here, there=there)
            return
        along = self._along(move.operands[0])
        adds = along.kind.is_partial and (
            move.name == "distir.all_reduce" or not self._same_mesh(move)
        )
        if adds and move.name != "distir.all_reduce":
            move.operands[0] = self._brought(move.operands[0], COPY)
        self._set(move.results[0], COPY if adds else along)

    def _cross(self, move: ir.Operation, *, here: bool, there: bool) -> None:
        """A move between meshes of which one has the axis: it is one copy for the other, and comes
        from there as copies, of which devices keep their rows.
        """
        if here:
            move.operands[0] = self._brought(move.operands[0], COPY)
        if not (here or there):
            return
        made = ir.Operation.create(
            RESHARD, [move.results[0].type], [move.operands[0]],
            ip=ir.InsertionPoint(move), loc=move.location,
        ).result  # fmt: skip
        users = [(use.owner.operation, use.operand_number) for use in move.results[0].uses]
        dim = self.received.get(move.results[0])
        now = made if dim is None else self._brought(made, Along(Kind.SPLIT, dim))
        for user, operand in users:
            user.operands[operand] = now
        self.gone.append(move)

    def _same_mesh(self, move: ir.Operation) -> bool:
        source, result = self._placement(move.operands[0]), self._placement(move.results[0])
        return source.mesh.name == result.mesh.name

    def place(self, op: ir.Operation) -> None:
        loops = self.reading.loops(op)
        if self.reading.is_free(op):
            for value in op.results:
                self._set(value, COPY)
            return
        for k, value in enumerate(op.operands):
            if (
                is_tensor(value.type)
                and k not in loops.inits
                and self._along(value).kind.is_partial
            ):
                op.operands[k] = self._brought(value, COPY)
        loop = self._chosen(op, loops)
        results = [COPY] * len(op.results)
        if loop is not None:
            results = [
                Along(Kind.SPLIT, dims.index(loop))
                if loop in dims
                else Along(loops.kind_of(k) or Kind.SUM)
                for k, dims in enumerate(loops.results)
            ]
        for k, value in enumerate(op.operands):
            if not is_tensor(value.type):
                continue
            if k in loops.inits:
                wanted = results[loops.inits.index(k)]
            elif loop is not None and loop in loops.operands[k]:
                wanted = Along(Kind.SPLIT, loops.operands[k].index(loop))
            else:
                wanted = COPY
            op.operands[k] = self._brought(value, wanted)
        for value, along in zip(op.results, results, strict=True):
            if is_tensor(value.type):
                self._set(value, along)
        self.done[results[0].kind if results else Kind.COPY] += 1

    @property
    def told(self) -> str:
        """What it made of operations, and which moves it took."""
        partial = sum(n for kind, n in self.done.items() if kind.is_partial)
        alike = self.done[Kind.COPY]
        divided = count(self.done.total() - alike, "operation")
        moves = ", ".join(f"{n} {name}" for name, n in sorted(self.added.items()))
        added = f"{moves} of {format_bytes(self.added_bytes)}" if moves else "no move"
        alone = f"; {alike} left alone, as nothing that is divided comes to them" if alike else ""
        return f"{divided} in blocks, {partial} of them with partial results: {added}{alone}"

    def _chosen(self, op: ir.Operation, loops: Loops) -> int | None:
        """The loop that is divided: that over most of what is divided already."""
        weights: dict[int, int] = {}
        for k, value in enumerate(op.operands):
            if not is_tensor(value.type) or k in loops.inits:
                continue
            along = self._along(value)
            if along.kind is not Kind.SPLIT:
                continue
            loop = loops.operands[k][along.dim]
            if loop is not None and self._may_divide(op, loops, loop):
                size = prod(value.type.shape) * itemsize_of(value.type.element_type)
                weights[loop] = weights.get(loop, 0) + size
        return max(weights, key=lambda loop: weights[loop], default=None)

    def _may_divide(self, op: ir.Operation, loops: Loops, loop: int) -> bool:
        """Not a reduction whose parts cannot be combined, or that begins with more than nothing."""
        for k, dims in enumerate(loops.results):
            if loop in dims:
                continue
            kind = loops.kind_of(k)
            if kind is None or not loops.inits:
                return False
            if not _is_neutral_tensor(op.operands[loops.inits[k]], kind):
                return False
        return True

    def _brought(self, value: ir.Value, wanted: Along) -> ir.Value:
        """The value as it is wanted: made anew where it is made of numbers, else moved."""
        have = self._along(value)
        if have == wanted:
            return value
        key = (value, wanted)
        if key in self.moved:
            return self.moved[key]
        made = self._made_anew(value, wanted)
        if made is None:
            placement = self._placement(value).with_axis(self._axis(value), wanted)
            # As early as it can be: others may want it so, too.
            after = (
                ir.InsertionPoint.at_block_begin(value.owner)
                if isinstance(value.owner, ir.Block)
                else ir.InsertionPoint.after(value.owner.operation)
            )
            name = mend(have, wanted)
            self.added[name] += 1
            self.added_bytes += prod(value.type.shape) * itemsize_of(value.type.element_type)
            made = ir.Operation.create(
                f"distir.{name}",
                [with_placement(value.type, placement)],
                [value],
                ip=after,
                loc=value.location,
            ).result
        self.moved[key] = made
        return made

    def _made_anew(self, value: ir.Value, wanted: Along) -> ir.Value | None:
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        if not self.reading.is_free(op) or (op.name == "arith.constant" and not _is_splat(op)):
            return None
        copy = op.clone(ip=ir.InsertionPoint.after(op))
        for k in self.reading.loops(op).inits:
            copy.operands[k] = self._brought(op.operands[k], wanted)
        self._set(copy.results[0], wanted)
        return copy.results[0]


def _is_splat(op: ir.Operation) -> bool:
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat


def _is_neutral_tensor(value: ir.Value, kind: Kind) -> bool:
    """Whether a tensor is filled with what changes nothing."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if op.name == "linalg.fill":
        return is_neutral(op.operands[0], kind)
    return is_neutral(value, kind)


def _erase_unused(block: ir.Block) -> None:
    """Moves, and tensors made of numbers, that nobody reads."""
    for view in reversed(list(block.operations)):
        op = view.operation
        made = op.name in (*MOVES, "tensor.empty", "linalg.fill", "arith.constant", "tensor.splat")
        if made and not any(True for result in op.results for _ in result.uses):
            op.erase()


def arguments_named(function: ir.Operation, names: Sequence[str]) -> list[ir.Value]:
    """The tensors among the arguments with these names; VerifyError for others."""
    arguments = list(function.regions[0].blocks[0].arguments)
    known = {
        name_of(argument.location) or f"arg{k}": argument
        for k, argument in enumerate(arguments)
        if is_tensor(argument.type)
    }
    for name in names:
        if name.removeprefix("%") not in known:
            raise VerifyError(
                f"there is no tensor %{name.removeprefix('%')} among the arguments",
                span=span_of(function.location),
                hint=f"the tensors are: {', '.join(known) or 'none'}",
            )
    return [known[name.removeprefix("%")] for name in names]


def seeds_named(function: ir.Operation, seeds: Sequence[tuple[str, int]]) -> dict[ir.Value, int]:
    """Arguments by name, each with the dimension that is to be divided; VerifyError for others."""
    arguments = arguments_named(function, [name for name, _ in seeds])
    for argument, (name, dim) in zip(arguments, seeds, strict=True):
        if not 0 <= dim < argument.type.rank:
            raise VerifyError(
                f"%{name} is {argument.type}: it has no dimension {dim}",
                span=span_of(argument.location),
                hint="dimensions count from 0",
            )
    return {argument: dim for argument, (_, dim) in zip(arguments, seeds, strict=True)}
