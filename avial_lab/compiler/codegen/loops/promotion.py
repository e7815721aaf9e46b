"""Elements that stay the same in a loop, kept in registers while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.parallelism.marked_loops import maps_of, surely_runs
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import meet_within
from avial_lab.compiler.analysis.polyhedral.scop import Access, ArrayKind, Scop, Statement
from avial_lab.compiler.codegen.loops.iter_args import hand_on, with_more
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, STORES
from avial_lab.compiler.ir.nesting import defined_in, inits_of

# -- which ones ------------------------------------------------------------------------------------

Group = tuple[ir.Operation, ...]
"""Loads and stores of one loop's body that are all of one element, the same in every iteration."""


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


def independent_groups(scop: Scop, loop: ir.Operation, groups: Sequence[Group]) -> list[Group]:
    """Those of `groups` whose element nothing else in the loop writes, nor reads where they do."""
    statements = [s for s in scop.statements if any(each.op == loop for each in s.loops)]
    accesses = [(s, access) for s in statements for access in s.accesses]
    if any(access.array.kind is ArrayKind.EFFECT for _, access in accesses):
        return []
    return [group for group in groups if _is_independent(group, accesses)]


def _is_independent(group: Group, accesses: Sequence[tuple[Statement, Access]]) -> bool:
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


def into_value(memory: ir.Operation) -> None:
    """An allocated element that is stored and loaded one after the other is what was stored last,
    and no memory; whatever else is done with it, it stays.

    before:  affine.store %x, %own[]     %y = affine.load %own[]
    after:   %x for %y
    """
    kind = ir.MemRefType(memory.results[0].type)
    if len(memory.operands) or not kind.has_static_shape or any(n != 1 for n in kind.shape):
        return
    users = [use.owner.operation for use in memory.results[0].uses]
    if any(op.name not in ACCESSES or op.block != memory.block for op in users):
        return
    accesses = [op for view in memory.block.operations if (op := view.operation) in users]
    if accesses and accesses[0].name not in STORES:
        return
    value: ir.Value | None = None
    for op in accesses:
        if op.name in STORES:
            value = op.operands[0]
        elif value is not None:
            op.results[0].replace_all_uses_with(value)
        op.erase()
    memory.erase()


def _where_it_runs(loop: ir.Operation, kinds: Sequence[ir.Type]) -> ir.Operation:
    """A branch, still empty, that is taken where `loop` has an iteration."""
    if loop.name == "scf.for":
        low, high = list(loop.operands)[:2]
        runs = arith.cmpi(arith.CmpIPredicate.slt, low, high)
        return ir.Operation.create("scf.if", kinds, [runs], regions=2)
    low, high = maps_of(loop)
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
