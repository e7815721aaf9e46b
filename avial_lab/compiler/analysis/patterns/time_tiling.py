"""Tiles in time and space: how many steps of a time loop a part of the arrays takes at once.

A loop around sweeps over arrays -> TimeTiles, or Immovable where nothing lets its steps mix.

    for t                    h = R t + s - i  and  h' = R' t + s' + i  never fall along a
      for i: B[i] = A …      dependence: blocks of both are tiles (diamonds in t and i). Those on a
      for i: A[i] = B …      wave, whose numbers have one sum, need nothing of each other.

Where a sweep needs what it wrote in the slab before (Gauss-Seidel), no such h goes to the left, and
t itself takes its place: a tile is a block of steps over slabs that move on with each.

A slab is what one iteration of a sweep's outermost loop touches: a row, a plane. The shifts s, one
for each sweep, are the least that every dependence allows (difference constraints, Bellman-Ford).

Source: V. Bandishti, I. Pananilath, U. Bondhugula, Tiling stencil computations to maximize
parallelism, SC 2012; for the shifts P. Feautrier, Some efficient solutions to the affine scheduling
problem, part I, IJPP 21 (1992).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt, prod

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, ArrayKind, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.units import PURE, Immovable
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, STORES
from avial_lab.compiler.ir.nesting import FORS, body_of, parent_of
from avial_lab.compiler.ir.operations import constant_of
from avial_lab.core.element_types import ITEMSIZE

IN, OUT, SET, PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set, isl.dim_type.param
STEEPEST = 8
"""Slabs by which a tile's face may lean with every time step."""

FEWEST_SLABS = 8
"""Of a tile that is worth its bounds."""

FEWEST_TILES = 8
"""Of the arrays, and of their steps where tiles are blocks of those: as many as are on one wave at
the most, for threads to share, while the first and the last waves have one.
"""

SIDE_BY_SIDE = 8
"""Slabs of a block of steps that are gone through at once (`jam-for-latency`): about the latency of
a division over the time between two of them.
"""

FEWEST_STEPS = 4
"""Of a block of steps that is worth its tiles."""


class Resident(Immovable):
    """Its arrays, `nbytes` of them, stay in a core's cache during all of `steps`: nothing to tile
    for.
    """

    def __init__(self, nbytes: int, steps: int, cache: int) -> None:
        super().__init__(f"its arrays ({nbytes:,} bytes) fit in a cache of {cache:,} bytes")
        self.nbytes, self.steps = nbytes, steps


@dataclass(frozen=True)
class Sweep:
    """One operation in the body of the time loop; `loops` go over slabs and, where all of a slab's
    work is in one, over lines of it. None where it stays at one place.
    """

    op: ir.Operation
    loops: tuple[ir.Operation | None, ...]


@dataclass(frozen=True)
class Face:
    """`time` · t + `sign` · x[`dim`] + `shifts[sweep]` never falls along a dependence; `width` of
    its values are one tile. `dim`: 0 slabs, 1 lines; the time alone has sign 0.
    """

    time: int
    dim: int
    sign: int
    shifts: tuple[int, ...]
    width: int = 1


@dataclass(frozen=True)
class Extents:
    """From the first to the last value, of the time, and of slabs and lines of each sweep."""

    time: tuple[int, int]
    space: tuple[tuple[tuple[int, int], ...], ...]

    def slabs(self, dim: int) -> int:
        """Of all sweeps together."""
        ends = [ends[dim] for ends in self.space]
        return max(high for _, high in ends) - min(low for low, _ in ends) + 1

    @property
    def steps(self) -> int:
        return self.time[1] - self.time[0] + 1


@dataclass(frozen=True)
class TimeTiles:
    """Tiles of the first two `faces` on one wave may run at the same time; those of a third, one
    after the other within each. `nbytes`: of all arrays in them.
    """

    loop: ir.Operation
    sweeps: tuple[Sweep, ...]
    faces: tuple[Face, ...]
    extents: Extents
    nbytes: int

    @property
    def dims(self) -> int:
        return max(face.dim for face in self.faces) + 1

    def __str__(self) -> str:
        shape = "diamonds" if self.faces[0].sign else "blocks of steps and slabs"
        sizes = " × ".join(str(face.width) for face in self.faces)
        return f"{shape}, {sizes}"


@dataclass(frozen=True)
class Cone:
    """What slabs hang on: whoever makes `low <= slab < high` of the last step needs of sweep k at
    step t those from `low - below(t, k)` to `high + above(t, k)`, and what was before the first.
    """

    sweeps: tuple[Sweep, ...]
    falling: Face
    rising: Face
    extents: Extents

    def reach(self, steps: int, sweep: int) -> tuple[int, int]:
        """below(0, sweep) and above(0, sweep); with every step there are `leans` less."""
        below, above = (
            face.time * (steps - 1) + max(face.shifts) - face.shifts[sweep]
            for face in (self.falling, self.rising)
        )
        return below, above

    @property
    def leans(self) -> tuple[int, int]:
        return self.falling.time, self.rising.time


def cone(loop: ir.Operation) -> Cone:
    """Of the steps of a time loop over arrays; raises Immovable where it has none."""
    found = _Sweeps.of(loop)
    if found is None:
        raise Immovable("it is not a loop around sweeps over arrays")
    # A rank goes through them in the program's order: what it reads has to be there, no more.
    slabs = replace(found.at(1), flow=True)
    made = limited(lambda: _cone(slabs), lambda: None)
    if made is None:
        raise Immovable("isl gave up computing the dependences between its steps")
    return made


def _cone(found: _Sweeps) -> Cone:
    extents = found.extents()
    if extents is None:
        raise Immovable("its bounds are not known before it runs")
    if any(sweep.loops[0] is None for sweep in found.sweeps):
        raise Immovable("some of its sweeps have no loop over rows of what they write")
    falling, rising = found.face(0, -1, gentlest=0), found.face(0, 1, gentlest=0)
    if falling is None or rising is None:
        raise Immovable("each step depends on all rows before it, or on all after it")
    return Cone(found.sweeps, falling, rising, extents)


def time_tiles(
    loop: ir.Operation, *, caches: Sequence[int], widths: Sequence[int] = ()
) -> TimeTiles:
    """The tiles of a time loop over arrays that are larger than the last of `caches`, bytes of each
    level that a core has for itself.

    `widths`: of the faces, instead of those that follow from the caches. Raises Immovable where
    the loop stays as it is.
    """
    found = _Sweeps.of(loop)
    if found is None:
        raise Immovable("it is not a loop around sweeps over arrays")
    tiles = limited(lambda: _tiles(found, caches, widths), lambda: None)
    if tiles is None:
        raise Immovable("isl gave up computing its tiles")
    return tiles


def _tiles(found: _Sweeps, caches: Sequence[int], widths: Sequence[int]) -> TimeTiles:
    extents, nbytes = found.extents(), found.nbytes
    if extents is None or nbytes is None:
        raise Immovable("its bounds, or the sizes of its arrays, are not known before it runs")
    if extents.steps < 2:
        raise Immovable("it has one step")
    if not widths and nbytes <= caches[-1]:
        raise Resident(nbytes, extents.steps, caches[-1])
    slabs = found.at(1)
    if all(sweep.loops[0] is None for sweep in slabs.sweeps):
        raise Immovable("none of its sweeps has a loop over rows of what it writes")
    faces = slabs.pair()
    if faces is None:
        raise Immovable("no tile of several steps respects the dependences between its sweeps")
    lines = found.at(2).pair(third=True) if found.has_lines else None
    sized = _sized(faces, lines, extents, nbytes, caches, widths)
    if sized is None:
        raise Immovable("too few rows of its arrays fit in a cache")
    sweeps = found.sweeps if len(sized) > 2 else slabs.sweeps
    return TimeTiles(found.loop, sweeps, sized, extents, nbytes)


# Sizes --------------------------------------------------------------------------------------------


def _sized(
    faces: Sequence[Face],
    lines: Sequence[Face] | None,
    extents: Extents,
    nbytes: int,
    caches: Sequence[int],
    widths: Sequence[int],
) -> tuple[Face, ...] | None:
    """The faces with their widths: of slabs, or where too few of them fit, of slabs and lines."""
    if widths:
        chosen = faces if len(widths) < 3 or lines is None else lines
        sizes = [*widths, widths[-1], widths[-1]]
        return tuple(replace(f, width=w) for f, w in zip(chosen, sizes, strict=False))
    slab = max(1, nbytes // extents.slabs(0))
    room = next((c for c in caches if _across(faces, c, slab) >= 32 * FEWEST_SLABS), caches[-1])
    width = _across(faces, room, slab)
    if width >= FEWEST_SLABS or lines is None:
        return _in_waves(faces, width, extents) if width >= FEWEST_SLABS else None
    line = max(1, slab // extents.slabs(1))
    # Within a tile of as many slabs as steps the third face moves by this many lines a slab.
    moves = 2 * lines[2].time / max(1, lines[0].time + lines[1].time)
    width = isqrt(int(_usable(caches[-1]) / line / (1 + moves)))
    return _of_width(lines, width) if width >= FEWEST_SLABS // 2 else None


def _usable(cache: int) -> int:
    """Some of a cache is for what else is there, and for what falls on its own places."""
    return cache * 3 // 4


def _across(faces: Sequence[Face], cache: int, slab: int) -> int:
    """Blocks of steps lean by as much again as they are wide; diamonds do not."""
    return _usable(cache) // slab // (1 if faces[0].sign else 2)


def _in_waves(faces: Sequence[Face], width: int, extents: Extents) -> tuple[Face, ...]:
    """Narrower where a wave would have next to no tiles: of arrays that are little larger than the
    cache a few fit as well.
    """
    narrow = min(width, max(FEWEST_SLABS, extents.slabs(0) // FEWEST_TILES))
    if not faces[0].sign:
        # Rows that are left over from those that run side by side wait for themselves, each for as
        # long as all of those take.
        narrow -= narrow % SIDE_BY_SIDE
    most = max(FEWEST_STEPS, extents.steps // FEWEST_TILES)
    return tuple(
        each if each.sign else replace(each, width=min(each.width, most))
        for each in _of_width(faces, narrow)
    )


def _of_width(faces: Sequence[Face], width: int) -> tuple[Face, ...]:
    steps = max(2, width // max(1, faces[1].time))
    return tuple(replace(f, width=width if f.sign else steps) for f in faces)


# Sweeps and what they need of each other ----------------------------------------------------------


@dataclass(frozen=True)
class _Sweeps:
    """The operations of a time loop that touch memory, in order, and the statements in each.

    `flow`: what one needs of another is only what that one writes for it to read.
    """

    loop: ir.Operation
    scop: Scop
    sweeps: tuple[Sweep, ...]
    statements: tuple[tuple[Statement, ...], ...]
    flow: bool = False

    @staticmethod
    def of(loop: ir.Operation) -> _Sweeps | None:
        """None where the loop or something in it is no sweep."""
        if not _is_plain_loop(loop) or _chooses_elements(loop):
            return None
        scop = read_scop(loop)
        written = {a.array for s in scop.statements for a in s.accesses if a.writes}
        inside: dict[ir.Operation, list[Statement]] = {}
        for statement in scop.statements:
            inside.setdefault(_child(loop, statement.op), []).append(statement)
        for op in list(inside):
            if len(op.results):
                # A value that is computed before the sweeps, of what no step changes.
                if any(a.array in written for s in inside[op] for a in s.accesses):
                    return None
                del inside[op]
        if not inside or any(not _may_stand(op) for op in body_of(loop) if op not in inside):
            return None
        sweeps = tuple(Sweep(op, _loops(op, inside[op])) for op in inside)
        return _Sweeps(loop, scop, sweeps, tuple(tuple(s) for s in inside.values()))

    @property
    def has_lines(self) -> bool:
        return any(sweep.loops[1] is not None for sweep in self.sweeps)

    def at(self, dims: int) -> _Sweeps:
        """The same, looked at by slabs alone, or by lines too."""
        cut = tuple(replace(sweep, loops=sweep.loops[:dims]) for sweep in self.sweeps)
        return replace(self, sweeps=cut)

    # -- how large

    @cached_property
    def nbytes(self) -> int | None:
        """Of all arrays that every step goes through; None where that is not known."""
        accesses = [access for s in self.scop.statements for access in s.accesses]
        passing = {access.array for access in accesses if _moves_with_time(access)}
        arrays = {access.array for access in accesses} - passing
        sizes = [_nbytes(array) for array in arrays if array.kind is ArrayKind.MEMORY]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def _has_fixed_steps(self) -> bool:
        """Whether the time loop's bounds are numbers: one around it may cut it short."""
        (own,) = self.scop.loops_of(self.loop)
        steps = self.scop.iterations.get(own)
        if steps is None:
            return False
        return steps.is_equal(steps.project_out_all_params().intersect_params(steps.params()))

    def extents(self) -> Extents | None:
        """None where the loops' bounds are not known, or the steps are not always the same ones."""
        if not self._has_fixed_steps:
            return None
        times: list[tuple[int, int]] = []
        space: list[tuple[tuple[int, int], ...]] = []
        for sweep, statements in zip(self.sweeps, self.statements, strict=True):
            domains = [_placed_set(s, sweep) for s in statements]
            whole = domains[0]
            for domain in domains[1:]:
                whole = whole.union(domain)
            if whole.is_empty():
                return None
            ends = [(whole.dim_min_val(k), whole.dim_max_val(k)) for k in range(whole.dim(SET))]
            if not all(low.is_int() and high.is_int() for low, high in ends):
                return None
            known = [(low.to_python(), high.to_python()) for low, high in ends]
            times.append(known[0])
            space.append(tuple(known[1:]))
        low, high = min(low for low, _ in times), max(high for _, high in times)
        return Extents((low, high), tuple(space))

    # -- faces

    def pair(self, *, third: bool = False) -> tuple[Face, ...] | None:
        """The two faces of tiles on a wave, and a third over lines; None where there are none."""
        falling, rising = self.face(0, -1), self.face(0, 1)
        time = Face(1, 0, 0, (0,) * len(self.sweeps))
        if falling is not None and rising is not None:
            pair = (falling, rising)
        elif falling is not None or rising is not None:
            pair = (time, *(face for face in (falling, rising) if face is not None))
        else:
            return None
        if not third:
            return pair
        lines = self.face(1, 1) or self.face(1, -1)
        return (*pair, lines) if lines is not None else None

    def face(self, dim: int, sign: int, *, gentlest: int = 1) -> Face | None:
        """The one that leans least; None where there is none."""
        for time in range(gentlest, STEEPEST + 1):
            shifts = self._shifts(time, dim, sign)
            if shifts is not None:
                return Face(time, dim, sign, shifts)
        return None

    def _shifts(self, time: int, dim: int, sign: int) -> tuple[int, ...] | None:
        """The least shifts with which nothing falls; None where there are none."""
        least: dict[tuple[int, int], int] = {}
        for pair, distances in self._distances.items():
            fall = _greatest_fall(distances, time, dim, sign)
            if fall is None or (pair[0] == pair[1] and fall > 0):
                return None
            least[pair] = fall
        shifts = [0] * len(self.sweeps)
        for _ in range(len(shifts) + 1):
            before = list(shifts)
            for (source, target), fall in least.items():
                shifts[target] = max(shifts[target], shifts[source] + fall)
            if shifts == before:
                return tuple(shifts)
        return None

    @cached_property
    def _distances(self) -> dict[tuple[int, int], isl.Set]:
        """{ [Δt, Δslab(, Δline)] } from sweep to sweep, of all that touches the same element."""
        found: dict[tuple[int, int], isl.Set] = {}
        touched = [list(self._touched(k)) for k in range(len(self.sweeps))]
        for source, first in enumerate(touched):
            for target, second in enumerate(touched):
                before = _before(len(self.sweeps[0].loops), source, target)
                for one in first:
                    for other in second:
                        if one.array != other.array or not self._orders(one, other):
                            continue
                        pairs = one.relation.apply_range(other.relation.reverse())
                        deltas = pairs.intersect(before.align_params(pairs.get_space())).deltas()
                        known = found.get((source, target))
                        found[source, target] = deltas if known is None else known.union(deltas)
        return {pair: deltas for pair, deltas in found.items() if not deltas.is_empty()}

    def _orders(self, one: _Touched, other: _Touched) -> bool:
        """Whether what they touch of one array has to be touched in their order."""
        return one.writes and not other.writes if self.flow else one.writes or other.writes

    def _touched(self, number: int) -> Iterator[_Touched]:
        """What the sweep reads, and what it writes, of each array."""
        sweep = self.sweeps[number]
        known: dict[tuple[str, bool], isl.Map] = {}
        for statement in self.statements[number]:
            for access in statement.accesses:
                key, relation = (
                    (access.array.name, access.writes),
                    _placed(access, statement, sweep),
                )
                known[key] = known[key].union(relation) if key in known else relation
        for (array, writes), relation in known.items():
            yield _Touched(array, writes, relation)


@dataclass(frozen=True)
class _Touched:
    """`{ [t, slab(, line)] -> A[…] }`"""

    array: str
    writes: bool
    relation: isl.Map


def _is_plain_loop(op: ir.Operation) -> bool:
    """Whether its iterations are consecutive, and hand nothing on."""
    if op.name not in FORS or len(op.results):
        return False
    if op.name == "affine.for":
        return ir.IntegerAttr(op.attributes["step"]).value == 1
    return constant_of(op.operands[2]) == 1


def _chooses_elements(loop: ir.Operation) -> bool:
    """Whether an index into what is written in the loop is computed from its variable: then it goes
    through the arrays and is no time. (Seen without any analysis, for most loops are none.)
    """
    moving: set[ir.Value] = {loop.regions[0].blocks[0].arguments[0]}
    indexed: set[ir.Value] = set()
    written: set[ir.Value] = set()
    pending = [loop]
    while pending:
        for view in (v for region in pending.pop().regions for block in region for v in block):
            op = view.operation
            pending.append(op)
            if op.name in STORES:
                written.add(op.operands[1])
            if op.name in ACCESSES:
                first = 1 + (op.name in STORES)
                if any(index in moving for index in list(op.operands)[first:]):
                    indexed.add(op.operands[first - 1])
            elif any(operand in moving for operand in op.operands) and not len(op.regions):
                moving.update(op.results)
    return bool(indexed & written)


def _child(loop: ir.Operation, op: ir.Operation) -> ir.Operation:
    """The operation of the loop's own body that `op` is, or stands in."""
    while True:
        around = parent_of(op)
        assert around is not None, "a statement of the loop stands in it"
        if around == loop:
            return op
        op = around


def _may_stand(op: ir.Operation) -> bool:
    return op.name.startswith((*PURE, *LOADS)) and not len(op.regions)


def _loops(op: ir.Operation, statements: Iterable[Statement]) -> tuple[ir.Operation | None, ...]:
    """The loops that go over the first dimension of what is written, and over the second."""
    slabs = op if op.name in FORS and _is_plain_loop(op) else None
    if slabs is None or not _walks(slabs, 0, statements):
        return (None, None)
    inner = [each for each in body_of(slabs) if not _is_pure(each)]
    alone = len(inner) == 1 and _is_plain_loop(inner[0]) and _walks(inner[0], 1, statements)
    return (slabs, inner[0] if alone else None)


def _is_pure(op: ir.Operation) -> bool:
    return op.name.startswith(PURE) and not len(op.regions)


def _walks(loop: ir.Operation, dim: int, statements: Iterable[Statement]) -> bool:
    """Whether an array is written whose dimension `dim` goes with the loop."""
    for statement in statements:
        places = [k for k, each in enumerate(statement.loops) if each.op == loop]
        for access in statement.accesses:
            if not access.writes or not places or access.array.rank <= dim:
                continue
            form = access.forms[dim] if access.forms is not None else None
            if form is not None and any(
                n == statement.loops[places[0]].name for n, _ in form.terms
            ):
                return True  # also where the loop has a single iteration
            relation = access.relation
            moves = relation.project_out(OUT, dim + 1, relation.dim(OUT) - dim - 1)
            moves = moves.project_out(OUT, 0, dim)
            fixed = moves.project_out(IN, places[0], 1)
            if moves.is_single_valued() and not fixed.is_single_valued():
                return True
    return False


def _moves_with_time(access: Access) -> bool:
    """Whether each step is at other elements: no later one finds them in the cache."""
    relation = access.relation
    return relation.is_single_valued() and not relation.project_out(IN, 0, 1).is_single_valued()


def _nbytes(array: Array) -> int | None:
    itemsize = ITEMSIZE.get(array.element_type)
    if None in array.shape or itemsize is None:
        return None
    return prod(size or 0 for size in array.shape) * itemsize


# Relations ----------------------------------------------------------------------------------------


def _placing(statement: Statement, sweep: Sweep) -> isl.Map:
    """`{ S0[t, i, j, k] -> [t, slab, line] }`, 0 where the sweep has no such loop."""
    names = [f"d{k}" for k in range(len(statement.loops))]
    where = {loop.op: name for loop, name in zip(statement.loops, names, strict=True)}
    places = [names[0], *("0" if op is None else where[op] for op in sweep.loops)]
    return isl.Map(f"{{ {statement.name}[{', '.join(names)}] -> [{', '.join(places)}] }}")


def _placed(access: Access, statement: Statement, sweep: Sweep) -> isl.Map:
    return access.relation.apply_domain(_placing(statement, sweep))


def _placed_set(statement: Statement, sweep: Sweep) -> isl.Set:
    domain = statement.domain.apply(_placing(statement, sweep))
    return domain.project_out(PARAM, 0, domain.dim(PARAM))


def _before(dims: int, source: int, target: int) -> isl.Map:
    """Places of one sweep that come before places of another. (The same place in the same sweep is
    one: nothing parts it.)
    """
    ones, others = ([f"{stem}{k}" for k in range(dims + 1)] for stem in "xy")
    earlier = [_lexicographic(ones[:1], others[:1])]
    if source < target:
        earlier.append(f"{ones[0]} = {others[0]}")
    elif source == target:
        earlier = [_lexicographic(ones, others)]
    return isl.Map(f"{{ [{', '.join(ones)}] -> [{', '.join(others)}] : {' or '.join(earlier)} }}")


def _lexicographic(ones: Sequence[str], others: Sequence[str]) -> str:
    cases = (
        " and ".join([*(f"{a} = {b}" for a, b in zip(ones[:k], others[:k], strict=True)),
                      f"{ones[k]} < {others[k]}"])
        for k in range(len(ones))
    )  # fmt: skip
    return " or ".join(f"({case})" for case in cases)


def _greatest_fall(distances: isl.Set, time: int, dim: int, sign: int) -> int | None:
    """By how much `time · t + sign · x` is less at the target than at the source, at most; None
    where nothing bounds it.
    """
    distances = distances.project_out(PARAM, 0, distances.dim(PARAM))
    form = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(distances.get_space()))
    form = form.set_coefficient_val(IN, 0, -time).set_coefficient_val(IN, dim + 1, -sign)
    value = distances.max_val(form)
    return value.to_python() if value.is_int() else None
