"""Elements that an innermost loop meets in every iteration stay in a register meanwhile.

Functions of loops -> the same values, with fewer loads and stores. LLVM does the same, but where
other accesses of the loop are to the same array it cannot tell rows apart; the polyhedra can.

Source: D. Callahan, S. Carr, K. Kennedy, Improving register allocation for subscripted variables,
PLDI 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.accesses.memory import ACCESSES, LOADS, STORES
from avial_lab.compiler.analysis.polyhedral import Access, ArrayKind, Scop, Statement, read_scop
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import meet_within
from avial_lab.compiler.ir.nesting import FORS, defined_in, inits_of, parent_of
from avial_lab.compiler.ir.operations import LOOPS, attributes_of, loops_in, operations_named
from avial_lab.compiler.ir.remarks import listed, tell
from avial_lab.compiler.passes.loops.facts.mark_parallel import kept_nests
from avial_lab.compiler.passes.loops.facts.no_alias import functions_of_arrays_apart
from avial_lab.compiler.passes.loops.storage.peel_at_element import cut_at_element

NAME = "promote-scalars"


@dataclass(frozen=True)
class PromoteScalars:
    """Load what does not move before the loop, hand it on, store it behind.

    before:  affine.for %j = 0 to %i { x[i] = x[i] - L[i, j] * x[j] }
    after:   affine.if (0 < %i) {
               %first = affine.load %x[%i]
               %last = affine.for %j = 0 to %i iter_args(%xi = %first) { … affine.yield %rest }
               affine.store %last, %x[%i]
             }

    A loop that does not run touches nothing, as before; nobody asks where what stands before it met
    the element. One in which a single iteration writes what the others read is cut there first.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                for nest in list(kept_nests(function)):
                    for loop in innermost_loops(nest):
                        cut_at_element(loop)
            found = [
                (loop, groups)
                for function in functions_of_arrays_apart(module)
                for nest in kept_nests(function)
                for loop, groups in _promotable(nest)
            ]
            for loop, groups in found:
                _, branch = promote(loop, groups)
                if branch is not None:
                    _ask_before(branch)

    def __str__(self) -> str:
        return NAME


def innermost_loops(nest: ir.Operation) -> list[ir.Operation]:
    """The loops of `nest`, itself included, that no other loop is in."""
    loops = [op for op in (nest, *loops_in(nest)) if op.name in FORS]
    return [loop for loop in loops if not operations_named(loop, *LOOPS, "scf.while")]


# -- which ones ------------------------------------------------------------------------------------

Group = tuple[ir.Operation, ...]
"""Loads and stores of one loop's body that are all of one element, the same in every iteration."""


def _promotable(nest: ir.Operation) -> list[tuple[ir.Operation, list[Group]]]:
    """The innermost loops of `nest` and what stays in registers there."""
    candidates = [(loop, groups) for loop in innermost_loops(nest) if (groups := fixed_in(loop))]
    if not candidates:
        return []
    scop = read_scop(nest)
    kept = [(loop, apart_in(scop, loop, groups)) for loop, groups in candidates]
    for loop, groups in kept:
        if groups:
            names = listed(dict.fromkeys(_element(scop, group) for group in groups))
            tell(loop, NAME, f"{names} in a register during loop {scop.loops_of(loop)[0]}")
    return [(loop, groups) for loop, groups in kept if groups]


def _element(scop: Scop, group: Group) -> str:
    return next(str(s.accesses[0]) for s in scop.statements if s.op in group)


def fixed_in(loop: ir.Operation) -> list[Group]:
    """What stands right in the body of `loop` and goes to an element that stays the same."""
    groups: dict[tuple[object, ...], list[ir.Operation]] = {}
    for op in (view.operation for view in loop.regions[0].blocks[0].operations):
        if op.name in ACCESSES:
            form, where = _place(op)
            if not any(defined_in(loop, value) for value in where):
                groups.setdefault((form, *where), []).append(op)
    # What is only stored stays: as a value that nobody reads, its order would be nobody's business.
    return [tuple(g) for g in groups.values() if any(op.name in LOADS for op in g)]


def _place(access: ir.Operation) -> tuple[str, list[ir.Value]]:
    """The array and subscripts of a load or store; one place always says the same element."""
    form = str(access.attributes["map"]) if access.name.startswith("affine") else ""
    return form, list(access.operands)[access.name in STORES :]


def apart_in(scop: Scop, loop: ir.Operation, groups: Sequence[Group]) -> list[Group]:
    """Those of `groups` whose element nothing else in the loop writes, nor reads where they do."""
    statements = [s for s in scop.statements if any(each.op == loop for each in s.loops)]
    accesses = [(s, access) for s in statements for access in s.accesses]
    if any(access.array.kind is ArrayKind.EFFECT for _, access in accesses):
        return []
    return [group for group in groups if _is_apart(group, accesses)]


def _is_apart(group: Group, accesses: Sequence[tuple[Statement, Access]]) -> bool:
    own = [(s, access) for s, access in accesses if s.op in group]
    others = [(s, access) for s, access in accesses if s.op not in group]
    if not own:
        return False
    statement, element = own[0]
    writes = any(access.writes for _, access in own)
    around = len(statement.loops) - 1
    return element.array.kind is ArrayKind.MEMORY and not any(
        other.array is element.array
        and (writes or other.writes)
        and limited(lambda other=other: meet_within(element, other, around), lambda: True)
        for _, other in others
    )


# -- rewriting -------------------------------------------------------------------------------------


def promote(
    loop: ir.Operation, groups: Sequence[Group]
) -> tuple[ir.Operation, ir.Operation | None]:
    """The same loop with `groups` in registers, in its place, where it runs at all; the branch that
    asks for it, if any does.
    """
    branch, results = None, list(loop.results)
    with loop.location, ir.InsertionPoint(loop):
        if surely_runs(loop) or all(_met_before(loop, group) for group in groups):
            made = _written_around(loop, groups)
            values = list(made.results)[: len(results)]
        else:
            kinds = [result.type for result in results]
            branch = _where_it_runs(loop, kinds)
            finish = "affine.yield" if branch.name == "affine.if" else "scf.yield"
            with ir.InsertionPoint(branch.regions[0].blocks.append()):
                made = _written_around(loop, groups)
                ir.Operation.create(finish, operands=list(made.results)[: len(results)])
            if kinds:
                with ir.InsertionPoint(branch.regions[1].blocks.append()):
                    ir.Operation.create(finish, operands=inits_of(loop))
            values = list(branch.results)
    for old, new in zip(results, values, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()
    return made, branch


def _ask_before(branch: ir.Operation) -> None:
    """Put the loops around under the condition, where there is nothing else in them and it is the
    same for all of their iterations: other passes look for loops in loops.
    """
    loop = parent_of(branch)
    if loop is None or loop.name != "affine.for" or len(loop.results) or len(branch.results):
        return
    variable = loop.regions[0].blocks[0].arguments[0]
    first, *rest = [view.operation for view in loop.regions[0].blocks[0].operations]
    if first != branch or len(rest) > 1 or branch.name != "affine.if":
        return
    if variable in list(branch.operands):
        return
    branch.move_before(loop)
    *inside, end = [view.operation for view in branch.regions[0].blocks[0].operations]
    for op in inside:
        op.move_before(rest[0])
    loop.move_before(end)
    _ask_before(branch)


def _written_around(loop: ir.Operation, groups: Sequence[Group]) -> ir.Operation:
    """Loads, the loop and stores, at the insertion point; the loop, with its own results first."""
    written = [k for k, group in enumerate(groups) if any(op.name in STORES for op in group)]
    values = [_load(group[0]) for group in groups]
    new = with_more(loop, [values[k] for k in written])
    count = len(loop.results)
    arguments = list(new.regions[0].blocks[0].arguments)[1 + count :]
    for k, argument in zip(written, arguments, strict=True):
        values[k] = argument
    _registers(new, groups, values)
    hand_on(new, [values[k] for k in written])
    for k, value in zip(written, list(new.results)[count:], strict=True):
        copy = next(op for op in groups[k] if op.name in STORES).clone().operation
        copy.operands[0] = value
    for op in (op for group in groups for op in group):
        op.erase()
    return new


def _load(access: ir.Operation) -> ir.Value:
    """The element that `access` loads or stores."""
    if access.name in LOADS:
        return access.clone().operation.results[0]
    value, *where = access.operands
    name = access.name.replace("store", "load")
    attributes = {"map": access.attributes["map"]} if name == "affine.load" else {}
    return ir.Operation.create(name, [value.type], where, attributes).result


def with_more(loop: ir.Operation, first: Sequence[ir.Value]) -> ir.Operation:
    """`loop` with the operations of its body moved into it, which carries those values too."""
    attributes = attributes_of(loop)
    if "operandSegmentSizes" in attributes:
        *bounds, carried = ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"])
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
            [*bounds, carried + len(first)]
        )
    kinds = [value.type for value in first]
    new = ir.Operation.create(
        loop.name,
        [*(result.type for result in loop.results), *kinds],
        [*loop.operands, *first],
        attributes,
        regions=1,
    )
    old = loop.regions[0].blocks[0]
    body = new.regions[0].blocks.append(
        *(argument.type for argument in old.arguments),
        *kinds,
        arg_locs=[
            *(argument.location for argument in old.arguments),
            *([loop.location] * len(kinds)),
        ],
    )
    for argument, value in zip(old.arguments, body.arguments, strict=False):
        argument.replace_all_uses_with(value)
    with ir.InsertionPoint(body):
        end = ir.Operation.create(old.operations[-1].operation.name)
    *moved, finish = [view.operation for view in old.operations]
    for op in moved:
        op.move_before(end)
    end.erase()
    with ir.InsertionPoint(body):
        finish.clone()
    return new


def _registers(loop: ir.Operation, groups: Sequence[Group], values: list[ir.Value]) -> None:
    """Let each group's value go from one access to the next; `values` are the last ones then."""
    # By equality: an operation's hash is that of its Python object, and another one may come.
    for op in [view.operation for view in loop.regions[0].blocks[0].operations]:
        k = next((k for k, group in enumerate(groups) if op in group), None)
        if k is None:
            continue
        if op.name in LOADS:
            op.results[0].replace_all_uses_with(values[k])
        else:
            values[k] = op.operands[0]


def hand_on(loop: ir.Operation, more: Sequence[ir.Value]) -> None:
    body = loop.regions[0].blocks[0]
    finish = body.operations[-1].operation
    with ir.InsertionPoint(body):
        values = [*finish.operands, *more]
        finish.erase()
        ir.Operation.create(
            "affine.yield" if loop.name == "affine.for" else "scf.yield", operands=values
        )


def _maps(loop: ir.Operation) -> tuple[ir.AffineMap, ir.AffineMap]:
    low, high = (ir.AffineMapAttr(loop.attributes[k]) for k in ("lowerBoundMap", "upperBoundMap"))
    return low.value, high.value  # pyright: ignore


def surely_runs(loop: ir.Operation) -> bool:
    if loop.name != "affine.for":
        return False
    lows, highs = ([constant_in(end) for end in bound.results] for bound in _maps(loop))
    return all(a is not None and b is not None and a < b for a in lows for b in highs)


def _met_before(loop: ir.Operation, group: Group) -> bool:
    """Whether what stands before `loop` loads the group's element, and stores it if the group does:
    then it may be loaded and stored again where the loop does not run.
    """
    wanted = STORES if any(op.name in STORES for op in group) else ACCESSES
    for op in (view.operation for view in loop.block.operations):
        if op == loop:
            return False
        if op.name in wanted and _place(op) == _place(group[0]):
            return True
    return False


def constant_in(form: ir.AffineExpr) -> int | None:
    known = form.maybe_downcast()
    return known.value if isinstance(known, ir.AffineConstantExpr) else None


def _where_it_runs(loop: ir.Operation, kinds: Sequence[ir.Type]) -> ir.Operation:
    """A branch, still empty, that is taken where `loop` has an iteration."""
    if loop.name == "scf.for":
        low, high = list(loop.operands)[:2]
        runs = arith.cmpi(arith.CmpIPredicate.slt, low, high)
        return ir.Operation.create("scf.if", kinds, [runs], regions=2)
    low, high = _maps(loop)
    lows, highs, _ = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])
    bounds = list(loop.operands)
    values = [
        *bounds[: low.n_dims],
        *bounds[lows : lows + high.n_dims],
        *bounds[low.n_dims : lows],
        *bounds[lows + high.n_dims : lows + highs],
    ]
    ends = [
        end.shift_dims(high.n_dims, low.n_dims).shift_symbols(high.n_symbols, low.n_symbols)
        for end in high.results
    ]
    forms = [end - start - 1 for start in low.results for end in ends]
    held = ir.IntegerSet.get(
        low.n_dims + high.n_dims, low.n_symbols + high.n_symbols, forms, [False] * len(forms)
    )
    return ir.Operation.create(
        "affine.if", kinds, values, {"condition": ir.IntegerSetAttr.get(held)}, regions=2
    )
