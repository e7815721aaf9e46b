"""What one part of a phase touches, as boxes: the arguments of the ownership runtime's calls.

Statements, the loops that are split -> for each array the boxes that a part reads, writes and
reduces, with the part's ends as parameters.

    for i = 1 to n - 1               part lo <= i < hi
      B[i] = A[i - 1] + A[i + 1]     read A[max(lo, 1) - 1 : min(hi, n - 1) - 1], A[… + 1 : … + 1]
                                     write B[max(lo, 1) : min(hi, n - 1)], exact

What a part certainly writes before it reads it does not have to be there before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.boxes import (
    MOST_BOXES,
    SET,
    ParametricBox,
    box_around,
    boxes_around,
    hard,
    one_box,
    pieces_of,
    union_of,
)
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import (
    Access,
    Array,
    ArrayKind,
    Loop,
    Scop,
    Statement,
    Update,
)
from avial_lab.compiler.ir.nesting import holds, parent_of
from avial_lab.compiler.ir.views import defining

RANGE = (("lo0_", "hi0_"), ("lo1_", "hi1_"))
"""The parameters that a part's ends are: of the first split dimension, and of the second."""

OPERATIONS = 100_000
"""isl operations that one array of one phase may take in each step."""


class TouchKind(Enum):
    READ = "read"
    WRITE = "write"
    REDUCE = "reduce"


@dataclass(frozen=True)
class ArrayTouch:
    """One box of an array. `exact`, of a write: each of its elements is written for sure.

    `operation`, of a reduction: what combines, say `arith.addf`; `key`, of a payload: what it
    is replaced with.
    """

    array: Array
    kind: TouchKind
    exact: bool
    box: ParametricBox
    operation: str | None = None
    key: Array | None = None


_Sets = Sequence[isl.Set]

_Boxes = tuple[Sequence[ParametricBox], Sequence[ParametricBox]]
"""Those whose elements are all written, or read, for sure, and the others."""

_Asked = tuple[object, tuple[isl.Set, ...], tuple[isl.Set, ...]]


@dataclass(frozen=True)
class _Part:
    """What a part is: which loops are split, and the cases in which it is asked for; the boxes
    around the sets that isl was asked about, which arrays of one use share.
    """

    loops: tuple[tuple[Loop, ...], tuple[Loop, ...]]
    context: isl.Set
    beyond: tuple[int, int] | None = None
    known: dict[_Asked, _Boxes] = field(default_factory=dict)

    def boxes(
        self, asked: Callable[[_Sets, _Sets, _Part], _Boxes], certain: _Sets, perhaps: _Sets = ()
    ) -> _Boxes:
        """What `asked` finds for these sets, whatever array they are elements of."""
        key = (asked, tuple(certain), tuple(perhaps))
        if key not in self.known:
            self.known[key] = asked(certain, perhaps, self)
        return self.known[key]

    def split(self, statement: Statement) -> tuple[tuple[int, ...], ...]:
        """The places of the first and second dimension's loops among those of the statement."""
        return tuple(
            tuple(k for k, loop in enumerate(statement.loops) if loop in chosen)
            for chosen in self.loops
        )

    def iterations(self, statement: Statement) -> isl.Set:
        """The statement's iterations in the part."""
        below, above = self.beyond or (0, 0)
        where = [
            f"{low} <= {_dim(place)} + {below} and {_dim(place)} < {high} + {above}"
            for (low, high), places in zip(RANGE, self.split(statement), strict=True)
            for place in places
        ]
        cut = statement.domain.intersect(_box_text(statement, where))
        return cut.intersect_params(self.context)


def touched_boxes(
    scop: Scop,
    *,
    loops: Sequence[Loop] = (),
    second: Sequence[Loop] = (),
    reduced: Sequence[Array] = (),
    beyond: tuple[int, int] | None = None,
) -> tuple[ArrayTouch, ...]:
    """What the scop touches while the split `loops` run from `lo0_` to below `hi0_` and those of
    `second` from `lo1_` to below `hi1_`; loops that are not split run whole.

    Accesses of a `reduced` array by its updates are one REDUCE; arrays that are allocated inside
    and constants are left out. Of an empty part nothing is said: ask for lo < hi only. `beyond`: up
    to so many iterations of split loops before the part and after it are run too, those that its
    own need of earlier ones, and all in the program's order.
    """
    context = scop.context.intersect_params(_nonempty(bool(loops), bool(second)))
    part = _Part((tuple(loops), tuple(second)), context, beyond)
    arrays = [a for a in scop.arrays if a.kind is ArrayKind.MEMORY and _shared(a, scop)]
    found: list[ArrayTouch] = []
    for array in arrays:
        mine = [(s, a) for s in scop.statements for a in s.accesses if a.array == array]
        if array in reduced:
            updates = [update for update in scop.updates if _is_reduced(update, array, reduced)]
            names = {name for update in updates for name in (update.load, update.store)}
            found += _reduced(updates, [(s, a) for s, a in mine if s.name in names], part)
            mine = [(s, a) for s, a in mine if s.name not in names]
        found += _read(array, mine, part)
        found += _written(array, mine, part)
    return tuple(found)


_Accesses = Sequence[tuple[Statement, Access]]


def _nonempty(first: bool, second: bool) -> isl.Set:
    names = [name for used, pair in zip((first, second), RANGE, strict=True) if used
             for name in pair]  # fmt: skip
    where = [f"{low} < {high}" for low, high in zip(names[::2], names[1::2], strict=True)]
    return isl.Set(f"[{', '.join(names)}] -> {{ : {' and '.join(where) or 'true'} }}")


def _shared(array: Array, scop: Scop) -> bool:
    """Whether other phases can see it."""
    if array.value is None or array.loops:
        return False
    op = defining(array.value)
    if op is None:
        return True
    if op.name == "memref.get_global":
        return not _constant(op)
    # In a whole function, allocations outside of loops are between the phases.
    return scop.op.name in _PROGRAMS or not holds(scop.op, op)


_PROGRAMS = {"func.func", "avial.schedule", "builtin.module"}


def _constant(get: ir.Operation) -> bool:
    """Whether a global never changes: every rank has it."""
    top = get
    while (outer := parent_of(top)) is not None:
        top = outer
    name = ir.FlatSymbolRefAttr(get.attributes["name"]).value
    for view in top.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "memref.global" and ir.StringAttr(op.attributes["sym_name"]).value == name:
            return "constant" in op.attributes
    return False


# -- reads


def _read(array: Array, accesses: _Accesses, part: _Part) -> list[ArrayTouch]:
    reads = [(s, a) for s, a in accesses if not a.writes]
    writes = [(s, a) for s, a in accesses if s.must_write(a)]
    sets: list[isl.Set] = []
    for statement, access in reads:
        before = partial(_before_the_part, statement, access, writes, part)
        plain = partial(_elements, statement, access, part)
        sets.append(limited(before, plain, limit=OPERATIONS) if writes else plain())
    boxes, _ = part.boxes(_boxes, _nonempty_ones(sets))
    return [ArrayTouch(array, TouchKind.READ, True, box) for box in boxes]


def _elements(statement: Statement, access: Access, part: _Part) -> isl.Set:
    touched = access.relation.intersect_domain(part.iterations(statement)).range()
    return touched.reset_tuple_id()


def _before_the_part(
    statement: Statement, access: Access, writes: _Accesses, part: _Part
) -> isl.Set:
    """The elements that an access reads from before the part: not written in it for sure, earlier
    and in the same iteration of the split loops.

    Iterations of the split loops may run in any order, so none counts on another; but where more
    are run than the part's own.
    """
    relation = access.relation
    one_element = relation.is_single_valued()
    for writer, write in writes:
        order = _earlier(statement, writer, part)
        if order is None:
            continue
        written = write.relation
        if one_element:
            pairs = relation.apply_range(written.reverse()).intersect(order)
            relation = relation.subtract_domain(pairs.domain())
        else:  # an indirect index: of all the elements it may be, one was written
            relation = relation.subtract(order.apply_range(written))
        if relation.is_empty():
            break
    return relation.intersect_domain(part.iterations(statement)).range().reset_tuple_id()


def _earlier(reader: Statement, writer: Statement, part: _Part) -> isl.Map | None:
    """{ reader[x] -> writer[y] }: y runs before x wherever x runs."""
    same: list[str] = []
    split = (part.split(reader), part.split(writer)) if part.beyond is None else ((), ())
    for mine, theirs in zip(*split, strict=True):
        if theirs and not mine:
            return None
        same += [f"{_dim(k)} = {_dim(m, 'y')}" for k in mine for m in theirs]
    common = 0
    for a, b in zip(reader.loops, writer.loops, strict=False):
        if a != b:
            break
        common += 1
    cases: list[str] = []
    for level in range(common):
        equal = [f"{_dim(k)} = {_dim(k, 'y')}" for k in range(level)]
        cases.append(" and ".join([*equal, f"{_dim(level, 'y')} < {_dim(level)}"]))
    if writer.position[: common + 1] < reader.position[: common + 1]:
        equal = [f"{_dim(k)} = {_dim(k, 'y')}" for k in range(common)]
        cases.append(" and ".join(equal) or "true")
    if not cases:
        return None
    where = " and ".join([*same, "(" + " or ".join(f"({case})" for case in cases) + ")"])
    xs = ", ".join(_dim(k) for k in range(len(reader.loops)))
    ys = ", ".join(_dim(k, "y") for k in range(len(writer.loops)))
    return isl.Map(f"{{ {reader.name}[{xs}] -> {writer.name}[{ys}] : {where} }}")


# -- writes


def _written(array: Array, accesses: _Accesses, part: _Part) -> list[ArrayTouch]:
    certain, perhaps = (
        _nonempty_ones(
            [_elements(s, a, part) for s, a in accesses if a.writes and s.must_write(a) is sure]
        )
        for sure in (True, False)
    )
    if not certain and not perhaps:
        return []
    exact, inexact = part.boxes(_written_boxes, certain, perhaps)
    return [
        ArrayTouch(array, TouchKind.WRITE, sure, box)
        for sure, boxes in ((True, exact), (False, inexact))
        for box in boxes
    ]


def _written_boxes(certain: _Sets, perhaps: _Sets, part: _Part) -> _Boxes:
    exactly = partial(_write_boxes, certain, perhaps, part)
    return limited(
        exactly, lambda: ((), part.boxes(_one_around, [*certain, *perhaps])[0]), limit=OPERATIONS
    )


def _write_boxes(certain: _Sets, perhaps: _Sets, part: _Part) -> _Boxes:
    pieces, surely = _pieces(certain) if certain else ([], isl.Set.empty(perhaps[0].get_space()))
    found = boxes_around(pieces, surely, part.context)
    exact = [] if hard(surely) else [box for box in found if box.elements.is_subset(surely)]
    pieces = [box.elements for box in found if box not in exact]
    pieces += [piece for elements in perhaps for piece in pieces_of(elements.subtract(surely))]
    inexact = boxes_around(pieces, union_of(pieces).coalesce(), part.context) if pieces else []
    if len(exact) + len(inexact) > MOST_BOXES:
        return (), [one_box([*exact, *inexact], part.context)]
    return exact, inexact


# -- reductions


def _reduced(updates: Sequence[Update], accesses: _Accesses, part: _Part) -> list[ArrayTouch]:
    sets = _nonempty_ones([_elements(s, a, part) for s, a in accesses])
    if not sets:
        return []
    array = updates[0].array
    box = one_box(part.boxes(_boxes, sets)[0], part.context)
    first = updates[0]
    key = first.key.array if first.key is not None else None
    return [ArrayTouch(array, TouchKind.REDUCE, False, box, first.op, key)]


def _is_reduced(update: Update, array: Array, reduced: Sequence[Array]) -> bool:
    """Whether it is one of that array, and not after what an inner loop alone looks for."""
    return update.array == array and (update.key is None or update.key.array in reduced)


# -- boxes


def _boxes(sets: _Sets, _: _Sets, part: _Part) -> _Boxes:
    """The sets as few boxes, exactly where that can be and is not too hard."""
    if not sets:
        return (), ()
    exactly = partial(_few, sets, part)
    return limited(exactly, lambda: part.boxes(_one_around, sets)[0], limit=OPERATIONS), ()


def _few(sets: _Sets, part: _Part) -> Sequence[ParametricBox]:
    pieces, touched = _pieces(sets)
    boxes = boxes_around(pieces, touched, part.context)
    return boxes if len(boxes) <= MOST_BOXES else [one_box(boxes, part.context)]


def _pieces(sets: Sequence[isl.Set]) -> tuple[list[isl.Set], isl.Set]:
    """The convex parts of all, and their union."""
    return [piece for each in sets for piece in pieces_of(each)], union_of(sets).coalesce()


def _one_around(sets: _Sets, _: _Sets, part: _Part) -> _Boxes:
    """One box around all; the whole array where even that is too hard."""
    everything = isl.Set.universe(sets[0].get_space())
    none = ((),) * everything.dim(SET)
    box = limited(
        partial(_hull, sets, part.context),
        lambda: ParametricBox(none, none, None, everything),
        limit=OPERATIONS,
    )
    return [box], ()


def _hull(sets: Sequence[isl.Set], context: isl.Set) -> ParametricBox:
    pieces = [piece for elements in sets for piece in pieces_of(elements)]
    return one_box([box_around(piece, context) for piece in pieces], context)


def _nonempty_ones(sets: Sequence[isl.Set]) -> list[isl.Set]:
    """Those that are not known to be empty."""
    return [each for each in sets if not limited(each.is_empty, lambda: False, limit=OPERATIONS)]


def _dim(place: int, letter: str = "x") -> str:
    return f"{letter}{place}_"


def _box_text(statement: Statement, where: Sequence[str]) -> isl.Set:
    """The iterations for which all of `where` holds; names that are no dimensions are
    parameters.
    """
    dims = [_dim(k) for k in range(len(statement.loops))]
    names = {word for text in where for word in text.replace("<=", "<").split()}
    parameters = sorted(name for name in names - {*dims, "and"} if name.isidentifier())
    text = f"{{ {statement.name}[{', '.join(dims)}] : {' and '.join(where) or 'true'} }}"
    return isl.Set(f"[{', '.join(parameters)}] -> {text}")
