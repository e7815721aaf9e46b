"""What an operation may do with operands that lie so; the mistakes, each with the move that mends.

Loops, placements of operands -> placements of results, or Mismatch. Module -> nothing, or
VerifyError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.placements.split_loops import Loops, loops_of
from avial_lab.compiler.ir.captures import tensors_captured
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.placements import MOVES, is_tensor, meshes_in, placement_of
from avial_lab.compiler.ir.program import functions_of, has_body
from avial_lab.core.errors import VerifyError
from avial_lab.planning.tensor_placement import COPY, Along, Kind, Mesh, Placement


@dataclass(frozen=True)
class Mismatch:
    """Operand `operand` cannot lie as it does along axis `axis`; it could as `wanted` says."""

    operand: int
    axis: int
    wanted: Along
    why: str


def along_results(
    loops: Loops, operands: Sequence[Along | None], axis: int
) -> tuple[Along, ...] | Mismatch:
    """How results lie along one axis of the mesh, by how operands do (None: numbers).

    A loop over what is divided is divided: along a parallel one results are, along a reduction they
    are partial. What the same loop runs over in other operands is divided likewise. What results
    begin with counts once: it is partial where they are.
    """
    divided: tuple[int, int] | None = None
    for k, along in enumerate(operands):
        if along is None or k in loops.inits:
            continue
        if along.kind.is_partial:
            return Mismatch(k, axis, COPY, "reads a value of which each device holds a part")
        if along.kind is Kind.SPLIT:
            loop = loops.operands[k][along.dim]
            if loop is None:
                why = f"needs dimension {along.dim} of it whole"
                return Mismatch(k, axis, COPY, why)
            if divided is not None and divided[0] != loop:
                why = f"cannot be divided along two loops at once (operand {divided[1]} is, too)"
                return Mismatch(k, axis, COPY, why)
            divided = divided or (loop, k)
    if divided is None:
        return _undivided(loops, operands, axis)
    loop = divided[0]
    for k, along in enumerate(operands):
        if along is None or k in loops.inits or loop not in loops.operands[k]:
            continue
        wanted = Along(Kind.SPLIT, loops.operands[k].index(loop))
        if along != wanted:
            why = f"divides the loop that runs over dimension {wanted.dim} of it"
            return Mismatch(k, axis, wanted, why)
    results: list[Along] = []
    for result, dims in enumerate(loops.results):
        kind = loops.kind_of(result)
        if loop in dims:
            results.append(Along(Kind.SPLIT, dims.index(loop)))
        elif kind is not None:
            results.append(Along(kind))
        else:
            why = "divides a loop whose parts nobody knows how to combine"
            return Mismatch(divided[1], axis, COPY, why)
    return _begun(loops, operands, axis, tuple(results))


def _undivided(
    loops: Loops, operands: Sequence[Along | None], axis: int
) -> tuple[Along, ...] | Mismatch:
    """Every device computes all of it; where nothing but inits is read, as those lie."""
    read = [a for k, a in enumerate(operands) if a is not None and k not in loops.inits]
    if loops.inits and not read:
        return tuple(operands[k] or COPY for k in loops.inits)
    return _begun(loops, operands, axis, (COPY,) * len(loops.results))


def _begun(
    loops: Loops, operands: Sequence[Along | None], axis: int, results: tuple[Along, ...]
) -> tuple[Along, ...] | Mismatch:
    for k, result in zip(loops.inits, results, strict=False):
        if operands[k] != result:
            return Mismatch(k, axis, result, "begins with it, and its result lies otherwise")
    return results


def is_free(op: ir.Operation, loops: Loops) -> bool:
    """Whether its result may lie as one likes: it is made of numbers, alike everywhere."""
    return may_be_free(op, loops) and not tensors_captured(op)


def may_be_free(op: ir.Operation, loops: Loops) -> bool:
    """Whether it is free where its regions read no tensors."""
    if any(k not in loops.inits and is_tensor(v.type) for k, v in enumerate(op.operands)):
        return False
    return all(None not in dims for dims in loops.results)


def mend(have: Along, want: Along) -> str:
    """The move that makes the one of the other."""
    if have.kind.is_partial:
        return "all_reduce" if want.kind is Kind.COPY else "reduce_scatter"
    if have.kind is Kind.SPLIT:
        return "all_gather" if want.kind is Kind.COPY else "all_to_all"
    return "scatter"


# The verifier -------------------------------------------------------------------------------------


def check_placements(module: ir.Operation) -> None:
    """VerifyError at the first operation whose operands or results cannot lie as they do."""
    meshes = meshes_in(module)
    for function in functions_of(module):
        if not has_body(function):
            continue
        for argument in function.regions[0].blocks[0].arguments:
            found = placement_of(argument.type, meshes, argument.location)
            if found is not None and found.is_partial:
                raise VerifyError(
                    f"argument {_called(argument)} lies as {found}: nobody has made the parts",
                    span=span_of(argument.location),
                    hint="an argument is the caller's array: write copy or split DIM",
                )
        for view in function.regions[0].blocks[0].operations:
            check_operation(view.operation, meshes)


def _called(value: ir.Value) -> str:
    name = name_of(value.location)
    return f"%{name}" if name else "the value"


def _texts(placement: Placement | None) -> str:
    return str(placement) if placement is not None else "not placed"


def check_operation(op: ir.Operation, meshes: Mapping[str, Mesh]) -> None:
    have = [placement_of(v.type, meshes, v.location) for v in op.operands]
    made = [placement_of(v.type, meshes, op.location) for v in op.results]
    if op.name in MOVES:
        _check_move(op, have[0], made[0])
        return
    placed = [p for p in (*have, *made) if p is not None]
    if not placed:
        return
    if op.name == "func.return":
        for k, each in enumerate(have):
            if each is not None and each.is_partial:
                raise _refusal(op, k, each, each.along[_partial_axis(each)], COPY,
                               "returns a value of which each device holds a part")  # fmt: skip
        return
    tensors = [*zip(op.operands, have, strict=True), *zip(op.results, made, strict=True)]
    for value, placement in tensors:
        if is_tensor(value.type) and placement is None:
            raise VerifyError(
                f"{op.name} has operands or results that are placed ({placed[0]}), and "
                f"{_called(value)} is not",
                span=span_of(op.location),
                hint=f"give its type a placement: {_example(value, placed[0])}",
            )
    other = next((p for p in placed if p.mesh != placed[0].mesh), None)
    if other is not None:
        raise VerifyError(
            f"{op.name} mixes meshes: {placed[0]} and {other}",
            span=span_of(op.location),
            hint=f"distir.send brings a value from @{other.mesh.name} to @{placed[0].mesh.name}",
        )
    _check_axes(op, have, made, placed[0].mesh)
    for value in tensors_captured(op):
        lies = placement_of(value.type, meshes, value.location)
        if lies is None or set(lies.along) - {COPY}:
            raise VerifyError(
                f"the body of {op.name} reads any elements of {_called(value)}, which lies as "
                f"{_texts(lies)}",
                span=span_of(op.location),
                hint="every device needs all of it: distir.reshard makes copies",
            )


def _partial_axis(placement: Placement) -> int:
    return next(k for k, each in enumerate(placement.along) if each.kind.is_partial)


def _example(value: ir.Value, placement: Placement) -> str:
    copies = Placement.copies(placement.mesh)
    return f'#distir.on<@{placement.mesh.name}, "{copies.text}">'


def _check_axes(
    op: ir.Operation,
    have: Sequence[Placement | None],
    made: Sequence[Placement | None],
    mesh: Mesh,
) -> None:
    loops = loops_of(op)
    free = is_free(op, loops)
    for axis in range(len(mesh.axes)):
        if free and not loops.inits:
            for each in made:
                if each is not None and each.along[axis].kind.is_partial and not _is_zero(op, each):
                    raise VerifyError(
                        f"{op.name} makes a whole value, and its type says {each}",
                        span=span_of(op.location),
                        hint="only what is neutral may be a part: 0 of a sum",
                    )
            continue
        along = [None if each is None else each.along[axis] for each in have]
        found = along_results(loops, along, axis)
        if isinstance(found, Mismatch):
            operand = have[found.operand]
            assert operand is not None
            raise _refusal(op, found.operand, operand, operand.along[axis], found.wanted,
                           f"{op.name} {found.why}", axis)  # fmt: skip
        if op.name == "linalg.fill" and found[0].kind.is_partial:
            _check_neutral(op, found[0].kind, made[0])
        for each, expected in zip(made, found, strict=True):
            if each is not None and each.along[axis] != expected:
                right = each.with_axis(axis, expected)
                raise VerifyError(
                    f"the result of {op.name} lies as {right}, and its type says {each}",
                    span=span_of(op.location),
                    hint=f"write {right}, and bring it where it should be with "
                    f"distir.{mend(expected, each.along[axis])}",
                )


def _check_neutral(fill: ir.Operation, kind: Kind, made: Placement | None) -> None:
    if not is_neutral(fill.operands[0], kind):
        raise VerifyError(
            f"linalg.fill makes a whole value, and its type says {made}",
            span=span_of(fill.location),
            hint="only what is neutral may be a part: 0 of a sum",
        )


def _is_zero(op: ir.Operation, placement: Placement) -> bool:
    kinds = {each.kind for each in placement.along if each.kind.is_partial}
    return op.name == "tensor.empty" or all(is_neutral(op.results[0], kind) for kind in kinds)


def is_neutral(value: ir.Value, kind: Kind) -> bool:
    """Whether the value is a constant that changes nothing when it is combined."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    attribute = value.owner.operation.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    number = getattr(attribute, "value", None)
    if kind is Kind.SUM:
        return number == 0
    return number == (float("-inf") if kind is Kind.MAX else float("inf"))


def _refusal(
    op: ir.Operation,
    operand: int,
    placement: Placement,
    have: Along,
    want: Along,
    what: str,
    axis: int | None = None,
) -> VerifyError:
    axis = _partial_axis(placement) if axis is None else axis
    wanted = placement.with_axis(axis, want)
    return VerifyError(
        f"{what}: operand {operand}, {_called(op.operands[operand])}, lies as {placement}",
        span=span_of(op.location),
        hint=f"distir.{mend(have, want)} makes {wanted} of it",
    )


def _check_move(op: ir.Operation, have: Placement | None, made: Placement | None) -> None:
    span = span_of(op.location)
    source, result = op.operands[0].type, op.results[0].type
    if have is None or made is None:
        raise VerifyError(f"{op.name} moves what is not placed", span=span)
    if list(source.shape) != list(result.shape) or source.element_type != result.element_type:
        raise VerifyError(
            f"{op.name} makes {result} of {source}", span=span,
            hint="a move changes where a tensor lies, not its shape or elements",
        )  # fmt: skip
    name = op.name.removeprefix("distir.")
    if not _moves(name, have, made):
        raise VerifyError(
            f"{op.name} does not make {made} of {have}",
            span=span,
            hint=_MEANING[name],
        )


_MEANING = {
    "all_reduce": "it makes copies of partial results: sum to copy",
    "reduce_scatter": "it makes blocks of partial results: sum to split DIM",
    "all_gather": "it makes copies of blocks: split DIM to copy",
    "all_to_all": "it divides another dimension: split 0 to split 1",
    "scatter": "each device keeps its block of a copy: copy to split DIM",
    "send": "it changes the mesh, and nothing else",
    "broadcast": "from a mesh of one device, it makes copies on another",
    "gather": "on a mesh of one device, it makes one tensor of blocks",
    "reduce": "on a mesh of one device, it makes one tensor of partial results",
    "reshard": "it does anything but make partial results",
}


def _moves(name: str, have: Placement, made: Placement) -> bool:
    """Whether the move of that name makes the one placement of the other."""
    if made.is_partial and any(
        b.kind.is_partial and (k >= len(have.along) or have.along[k] != b)
        for k, b in enumerate(made.along)
    ):
        return False
    if name in ("reshard", "send", "broadcast", "gather", "reduce"):
        if have.mesh != made.mesh and have.is_partial and name != "reduce":
            return False
        return {
            "reshard": True,
            "send": have.text == made.text and have.mesh.axes == made.mesh.axes,
            "broadcast": len(have.mesh.devices) == 1 and set(made.along) == {COPY},
            "gather": len(made.mesh.devices) == 1,
            "reduce": len(made.mesh.devices) == 1 and have.is_partial,
        }[name]
    if have.mesh != made.mesh:
        return False
    changed = [(a, b) for a, b in zip(have.along, made.along, strict=True) if a != b]
    fits = {
        "all_reduce": lambda a, b: a.kind.is_partial and b.kind is Kind.COPY,
        "reduce_scatter": lambda a, b: a.kind.is_partial and b.kind is Kind.SPLIT,
        "all_gather": lambda a, b: a.kind is Kind.SPLIT and b.kind is Kind.COPY,
        "all_to_all": lambda a, b: a.kind is Kind.SPLIT and b.kind is Kind.SPLIT,
        "scatter": lambda a, b: a.kind is Kind.COPY and b.kind is Kind.SPLIT,
    }[name]
    return bool(changed) and all(fits(a, b) for a, b in changed)
