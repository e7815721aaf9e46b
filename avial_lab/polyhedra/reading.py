"""From MLIR to the polyhedral model: every operation that touches memory becomes a statement.

An operation with a body (func.func, a loop nest, a task) -> Scop. affine, scf, linalg, memref and
vector operations are understood; of anything else it is taken that it reads and writes whatever it
is given, and that it runs in program order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import islpy as isl
from mlir import ir

from avial_lab.accesses.views import defining, is_memref
from avial_lab.dialects.places import name_of, span_of
from avial_lab.polyhedra.affine import Affine, Names, extreme, identifier
from avial_lab.polyhedra.budget import OPERATIONS, TOO_HARD, limited
from avial_lab.polyhedra.indices import Condition, Indices, Scope, quantified, size_of
from avial_lab.polyhedra.model import (
    Access,
    Array,
    ArrayKind,
    Loop,
    LoopKind,
    Scop,
    Statement,
    Update,
)
from avial_lab.polyhedra.updates import (
    Combination,
    combination,
    declared,
    stored_updates,
)
from avial_lab.polyhedra.windows import Window, block, element, memrefs_of, roots_of, whole


def read_scop(op: ir.Operation | ir.OpView) -> Scop:
    """The statements of `op`, its loops and arrays.

    What is defined outside of `op`, or in it before any loop, counts as a parameter; loops around
    `op` are fixed. Arrays with different roots (function arguments, allocations, globals) are taken
    not to overlap: whoever binds the arguments checks that. The caller keeps the module alive.
    """
    reader = _Reader(op.operation)
    reader.read(op.operation)
    return reader.finish()


@dataclass(frozen=True)
class _Touch:
    """An access before its relation is built; `window` is None for all that may be touched."""

    array: Array | None
    window: Window | None
    writes: bool
    exact: bool
    subscripts: tuple[str, ...] | None = None
    text: str | None = None


@dataclass(frozen=True)
class _Draft:
    """A statement before its sets are built: by then every parameter has been met."""

    op: ir.Operation
    loops: tuple[Loop, ...]
    scope: Scope
    exact: bool
    position: tuple[int, ...]
    touches: tuple[_Touch, ...]
    note: str | None


@dataclass(frozen=True)
class _Range:
    """The values of a loop variable: from the greatest of `lows`, below the least of `highs`."""

    argument: ir.Value
    lows: Sequence[Affine | None]
    highs: Sequence[Affine | None]
    step: Affine | None


class _Reader:
    def __init__(self, root: ir.Operation) -> None:
        self.root = root
        self.indices = Indices(self._inside_a_loop)
        self.loops: tuple[Loop, ...] = ()
        self.all_loops: list[Loop] = []
        self.position = [0]
        self.exact = True
        self.note: str | None = None
        self.arrays: dict[object, Array] = {}
        self.array_names = Names()
        self.drafts: list[_Draft] = []
        self.updates: list[Update] = []
        self.notes: dict[str, None] = {}
        self._pure: dict[str, bool] = {}

    # -- the walk

    def read(self, op: ir.Operation) -> None:
        name = op.name
        handler = _HANDLERS.get(name)
        if handler is not None:
            handler(self, op)
        elif name.startswith("linalg.") and not name.startswith(("linalg.yield", "linalg.index")):
            _linalg(self, op)
        elif not self._silent(op):
            self.opaque(op)

    def read_block(self, body: ir.Block) -> None:
        for view in body.operations:
            op = view.operation
            self.read(op)
            for result in op.results:
                # Now, where what is known around it decides whether it may wrap around.
                if isinstance(result.type, (ir.IndexType, ir.IntegerType)):
                    self.indices.of(result)

    def read_regions(self, op: ir.Operation) -> None:
        for region in op.regions:
            for body in region.blocks:
                self.read_block(body)

    def straight(self, op: ir.Operation) -> bool:
        """Whether its regions have no control flow of their own."""
        return all(len(region.blocks) <= 1 for region in op.regions)

    def _silent(self, op: ir.Operation) -> bool:
        """Whether it touches no memory: a computation, or an operation that only names memory."""
        if op.name in _SILENT:
            return True
        if any(is_memref(operand) for operand in op.operands) or len(op.regions):
            return False
        return op.name.partition(".")[0] in _COMPUTING_DIALECTS and op.name != "vector.print"

    def _inside_a_loop(self, value: ir.Value) -> bool:
        """Whether it may have several values while the root runs once."""
        owner = value.owner
        inner = owner.owner.operation if isinstance(owner, ir.Block) else _parent(owner.operation)
        found = False
        while inner is not None:
            found = found or inner.name in _LOOPS
            if inner == self.root:
                return found
            if inner.name in ("func.func", "builtin.module"):
                return False
            inner = _parent(inner)
        return False

    # -- loops and conditions

    def enter(self, op: ir.Operation, ranges: Sequence[_Range], body: Callable[[], None]) -> None:
        """Read what stands in a loop of those variables."""
        kind = LoopKind.FOR if op.name.endswith(".for") else LoopKind.PARALLEL
        state = self.loops, self.position, self.indices.scope, self.exact, self.note
        for dimension, values in enumerate(ranges):
            step = values.step.constant if values.step and values.step.is_constant else None
            name = self._loop_name(name_of(values.argument.location))
            self._push(op, dimension, name, kind, step if step and step > 0 else None)
            self.indices[values.argument] = Affine.of(name)
            self._bound(op, name, values)
        body()
        self.loops, self.position, self.indices.scope, self.exact, self.note = state
        self.position[-1] += 1

    def enter_while(self, op: ir.Operation) -> None:
        """Iterations 0, 1, 2, … of a loop that decides as it goes whether to run another."""
        state = self.loops, self.position, self.indices.scope, self.exact, self.note
        name = self._loop_name("iteration")
        self._push(op, 0, name, LoopKind.WHILE, 1)
        self.indices.scope = self.indices.scope.inside((), (f"{name} >= 0",))
        self.doubt(f"{op.name} runs as long as its condition says")
        state_array = self._carried("condition", "i1", len(self.loops))
        self._carry(op, state_array, before=True)
        self.read_regions(op)
        self._carry(op, state_array, before=False)
        self.loops, self.position, self.indices.scope, self.exact, self.note = state
        self.position[-1] += 1

    def _push(
        self, op: ir.Operation, dimension: int, name: str, kind: LoopKind, step: int | None
    ) -> None:
        loop = Loop(op, dimension, name, kind, step, len(self.loops), span_of(op.location))
        self.loops = (*self.loops, loop)
        self.all_loops.append(loop)
        self.position = [*self.position, 0]
        self.indices.scope = self.indices.scope.inside((name,), ())

    def _loop_name(self, wanted: str | None) -> str:
        """Its own name where it is free among the loops around and the parameters."""
        taken = {*self.indices.parameters, *self.indices.choices, *self.indices.scope.names}
        free = (k for k in "ijklmnpqrstuvxyz" if k not in taken)
        base = name = identifier(wanted) if wanted else next(free, "i")
        number = 0
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        self.indices.names.reserve(name)
        return name

    def _bound(self, op: ir.Operation, name: str, values: _Range) -> None:
        lows = [low for low in values.lows if low is not None]
        highs = [high for high in values.highs if high is not None]
        texts = [f"{name} >= {low}" for low in lows] + [f"{name} < {high}" for high in highs]
        step = self.loops[-1].step
        complete = len(lows) == len(values.lows) and len(highs) == len(values.highs)
        if step is not None and step > 1 and len(lows) == len(values.lows):
            texts.append(f"({name} - ({extreme(lows, 'max')})) mod {step} = 0")
        self.indices.scope = self.indices.scope.inside((), texts)
        if not complete:
            self.doubt(f"the bounds of {name} are not affine")
        elif step is None:
            self.doubt(f"the step of {name} is not a constant")

    def doubt(self, note: str) -> None:
        """From here on it is not known for sure which iterations run."""
        self.exact, self.note = False, note

    def carry_values(self, op: ir.Operation, arguments: Sequence[ir.Value]) -> Callable[[], None]:
        """Statements for values handed from iteration to iteration: read now, written at the end.

        Each iteration has its own element, as SSA has it: only the next one depends on it.
        """
        terminator = op.regions[0].blocks[0].operations[-1].operation
        started: list[tuple[Array, Combination | None, str]] = []
        for argument, handed in zip(arguments, terminator.operands, strict=True):
            if handed == argument or is_memref(argument) or not any(True for _ in argument.uses):
                continue
            array = self._carried(name_of(argument.location), str(argument.type), len(self.loops))
            load = self._carry(op, array, before=True)
            started.append((array, combination(argument, handed), load))

        def finish() -> None:
            for array, found, load in started:
                store = self._carry(op, array, before=False)
                if found is not None:
                    self.updates.append(Update(array, found.kind, found.op, load, store))

        return finish

    def declared_reduction(
        self, op: ir.Operation, loop: ir.Operation, element_type: str, found: Combination | None
    ) -> None:
        """What a parallel loop says it reduces: read and written by each of its iterations."""
        outer = [around.name for around in self.loops if around.op != loop]
        array = self._carried(None, element_type, len(outer))
        text = f"{array.name}[{', '.join(outer)}]"
        touches = [_Touch(array, None, writes, True, text=text) for writes in (False, True)]
        name = self.statement(op, touches)
        if found is not None:
            self.updates.append(Update(array, found.kind, found.op, name, name))

    def _carried(self, name: str | None, element_type: str, rank: int) -> Array:
        unknown = (None,) * rank
        fresh = self.array_names.fresh(name or "carried")
        array = Array(fresh, None, ArrayKind.VALUE, unknown, unknown, element_type)
        self.arrays["carried", fresh] = array
        return array

    def _carry(self, op: ir.Operation, array: Array, *, before: bool) -> str:
        loop, names = self.loops[-1], self.indices.scope.names
        outer, own = names[:-1], names[-1]
        if before:
            text = f"{array.name}[{', '.join(names)}]"
        elif loop.step is not None:
            text = f"{array.name}[{', '.join((*outer, f'{own} + {loop.step}'))}]"
        else:
            text = f"{array.name}[{', '.join((*outer, f'{own}_next'))}] : {own}_next > {own}"
        touch = _Touch(array, None, not before, loop.step is not None, text=text)
        return self.statement(op, [touch])

    def branch(
        self, op: ir.Operation, region: ir.Region, condition: Condition | None, why: str
    ) -> None:
        """Read a region that runs where `condition` holds, or only perhaps where that is None."""
        state = self.indices.scope, self.exact, self.note
        if condition is not None:
            self.indices.scope = self.indices.scope.inside((), (condition.text,))
        else:
            self.doubt(f"{op.name} {why}")
        for body in region.blocks:
            self.read_block(body)
        self.indices.scope, self.exact, self.note = state

    # -- statements

    def statement(self, op: ir.Operation, touches: Iterable[_Touch]) -> str:
        """A new statement here; its name."""
        self.drafts.append(
            _Draft(
                op, self.loops, self.indices.scope, self.exact, tuple(self.position),
                tuple(touches), self.note,
            )
        )  # fmt: skip
        self.position[-1] += 1
        return f"S{len(self.drafts) - 1}"

    def touches(
        self,
        memref: ir.Value,
        window: Callable[[], Window],
        *,
        writes: bool,
        exact: bool = True,
        subscripts: tuple[str, ...] | None = None,
    ) -> list[_Touch]:
        """The touch of a window of a memref; one for each array where it may be one of several."""
        roots = roots_of(memref)
        if roots is None:
            return [_Touch(None, None, writes, False)]
        found = window()
        if roots == [found.root]:
            array = self.array_of(found.root)
            return [_Touch(array, found, writes, exact and found.exact, subscripts)]
        return [
            _Touch(self.array_of(root), whole(self.indices, root), writes, False) for root in roots
        ]

    def touch_whole(self, memref: ir.Value, *, writes: bool, exact: bool = True) -> list[_Touch]:
        return self.touches(memref, lambda: whole(self.indices, memref), writes=writes, exact=exact)

    def array_of(self, root: ir.Value) -> Array:
        op = defining(root)
        is_global = op is not None and op.name == "memref.get_global"
        key: object = str(op.attributes["name"]) if is_global and op is not None else root
        if key not in self.arrays:
            self.arrays[key] = self._new_array(root, str(key)[1:] if is_global else None)
        return self.arrays[key]

    def _new_array(self, root: ir.Value, symbol: str | None) -> Array:
        kind = root.type
        if not isinstance(kind, ir.MemRefType):
            shape, sizes, element = (), (), ""
        else:
            found = [size_of(self.indices, root, dim) for dim in range(len(kind.shape))]
            shape = tuple(s.constant if s is not None and s.is_constant else None for s in found)
            sizes = tuple(None if s is None else str(s) for s in found)
            element = str(kind.element_type)
        op = defining(root)
        fallback = "tmp" if op is not None else f"arg{root.arg_number}"
        name = self.array_names.fresh(name_of(root.location) or symbol or fallback)
        loops = () if symbol else tuple(loop for loop in self.loops if _holds(loop.op, op))
        return Array(name, root, ArrayKind.MEMORY, shape, sizes, element, loops)

    def opaque(self, op: ir.Operation, why: str = "is not understood") -> None:
        """It may read and write every memref it is given or uses, and whatever else there is."""
        self.notes[f"{op.name} {why}: taken to read and write all it is given"] = None
        given = dict.fromkeys(m for m in memrefs_of(op) if not _defined_in(op, m))
        touches = [
            touch
            for memref in given
            for writes in (False, True)
            for touch in self.touch_whole(memref, writes=writes, exact=False)
        ]
        effect = self.effect()
        touches += [_Touch(effect, None, writes, False, text=f"{effect.name}[]")
                    for writes in (False, True)]  # fmt: skip
        self.statement(op, touches)

    def effect(self) -> Array:
        if "effect" not in self.arrays:
            name = self.array_names.fresh("anything")
            self.arrays["effect"] = Array(name, None, ArrayKind.EFFECT, (), (), "")
        return self.arrays["effect"]

    def shown(self, value: ir.Value) -> str:
        """An index as people read it: its expression, else its load, else its name."""
        form = self.indices.of(value)
        if form is not None:
            return str(form)
        op = defining(value)
        while op is not None and op.name.startswith("arith.index_cast"):
            value = op.operands[0]
            op = defining(value)
        if op is not None and op.name in ("memref.load", "affine.load"):
            indices = ", ".join(self.shown(index) for index in list(op.operands)[1:])
            return f"{name_of(op.operands[0].location) or 'memref'}[{indices}]"
        return name_of(value.location) or "?"

    # -- the end

    def finish(self) -> Scop:
        if any(touch.array is None for draft in self.drafts for touch in draft.touches):
            self.effect()
        parameters = tuple(self.indices.parameters)
        known = " and ".join(self.indices.known_of_parameters) or "true"
        context = isl.Set(f"[{', '.join(parameters)}] -> {{ : {known} }}")
        statements = tuple(
            self._statement(f"S{k}", draft, parameters, context)
            for k, draft in enumerate(self.drafts)
        )
        for note in (s.note for s in statements):
            if note is not None:
                self.notes[note] = None
        windows = {
            draft.op: touch.window
            for draft in self.drafts
            for touch in draft.touches
            if touch.window is not None
        }
        self.updates += stored_updates(statements, windows)
        return Scop(
            self.root, tuple(self.all_loops), tuple(self.arrays.values()), statements,
            dict(self.indices.parameters), context, tuple(self.updates), tuple(self.notes),
        )  # fmt: skip

    def _statement(
        self, name: str, draft: _Draft, parameters: Sequence[str], context: isl.Set
    ) -> Statement:
        around, choices = draft.scope, self.indices.choices
        text = around.set_text(name, parameters, choices)
        domain = limited(lambda: isl.Set(text).intersect_params(context), lambda: None)
        hard = domain is None
        if domain is None:
            domain = isl.Set(Scope(around.names).set_text(name, parameters, {}))
        head = f"[{', '.join(parameters)}] -> {{ {name}[{', '.join(around.names)}] -> "
        accesses: list[Access] = []
        for touch in draft.touches:
            for array, each in self._arrays_of(touch):
                exactly = f"{head}{_range_text(array, each, choices)} }}"
                relation = limited(partial(_relation, exactly, domain), lambda: None)
                exact = each.exact and relation is not None
                if relation is None:
                    hard = True
                    anywhere = _range_text(array, replace(each, window=None), {})
                    relation = _relation(f"{head}{anywhere} }}", domain)
                accesses.append(Access(array, each.writes, relation, exact, each.subscripts))
        note = TOO_HARD.format(limit=OPERATIONS) if hard else draft.note
        return Statement(
            name, draft.op, draft.loops, domain, draft.exact and not hard, draft.position,
            tuple(accesses), span_of(draft.op.location), note,
        )  # fmt: skip

    def _arrays_of(self, touch: _Touch) -> list[tuple[Array, _Touch]]:
        """The touch with its array; where that may be any, with every array there is."""
        if touch.array is not None:
            return [(touch.array, touch)]
        found: list[tuple[Array, _Touch]] = []
        for array in self.arrays.values():
            if array.kind is ArrayKind.EFFECT:
                found.append((array, _Touch(array, None, touch.writes, False, text=f"{array}[]")))
            elif array.value is not None:
                window = Window(array.value, (None,) * array.rank)
                found.append((array, _Touch(array, window, touch.writes, False)))
        return found


def _relation(text: str, domain: isl.Set) -> isl.Map:
    return isl.Map(text).intersect_domain(domain)


def _range_text(array: Array, touch: _Touch, choices: Mapping[str, str]) -> str:
    """`A[x0, x1] : x0 = i - 1 and x1 = j`.

    Subscripts that are not known lie anywhere in the array.
    """
    if touch.text is not None:
        return touch.text
    window = touch.window or Window(array.value, (None,) * array.rank)
    dims = [f"x{dim}_" for dim in range(array.rank)]
    where: list[str] = []
    for dim, subscript, size in zip(dims, window.subscripts, array.sizes, strict=True):
        if subscript is not None:
            where.append(f"{dim} = {subscript}")
        else:
            where.append(f"{dim} >= 0" if size is None else f"0 <= {dim} < {size}")
    for variable, size in window.variables:
        where.append(f"{variable} >= 0" if size is None else f"0 <= {variable} < {size}")
    text = " and ".join(where) or "true"
    bound = [variable for variable, _ in window.variables]
    return f"{array.name}[{', '.join(dims)}] : {quantified(text, choices, bound)}"


def _holds(loop: ir.Operation, op: ir.Operation | None) -> bool:
    """Whether `op` stands somewhere inside `loop`."""
    while op is not None:
        if op == loop:
            return True
        op = _parent(op)
    return False


def _parent(op: ir.Operation) -> ir.Operation | None:
    # `.operation`: an OpView's `name` may be its symbol.
    return op.parent.operation if op.parent is not None else None


def _defined_in(op: ir.Operation, value: ir.Value) -> bool:
    owner = value.owner
    inner = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    return _holds(op, inner)


# -- loops


def _scf_for(reader: _Reader, op: ir.Operation) -> None:
    body = op.regions[0].blocks[0]
    low, high, step = (reader.indices.of(op.operands[k]) for k in range(3))
    if "unsignedCmp" in op.attributes:
        low, high = reader.indices.non_negative(low), reader.indices.non_negative(high)
    arguments = list(body.arguments)
    _enter_for(reader, op, _Range(arguments[0], [low], [high], step), arguments[1:])


def _affine_for(reader: _Reader, op: ir.Operation) -> None:
    segments = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    operands = list(op.operands)
    lows = reader.indices.apply(op.attributes["lowerBoundMap"].value, operands[: segments[0]])
    highs = reader.indices.apply(
        op.attributes["upperBoundMap"].value, operands[segments[0] : segments[0] + segments[1]]
    )
    step = Affine(ir.IntegerAttr(op.attributes["step"]).value)
    arguments = list(op.regions[0].blocks[0].arguments)
    _enter_for(reader, op, _Range(arguments[0], lows, highs, step), arguments[1:])


def _enter_for(
    reader: _Reader, op: ir.Operation, values: _Range, carried: Sequence[ir.Value]
) -> None:
    def body() -> None:
        finish = reader.carry_values(op, carried)
        reader.read_block(op.regions[0].blocks[0])
        finish()

    reader.enter(op, [values], body)


def _scf_parallel(reader: _Reader, op: ir.Operation) -> None:
    rank = op.attributes["operandSegmentSizes"][0]
    forms = [reader.indices.of(op.operands[k]) for k in range(3 * rank)]
    arguments = list(op.regions[0].blocks[0].arguments)
    ranges = [
        _Range(arguments[k], [forms[k]], [forms[rank + k]], forms[2 * rank + k])
        for k in range(rank)
    ]
    reader.enter(op, ranges, lambda: reader.read_block(op.regions[0].blocks[0]))


def _scf_reduce(reader: _Reader, op: ir.Operation) -> None:
    loop = _parent(op)
    for region in op.regions:
        body = region.blocks[0]
        found = combination(body.arguments[0], body.operations[-1].operation.operands[0])
        if loop is not None:
            reader.declared_reduction(op, loop, str(body.arguments[0].type), found)


def _affine_parallel(reader: _Reader, op: ir.Operation) -> None:
    lower_map, upper_map = (
        op.attributes[name].value for name in ("lowerBoundsMap", "upperBoundsMap")
    )
    operands = list(op.operands)
    split = lower_map.n_inputs
    lows = _grouped(op, "lowerBoundsGroups", reader.indices.apply(lower_map, operands[:split]))
    highs = _grouped(op, "upperBoundsGroups", reader.indices.apply(upper_map, operands[split:]))
    steps = [Affine(ir.IntegerAttr(step).value) for step in ir.ArrayAttr(op.attributes["steps"])]
    arguments = list(op.regions[0].blocks[0].arguments)
    ranges = [
        _Range(argument, low, high, step)
        for argument, low, high, step in zip(arguments, lows, highs, steps, strict=True)
    ]

    def body() -> None:
        reader.read_block(op.regions[0].blocks[0])
        for result, kind in zip(op.results, ir.ArrayAttr(op.attributes["reductions"]), strict=True):
            found = declared(ir.IntegerAttr(kind).value)
            reader.declared_reduction(op, op, str(result.type), found)

    reader.enter(op, ranges, body)


def _grouped(op: ir.Operation, name: str, forms: list[Affine | None]) -> list[list[Affine | None]]:
    groups: list[list[Affine | None]] = []
    for size in ir.DenseIntElementsAttr(op.attributes[name]):
        groups.append(forms[: int(size)])
        forms = forms[int(size) :]
    return groups


def _while(reader: _Reader, op: ir.Operation) -> None:
    if reader.straight(op):
        reader.enter_while(op)
    else:
        reader.opaque(op)


# -- conditions and regions that run once


def _scf_if(reader: _Reader, op: ir.Operation) -> None:
    _branches(reader, op, reader.indices.condition(op.operands[0]))


def _affine_if(reader: _Reader, op: ir.Operation) -> None:
    condition = reader.indices.integer_set(op.attributes["condition"], list(op.operands))
    _branches(reader, op, condition)


def _branches(reader: _Reader, op: ir.Operation, condition: Condition | None) -> None:
    why = "depends on data"
    reader.branch(op, op.regions[0], condition, why)
    reader.branch(op, op.regions[1], condition.negated() if condition else None, why)


def _switch(reader: _Reader, op: ir.Operation) -> None:
    for region in op.regions:
        reader.branch(op, region, None, "may take any of its cases")


def _once(reader: _Reader, op: ir.Operation) -> None:
    if reader.straight(op):
        reader.read_regions(op)
    else:
        reader.opaque(op, "jumps between blocks")


# -- operations that touch memory


def _element(
    reader: _Reader,
    memref: ir.Value,
    subscripts: Sequence[Affine | None],
    shown: Sequence[str],
    *,
    writes: bool,
) -> list[_Touch]:
    def window() -> Window:
        return element(reader.indices, memref, tuple(subscripts))

    return reader.touches(memref, window, writes=writes, subscripts=tuple(shown))


def _load(reader: _Reader, op: ir.Operation) -> None:
    operands = list(op.operands)
    _access(reader, op, operands[0], operands[1:], (False,))


def _store(reader: _Reader, op: ir.Operation) -> None:
    operands = list(op.operands)
    _access(reader, op, operands[1], operands[2:], (True,))


def _access(
    reader: _Reader,
    op: ir.Operation,
    memref: ir.Value,
    operands: Sequence[ir.Value],
    directions: Sequence[bool],
) -> None:
    if op.name.startswith("affine."):
        forms = reader.indices.apply(op.attributes["map"].value, operands)
        shown = ["?" if form is None else str(form) for form in forms]
    else:
        forms = [reader.indices.of(operand) for operand in operands]
        shown = [reader.shown(operand) for operand in operands]
    touches = [
        touch
        for writes in directions
        for touch in _element(reader, memref, forms, shown, writes=writes)
    ]
    reader.statement(op, touches)


def _atomic(reader: _Reader, op: ir.Operation) -> None:
    first = 1 if op.name == "memref.atomic_rmw" else 0
    operands = list(op.operands)
    _access(reader, op, operands[first], operands[first + 1 :], (False, True))


def _vector(reader: _Reader, op: ir.Operation) -> None:
    store = op.name.endswith("store")
    operands = list(op.operands)
    first = 1 if store else 0
    memref, rest = operands[first], operands[first + 1 :]
    vector = ir.VectorType(operands[0].type if store else op.results[0].type)
    if op.name.startswith("affine."):
        forms = reader.indices.apply(op.attributes["map"].value, rest)
    else:
        forms = [reader.indices.of(operand) for operand in rest]
    extents = [Affine(1)] * (len(forms) - len(vector.shape)) + [Affine(k) for k in vector.shape]

    def window() -> Window:
        return block(reader.indices, memref, tuple(forms), extents)

    shown = tuple("?" if form is None else str(form) for form in forms)
    reader.statement(op, reader.touches(memref, window, writes=store, subscripts=shown))


def _copy(reader: _Reader, op: ir.Operation) -> None:
    source, target = op.operands[0], op.operands[1]
    touches = reader.touch_whole(source, writes=False) + reader.touch_whole(target, writes=True)
    reader.statement(op, touches)


def _free(reader: _Reader, op: ir.Operation) -> None:
    """After it the array is gone: no access may move past it."""
    reader.statement(op, reader.touch_whole(op.operands[0], writes=True, exact=False))


def _linalg(reader: _Reader, op: ir.Operation) -> None:
    """Inputs are read; an output is written, and read too where the body uses its old value."""
    operands = list(op.operands)
    body = op.regions[0].blocks[0] if len(op.regions) else None
    if body is None or len(body.arguments) != len(operands):
        reader.opaque(op)
        return
    segments = op.attributes.get("operandSegmentSizes")
    # broadcast and transpose have one of each.
    inputs = len(operands) - 1 if segments is None else ir.DenseI32ArrayAttr(segments)[0]
    everywhere = _covers_outputs(op, inputs)
    touches: list[_Touch] = []
    for k, operand in enumerate(operands):
        if not is_memref(operand):
            continue
        if k < inputs or any(True for _ in body.arguments[k].uses):
            touches += reader.touch_whole(operand, writes=False)
        if k >= inputs:
            touches += reader.touch_whole(operand, writes=True, exact=everywhere)
    if any(True for _ in _memory_operations(body)):
        reader.opaque(op, "touches memory in its body")
        return
    reader.statement(op, touches)


def _memory_operations(body: ir.Block) -> Iterable[ir.Operation]:
    for view in body.operations:
        if any(is_memref(operand) for operand in view.operation.operands):
            yield view.operation
        for region in view.operation.regions:
            for inner in region.blocks:
                yield from _memory_operations(inner)


def _covers_outputs(op: ir.Operation, inputs: int) -> bool:
    """Whether each element of the outputs is written: maps that leave out no index of theirs."""
    if op.name != "linalg.generic":
        return True
    maps = [ir.AffineMapAttr(item).value for item in ir.ArrayAttr(op.attributes["indexing_maps"])]
    return all(m.is_projected_permutation for m in maps[inputs:])


def _call(reader: _Reader, op: ir.Operation) -> None:
    if not _pure_callee(op):
        reader.opaque(op, "may do anything with what it is given")


def _pure_callee(op: ir.Operation) -> bool:
    """Whether the called function only computes: a function of libm, or one whose body shows it."""
    callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    if any(is_memref(operand) for operand in op.operands):
        return False
    module = op
    while module.parent is not None:
        module = module.parent.operation
    for region in module.regions:
        for body in region.blocks:
            for view in body.operations:
                function = view.operation
                named = function.name == "func.func" and (
                    ir.StringAttr(function.attributes["sym_name"]).value == callee
                )
                if named and len(function.regions[0].blocks):
                    return all(
                        _computes(inner.operation)
                        for block_ in function.regions[0].blocks
                        for inner in block_.operations
                    )
    return callee in _LIBM or (callee.endswith("f") and callee[:-1] in _LIBM)


def _computes(op: ir.Operation) -> bool:
    dialect = op.name.partition(".")[0]
    return op.name == "func.return" or (dialect in ("arith", "math", "index") and not op.regions)


def _nothing(_reader: _Reader, _op: ir.Operation) -> None:
    """Touches no memory."""


_LIBM = {
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
    "acos", "atan", "atan2", "sinh", "cosh", "tanh", "pow", "ceil", "floor", "round", "trunc",
    "fabs", "fmin", "fmax", "fmod", "cbrt", "erf", "hypot", "fma",
}  # fmt: skip
_LOOPS = {
    "scf.for", "scf.parallel", "scf.while", "affine.for", "affine.parallel", "avial.converge",
}  # fmt: skip
_COMPUTING_DIALECTS = {
    "arith", "math", "index", "complex", "ub", "vector", "memref", "affine", "scf", "avial",
    "linalg",
}  # fmt: skip
# Terminators, views and questions about a memref.
_SILENT = {
    "func.return", "omp.terminator", "gpu.terminator", "scf.yield", "affine.yield",
    "scf.condition", "scf.reduce.return", "linalg.yield", "memref.alloca_scope.return",
    "memref.dim", "memref.rank", "memref.alloc", "memref.alloca", "memref.get_global",
    "memref.subview", "memref.cast", "memref.collapse_shape", "memref.expand_shape",
    "memref.reinterpret_cast", "memref.transpose", "memref.view", "memref.reshape",
    "memref.memory_space_cast", "memref.extract_strided_metadata", "memref.assume_alignment",
    "memref.prefetch", "affine.prefetch", "cf.assert", "builtin.unrealized_conversion_cast",
    "arith.select", "avial.target", "gpu.barrier",
}  # fmt: skip
_HANDLERS: dict[str, Callable[[_Reader, ir.Operation], None]] = {
    "func.func": _once,
    "avial.schedule": _once,
    "avial.task": _once,
    "avial.replicate": _once,
    "avial.converge": _while,
    "scf.execute_region": _once,
    "memref.alloca_scope": _once,
    "scf.for": _scf_for,
    "scf.parallel": _scf_parallel,
    "scf.reduce": _scf_reduce,
    "scf.while": _while,
    "scf.if": _scf_if,
    "scf.index_switch": _switch,
    "affine.for": _affine_for,
    "affine.parallel": _affine_parallel,
    "affine.if": _affine_if,
    "memref.load": _load,
    "memref.store": _store,
    "affine.load": _load,
    "affine.store": _store,
    "memref.atomic_rmw": _atomic,
    "memref.generic_atomic_rmw": _atomic,
    "vector.load": _vector,
    "vector.store": _vector,
    "affine.vector_load": _vector,
    "affine.vector_store": _vector,
    "memref.copy": _copy,
    "memref.dealloc": _free,
    "func.call": _call,
    "memref.global": _nothing,
    "builtin.module": _once,
}
