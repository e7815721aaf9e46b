"""Stencils that repeat: several steps of time on a part of the arrays while it is in the cache.

Functions of loops -> the same operations on every element, so the same bits, in tiles of time and
space. Those of one wave are independent, and marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir
from mlir.dialects import affine, arith

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests
from avial_lab.compiler.analysis.patterns.time_tiling import Face, Sweep, TimeTiles, time_tiles
from avial_lab.compiler.analysis.polyhedral.units import Immovable
from avial_lab.compiler.ir.attributes import ORDERED, PARALLEL
from avial_lab.compiler.ir.dialects.avial import rebuilt_with
from avial_lab.compiler.ir.nesting import FORS, body_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.remarks import add_remark, loop_name
from avial_lab.compiler.passes.loops.facts.independent_accesses import mark_rows
from avial_lab.machine.cpu import this_cpu

SET, PARAM = isl.dim_type.set, isl.dim_type.param
TIME = "t"


@dataclass(frozen=True)
class TileTime:
    """Take tiles of time and space, one wave of them after the other.

    before:  affine.for %t { affine.for %i {B[i] = … A …}  affine.for %i {A[i] = … B …} }
    after:   affine.for %wave { affine.for %tile {          {avial.parallel}
               affine.for %t = … { affine.for %i = max(…) to min(…) {…}  affine.for %i = … {…} } } }

    `l1`, `l2`: bytes of a core's caches, 0 for this machine's; `widths` of tiles, as `8x8` or
    `8x8x16`, where they are not to follow from them.
    """

    l1: int = 0
    l2: int = 0
    widths: str = ""

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                self._tile_in(function)

    def _tile_in(self, op: ir.Operation) -> None:
        """The outermost loops in `op` that can be tiled."""
        for loop in list(free_nests(op)):
            if ORDERED in loop.attributes:
                continue
            try:
                tiles = self.tiles(loop)
            except Immovable:
                self._tile_in(loop)
            else:
                steps = f"several iterations of {loop_name(loop)} at once"
                widths = "x".join(str(face.width) for face in tiles.faces)
                mark_rows(loop)
                taken = TileTime(self.l1, self.l2, widths)
                add_remark(loop, taken, f"{steps} on one part of the arrays: {tiles}")
                _Writer(tiles).write()

    def tiles(self, loop: ir.Operation) -> TimeTiles:
        """Those of a loop; raises Immovable where it stays as it is."""
        if loop.name not in FORS or not operations_named(loop, *FORS):
            raise Immovable("it is not a loop around other loops")
        cpu = this_cpu()
        caches = (self.l1 or cpu.l1_bytes, self.l2 or cpu.l2_bytes)
        widths = [int(width) for width in self.widths.split("x") if width]
        return time_tiles(loop, caches=caches, widths=widths)

    def __str__(self) -> str:
        options = (("l1", self.l1), ("l2", self.l2), ("widths", self.widths))
        remark = [f"{name}={value}" for name, value in options if value]
        return f"tile-time{{{' '.join(remark)}}}" if remark else "tile-time"


@dataclass(frozen=True)
class _Bound:
    """`sum(factors[name] * name) + constant`, divided by `divisor`; rounded up for a lower one."""

    factors: tuple[tuple[str, int], ...]
    constant: int
    divisor: int = 1


_Range = tuple[_Bound, _Bound]


@dataclass(frozen=True)
class _Writer:
    """Puts the loops over tiles around the time loop's body, and cuts its sweeps to a tile."""

    tiles: TimeTiles

    def write(self) -> None:
        loop = self.tiles.loop
        bounds = self._loops()
        known: dict[str, ir.Value] = {}
        end: ir.Operation = loop
        for name, (lows, highs) in bounds.items():
            with ir.InsertionPoint(end), loop.location:
                made = _for(known, lows, highs)
            if name == "tile":
                made.operation.attributes[PARALLEL] = ir.UnitAttr.get()
            inner = made.operation.regions[0].blocks[0]
            known[name] = inner.arguments[0]
            with ir.InsertionPoint(inner), loop.location:
                end = affine.AffineYieldOp([]).operation
        time = loop.regions[0].blocks[0].arguments[0]
        known[TIME].set_location(time.location)
        time.replace_all_uses_with(known[TIME])
        for op in body_of(loop):
            op.move_before(end)
        for number, sweep in enumerate(self.tiles.sweeps):
            self._cut(number, sweep, known)
        loop.erase()

    def _loops(self) -> dict[str, tuple[list[_Bound], list[_Bound]]]:
        """The bounds of the loops over tiles and time, by their names from the outside."""
        tiles, points = self.tiles, self._points()
        names = [*self._tile_names, TIME]
        found = {name: _bounds(points, names, depth) for depth, name in enumerate(names)}
        lows, highs = found[TIME]
        first, last = tiles.extents.time
        lows.append(_Bound((), first))
        highs.append(_Bound((), last))
        for number, face in enumerate(tiles.faces):
            if not face.sign:
                low, high = self._within(face, 0, number)
                lows.append(low)
                highs.append(high)
        return found

    @property
    def _tile_names(self) -> list[str]:
        return ["wave", "tile", "strip"][: len(self.tiles.faces)]

    def _points(self) -> isl.Set:
        """`{ [wave, tile(, strip), t, slab(, line)] }` of all sweeps."""
        tiles, extents = self.tiles, self.tiles.extents
        places = ["slab", "line"][: tiles.dims]
        names = ", ".join([*self._tile_names, TIME, *places])
        whole: isl.Set | None = None
        for number, ends in enumerate(extents.space):
            texts = [f"{extents.time[0]} <= {TIME} <= {extents.time[1]}"]
            texts += [
                f"{low} <= {p} <= {high}" for p, (low, high) in zip(places, ends, strict=False)
            ]
            for face, tile in zip(tiles.faces, ("tile", "(wave - tile)", "strip"), strict=False):
                value = _value(face, number, places)
                texts.append(f"0 <= {value} - {face.width} * {tile} < {face.width}")
            part = isl.Set(f"{{ [{names}] : {' and '.join(texts)} }}")
            whole = part if whole is None else whole.union(part)
        assert whole is not None, "a time loop has a sweep"
        return whole

    # -- a sweep, cut to the tile

    def _cut(self, number: int, sweep: Sweep, known: dict[str, ir.Value]) -> None:
        """Each face bounds the loop it goes along, or decides whether the sweep runs at all."""
        limits: dict[int, list[_Range]] = {}
        whether: list[_Range] = []
        for place, face in enumerate(self.tiles.faces):
            if face.sign:
                along = sweep.loops[face.dim] is not None
                goal = limits.setdefault(face.dim, []) if along else whether
                goal.append(self._within(face, number, place))
        op = sweep.op
        # A loop that is rebuilt is another operation: the inner one first.
        for dim, within in sorted(limits.items(), reverse=True):
            loop = sweep.loops[dim]
            assert loop is not None, "a face bounds a loop that is there"
            made = _narrowed(loop, known, within)
            op = op if dim else made
        if whether:
            _guard(op, known, whether)

    def _within(self, face: Face, number: int, place: int) -> _Range:
        """The least and the greatest x (of a face of time alone: t) that is in the tile."""
        width, shift = face.width, face.shifts[number]
        first = [(name, width * sign) for name, sign in _TILES[place]]
        if not face.sign:
            return _Bound(tuple(first), 0), _Bound(tuple(first), width - 1)
        factors = _times([*first, (TIME, -face.time)], face.sign)
        if face.sign < 0:
            return _Bound(factors, shift - width + 1), _Bound(factors, shift)
        return _Bound(factors, -shift), _Bound(factors, width - 1 - shift)


_TILES = ((("tile", 1),), (("wave", 1), ("tile", -1)), (("strip", 1),))
"""The number of a tile along each face, from the loops' variables."""


def _value(face: Face, number: int, places: Sequence[str]) -> str:
    where = f" + {face.sign} * {places[face.dim]}" if face.sign else ""
    return f"{face.time} * {TIME}{where} + {face.shifts[number]}"


# Bounds -------------------------------------------------------------------------------------------


def _bounds(points: isl.Set, names: Sequence[str], depth: int) -> tuple[list[_Bound], list[_Bound]]:
    """Of dimension `depth`, by those before it; perhaps wider than need be, never narrower."""
    count = depth + 1
    shadow = points.project_out(SET, count, points.dim(SET) - count)
    hull = shadow.remove_divs().simple_hull()
    lows: list[_Bound] = []
    highs: list[_Bound] = []

    def take(constraint: isl.Constraint) -> None:
        own = constraint.get_coefficient_val(SET, depth).to_python()
        if own == 0:
            return
        others = (
            (names[k], constraint.get_coefficient_val(SET, k).to_python()) for k in range(depth)
        )
        constant = constraint.get_constant_val().to_python()
        factors = tuple((name, factor) for name, factor in others if factor)
        if own > 0 or constraint.is_equality():
            sign = -1 if own > 0 else 1
            lows.append(_Bound(_times(factors, sign), sign * constant, abs(own)))
        if own < 0 or constraint.is_equality():
            sign = 1 if own < 0 else -1
            highs.append(_Bound(_times(factors, sign), sign * constant, abs(own)))

    hull.foreach_constraint(take)
    if not lows or not highs:
        lows.append(_Bound((), shadow.dim_min_val(depth).to_python()))
        highs.append(_Bound((), shadow.dim_max_val(depth).to_python()))
    return lows, highs


def _times(factors: Sequence[tuple[str, int]], by: int) -> tuple[tuple[str, int], ...]:
    return tuple((name, factor * by) for name, factor in factors)


def _expression(
    bound: _Bound, names: Sequence[str], first: int, *, more: int = 0, up: bool = False
) -> ir.AffineExpr:
    """The bound over dimensions from `first` on, one for each of `names`."""
    whole = bound.divisor == 1
    total: ir.AffineExpr = ir.AffineConstantExpr.get(bound.constant + (more if whole else 0))
    for name, factor in bound.factors:
        total = ir.AffineDimExpr.get(first + names.index(name)) * factor + total
    if whole:
        return total
    divide = ir.AffineExpr.get_ceil_div if up else ir.AffineExpr.get_floor_div
    return divide(total, bound.divisor) + more


def _for(
    known: dict[str, ir.Value], lows: Sequence[_Bound], highs: Sequence[_Bound]
) -> affine.AffineForOp:
    names = list(known)
    operands = list(known.values())
    low = [_expression(bound, names, 0, up=True) for bound in lows]
    high = [_expression(bound, names, 0, more=1) for bound in highs]
    return affine.AffineForOp(
        ir.AffineMap.get(len(names), 0, low),
        ir.AffineMap.get(len(names), 0, high),
        1,
        iter_args=[],
        lower_bound_operands=operands,
        upper_bound_operands=operands,
    )


def _narrowed(
    loop: ir.Operation, known: dict[str, ir.Value], limits: Sequence[_Range]
) -> ir.Operation:
    """The loop, which must be within all limits too."""
    lows, highs = [low for low, _ in limits], [high for _, high in limits]
    if loop.name == "scf.for":
        with ir.InsertionPoint(loop), loop.location:
            least = _extreme("affine.max", known, lows, 0)
            most = _extreme("affine.min", known, highs, 1)
            loop.operands[0] = arith.maxsi(loop.operands[0], least)
            loop.operands[1] = arith.minsi(loop.operands[1], most)
        return loop
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    attributes = {name: loop.attributes[name] for name in loop.attributes}
    bounds: list[ir.Value] = []
    for name, given, extra, more in (
        ("lowerBoundMap", operands[: sizes[0]], lows, 0),
        ("upperBoundMap", operands[sizes[0] : sizes[0] + sizes[1]], highs, 1),
    ):
        form = ir.AffineMapAttr(attributes[name]).value
        results = [_expression(b, list(known), form.n_dims, more=more) for b in extra]
        wider = ir.AffineMap.get(
            form.n_dims + len(known), form.n_symbols, [*form.results, *results]
        )
        attributes[name] = ir.AffineMapAttr.get(wider)
        bounds += [*given[: form.n_dims], *known.values(), *given[form.n_dims :]]
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
        [sizes[0] + len(known), sizes[1] + len(known), 0]
    )
    return rebuilt_with(loop, bounds, attributes)


def _extreme(
    name: str, known: dict[str, ir.Value], bounds: Sequence[_Bound], more: int
) -> ir.Value:
    results = [_expression(bound, list(known), 0, more=more) for bound in bounds]
    form = ir.AffineMapAttr.get(ir.AffineMap.get(len(known), 0, results))
    return ir.Operation.create(
        name, [ir.IndexType.get()], list(known.values()), attributes={"map": form}
    ).result


def _guard(op: ir.Operation, known: dict[str, ir.Value], limits: Sequence[_Range]) -> None:
    """`op` in a condition: that 0 is within all limits."""
    if not limits:
        return
    names = list(known)
    tests = [
        expression
        for low, high in limits
        for expression in (_expression(low, names, 0) * -1, _expression(high, names, 0))
    ]
    where = ir.IntegerSet.get(len(names), 0, tests, [False] * len(tests))
    with ir.InsertionPoint(op), op.location:
        branch = ir.Operation.create(
            "affine.if",
            operands=list(known.values()),
            attributes={"condition": ir.IntegerSetAttr.get(where)},
            regions=2,
        )
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            end = affine.AffineYieldOp([])
    op.move_before(end)
