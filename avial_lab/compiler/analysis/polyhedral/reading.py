"""From MLIR to the polyhedral model: every operation that touches memory becomes a statement.

An operation with a body (func.func, a loop nest, a task) -> Scop. affine, scf, linalg, memref and
vector operations are understood; of anything else it is taken that it reads and writes whatever it
is given, and that it runs in program order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine, Names, extreme, identifier
from avial_lab.compiler.analysis.polyhedral.arg_reductions import Carried, led_updates
from avial_lab.compiler.analysis.polyhedral.budget import remembered
from avial_lab.compiler.analysis.polyhedral.indices import Condition, Indices, Scope, size_of
from avial_lab.compiler.analysis.polyhedral.operations import (
    COMPUTING_DIALECTS,
    HANDLERS,
    LOOPS,
    SILENT,
    linalg,
)
from avial_lab.compiler.analysis.polyhedral.scop import (
    Array,
    ArrayKind,
    Loop,
    LoopKind,
    Scop,
    Update,
)
from avial_lab.compiler.analysis.polyhedral.statements import (
    LoopBounds,
    PreAccess,
    PreStatement,
    set_within,
    statement_of,
)
from avial_lab.compiler.analysis.polyhedral.updates import Combination, combination, stored_updates
from avial_lab.compiler.analysis.polyhedral.views import Window, roots_of, source_of, whole
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.nesting import defined_in, holds, parent_of
from avial_lab.compiler.ir.views import defining, is_memref, memrefs_of


def read_scop(op: ir.Operation | ir.OpView, *, from_outside: bool = False) -> Scop:
    """The statements of `op`, its loops and arrays.

    What is defined outside of `op`, or in it before any loop, counts as a parameter; with
    `from_outside` nothing that is defined in it, so that whoever stands before `op` has all of
    them. Loops around `op` are fixed. Arrays with different roots (function arguments, allocations,
    globals) are taken not to overlap: whoever binds the arguments checks that. The caller keeps the
    module alive.
    """
    reader = ScopReader(op.operation, from_outside=from_outside)
    reader.read(op.operation)
    return reader.finish()


class ScopReader:
    def __init__(self, root: ir.Operation, *, from_outside: bool = False) -> None:
        self.root = root
        self.from_outside = from_outside
        self.indices = Indices(self._inside_a_loop)
        self.loops: tuple[Loop, ...] = ()
        self.all_loops: list[Loop] = []
        self.position = [0]
        self.exact = True
        self.note: str | None = None
        self.arrays: dict[object, Array] = {}
        self.array_names = Names()
        self.ranges: list[tuple[Loop, Scope]] = []
        self.pre_statements: list[PreStatement] = []
        self.updates: list[Update] = []
        self.carried: list[Carried] = []
        self.notes: dict[str, None] = {}
        self._pure: dict[str, bool] = {}

    # -- the walk

    def read(self, op: ir.Operation) -> None:
        name = op.name
        handler = HANDLERS.get(name)
        if handler is not None:
            handler(self, op)
        elif name.startswith("linalg.") and not name.startswith(("linalg.yield", "linalg.index")):
            linalg(self, op)
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
        if op.name in SILENT:
            return True
        if any(is_memref(operand) for operand in op.operands) or len(op.regions):
            return False
        return op.name.partition(".")[0] in COMPUTING_DIALECTS

    def _inside_a_loop(self, value: ir.Value) -> bool:
        """Whether it may have several values while the root runs once, or is known to nobody before
        it does.
        """
        owner = value.owner
        inner = owner.owner.operation if isinstance(owner, ir.Block) else parent_of(owner.operation)
        found = self.from_outside
        while inner is not None:
            found = found or inner.name in LOOPS
            if inner == self.root:
                return found
            if inner.name in ("func.func", "builtin.module"):
                return False
            inner = parent_of(inner)
        return False

    # -- loops and conditions

    def enter(
        self, op: ir.Operation, ranges: Sequence[LoopBounds], body: Callable[[], None]
    ) -> None:
        """Read what stands in a loop of those variables."""
        kind = LoopKind.FOR if op.name.endswith(".for") else LoopKind.PARALLEL
        state = self.loops, self.position, self.indices.scope, self.exact, self.note
        for dimension, values in enumerate(ranges):
            step = values.step.constant if values.step and values.step.is_constant else None
            name = self._loop_name(name_of(values.argument.location))
            self._push(op, dimension, name, kind, step if step and step > 0 else None)
            self.indices[values.argument] = Affine.of(name)
            self._bound(op, name, values)
            if self.exact:
                self.ranges.append((self.loops[-1], self.indices.scope))
        body()
        self.loops, self.position, self.indices.scope, self.exact, self.note = state
        self.position[-1] += 1

    def enter_while(self, op: ir.Operation) -> None:
        """Iterations 0, 1, 2, … of a loop that decides as it goes whether to run another."""
        state = self.loops, self.position, self.indices.scope, self.exact, self.note
        name = self._loop_name("iteration")
        self._push(op, 0, name, LoopKind.WHILE, 1)
        self.indices.scope = self.indices.scope.inside((), (f"{name} >= 0",))
        self.doubt(f"{op.name} runs until its condition is false")
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

    def _bound(self, op: ir.Operation, name: str, values: LoopBounds) -> None:
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
        started: list[tuple[Array, Combination | None, str, ir.Value, int]] = []
        for number, (argument, handed) in enumerate(
            zip(arguments, terminator.operands, strict=True)
        ):
            if handed == argument or not any(True for _ in argument.uses):
                continue
            if is_memref(argument) and not _is_made_in(op, handed):
                continue  # it is one of the arrays outside, which its touches are of
            array = self._carried(name_of(argument.location), str(argument.type), len(self.loops))
            load = self._carry(op, array, before=True)
            started.append((array, combination(argument, handed), load, argument, number))

        def finish() -> None:
            for array, found, load, argument, number in started:
                store = self._carry(op, array, before=False)
                end = terminator, number
                self.carried.append(Carried(array, argument, end, load, store))
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
        touches = [PreAccess(array, None, writes, True, text=text) for writes in (False, True)]
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
        touch = PreAccess(array, None, not before, loop.step is not None, text=text)
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

    def statement(self, op: ir.Operation, touches: Iterable[PreAccess]) -> str:
        """A new statement here; its name."""
        self.pre_statements.append(
            PreStatement(
                op, self.loops, self.indices.scope, self.exact, tuple(self.position),
                tuple(touches), self.note,
            )
        )  # fmt: skip
        self.position[-1] += 1
        return f"S{len(self.pre_statements) - 1}"

    def touches(
        self,
        memref: ir.Value,
        window: Callable[[], Window],
        *,
        writes: bool,
        exact: bool = True,
        subscripts: tuple[str, ...] | None = None,
    ) -> list[PreAccess]:
        """The touch of a window of a memref; one for each array where it may be one of several."""
        roots = roots_of(memref)
        if roots is None:
            return [PreAccess(None, None, writes, False)]
        found = window()
        if roots == [found.root]:
            array = self.array_of(found.root)
            return [PreAccess(array, found, writes, exact and found.exact, subscripts)]
        arrays = [self.array_of(root) for root in roots]
        return [
            PreAccess(array, Window(root, (None,) * array.rank), writes, False)
            for root, array in zip(roots, arrays, strict=True)
        ]

    def touch_whole(self, memref: ir.Value, *, writes: bool, exact: bool = True) -> list[PreAccess]:
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
            found = self._extents(root, kind)
            shape = tuple(s.constant if s is not None and s.is_constant else None for s in found)
            # Memory that a loop allocates may be met outside, where nobody knows its variable.
            sizes = tuple(str(s) if s is not None and self._is_fixed(s) else None for s in found)
            element = str(kind.element_type)
        op = defining(root)
        fallback = "tmp" if op is not None else f"arg{root.arg_number}"
        name = self.array_names.fresh(name_of(root.location) or symbol or fallback)
        loops = () if symbol else tuple(loop for loop in self.loops if holds(loop.op, op))
        return Array(name, root, ArrayKind.MEMORY, shape, sizes, element, loops)

    def _extents(self, root: ir.Value, kind: ir.MemRefType) -> list[Affine | None]:
        if kind.has_static_shape:
            return [Affine(extent) for extent in kind.shape]
        return [size_of(self.indices, root, dim) for dim in range(kind.rank)]

    def _is_fixed(self, form: Affine) -> bool:
        """Whether it holds nothing but parameters."""
        if form.is_constant:
            return True
        words = re.findall(r"[A-Za-z_]\w*", str(form))
        return all(word in self.indices.parameters or word in ("floor", "mod") for word in words)

    def opaque(self, op: ir.Operation, why: str = "has unknown effects") -> None:
        """It may read and write every memref it is given or uses, and whatever else there is."""
        self.notes[f"{op.name} {why}: assumed to read and write all its operands"] = None
        given = dict.fromkeys(m for m in memrefs_of(op) if not defined_in(op, m))
        touches = [
            touch
            for memref in given
            for writes in (False, True)
            for touch in self.touch_whole(memref, writes=writes, exact=False)
        ]
        effect = self.effect()
        touches += [PreAccess(effect, None, writes, False, text=f"{effect.name}[]")
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
        if any(touch.array is None for pre in self.pre_statements for touch in pre.touches):
            self.effect()
        parameters = tuple(self.indices.parameters)
        known = " and ".join(self.indices.known_of_parameters) or "true"
        context = _set(f"[{', '.join(parameters)}] -> {{ : {known} }}")
        arrays = tuple(self.arrays.values())
        statements = tuple(
            statement_of(f"S{k}", pre, parameters, context, self.indices.choices, arrays)
            for k, pre in enumerate(self.pre_statements)
        )
        for note in (s.note for s in statements):
            if note is not None:
                self.notes[note] = None
        windows = {
            pre.op: touch.window
            for pre in self.pre_statements
            for touch in pre.touches
            if touch.window is not None
        }
        self.updates += stored_updates(statements, windows)
        self.updates += led_updates(self.carried, statements, windows, self.updates)
        return Scop(
            self.root, tuple(self.all_loops), arrays, statements,
            dict(self.indices.parameters), context, tuple(self.updates), tuple(self.notes),
            dict(self.indices.sizes), self._iterations(parameters, context),
        )  # fmt: skip

    def _iterations(self, parameters: Sequence[str], context: isl.Set) -> dict[Loop, isl.Set]:
        found: dict[Loop, isl.Set] = {}
        for loop, scope in self.ranges:
            text = scope.set_text("", parameters, self.indices.choices)
            known = set_within(text, context)
            if known is not None:
                found[loop] = known
        return found


def _is_made_in(loop: ir.Operation, memref: ir.Value) -> bool:
    """Whether it may be memory that an iteration of the loop allocates, and not what it was handed
    itself.
    """
    while (source := source_of(memref)) is not None:
        memref = source
    if memref in list(loop.regions[0].blocks[0].arguments):
        return False
    roots = roots_of(memref)
    return roots is None or any(
        (op := defining(root)) is not None and holds(loop, op) for root in roots
    )


@remembered
def _set(text: str) -> isl.Set:
    return isl.Set(text)
