"""Arguments that a plain function can be tried with, where its caller gives none.

Source, what is given -> every argument with its element type, shape or value: as large as the
function's own arrays allow, 64 at most, so that no affine access leaves its array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mlir import ir

from avial_lab.compiler.analysis.accesses.buffers import argument_name
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.sizes import (
    fitting_values,
    in_control,
    needed_extents,
    operations_in,
)
from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.compiler.frontends.mlir.results import is_result
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.operations import constant_of
from avial_lab.compiler.ir.program import program_function
from avial_lab.compiler.ir.views import DYNAMIC, defining
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.inline_calls import InlineCalls
from avial_lab.compiler.requests import Argument, Scalar, Source
from avial_lab.compiler.worker.reference.whole_arrays import (
    Shape,
    axes_of,
    points,
    viewed_bytes,
    windows,
)
from avial_lab.core.buffers import Binding, Buffer, Storage, row_major
from avial_lab.core.element_types import ITEMSIZE
from avial_lab.core.errors import BindError, PassError, VerifyError

_LIMITS = (64, 32, 16, 8, 4, 2, 1)
"""What a number or a size that the function leaves open is at most, the first that works."""

MOST_OPERATIONS = 200_000_000
"""Statements a trial should run at most: seconds where every index is checked."""

_ROUNDS = 4
"""Arrays that grow until what their sizes decide fits again."""

Shapes = Mapping[str, tuple[int, ...]]


def trial_arguments(source: Source, given: Shapes) -> tuple[Argument, ...]:
    """The function's arguments in order; those with a shape in `given` or a number in
    `source.scalars` as they are there.

    Raises BindError for an argument nobody can make up.
    """
    module = _parsed(source, None, {})
    function = program_function(module)
    count = len(function.regions[0].blocks[0].arguments)
    wanted = tuple(_argument(function, k) for k in range(count) if not is_result(function, k))
    scop = read_scop(function)
    given = {
        a.name: given[a.name]
        for a in wanted
        if a.shape is not None and len(given.get(a.name, (0,) * 99)) == len(a.shape)
    }
    fitting: list[tuple[Argument, ...]] = []
    others: list[tuple[Argument, ...]] = []
    for largest in _LIMITS:
        found = _fitted(wanted, function, scop, given, largest)
        settled, operations = _settled(source, wanted, found, given)
        if settled is not None and operations <= MOST_OPERATIONS:
            return settled
        if settled is not None:
            fitting.append(settled)
        others.append(found)
    # The smallest that fits, however long it runs; else whoever runs it is told what leaves what.
    return fitting[-1] if fitting else others[0]


def _parsed(source: Source, binding: Binding | None, scalars: Mapping[str, Scalar]) -> ir.Module:
    module = parse_cell(
        source.text,
        cell=source.cell,
        context=ir.Context(),
        binding=binding,
        scalars={**source.scalars, **scalars},
        function=source.function,
    )
    run_passes(module.operation, (InlineCalls(), "linalg-generalize-named-ops"))
    return module


def _argument(function: ir.Operation, position: int) -> Argument:
    """The argument as the function declares it; -1 for a size that is open."""
    argument = function.regions[0].blocks[0].arguments[position]
    name = argument_name(function.attributes.get("arg_attrs"), position)
    name = name or name_of(argument.location) or f"arg{position}"
    kind = argument.type
    if isinstance(kind, ir.UnrankedMemRefType):
        raise BindError(
            f"%{name} is {kind}: its number of dimensions is not known",
            span=span_of(argument.location),
            hint=f"give the array {name}",
        )
    if not isinstance(kind, ir.MemRefType):
        return Argument(name, str(kind), None)
    element = str(kind.element_type)
    if element not in ITEMSIZE:
        raise BindError(
            f"%{name} has elements of type {element}, which no NumPy array holds",
            span=span_of(argument.location),
        )
    return Argument(name, element, tuple(-1 if n == DYNAMIC else n for n in kind.shape))


@dataclass(frozen=True)
class _Places:
    """Where the function's arguments are in its scop: the parameters of numbers and of open sizes,
    and the arrays of which it is not known what is accessed.
    """

    numbers: dict[str, str]
    sizes: dict[tuple[str, int], str]
    unknown: frozenset[str]

    @staticmethod
    def of(wanted: tuple[Argument, ...], function: ir.Operation, scop: Scop) -> _Places:
        values = list(function.regions[0].blocks[0].arguments)  # results behind the others
        numbers = {
            argument.name: name
            for argument, value in zip(wanted, values, strict=False)
            for name, known in scop.parameters.items()
            if known is not None and known == value
        }
        sizes = {
            (argument.name, dim): size
            for argument, value in zip(wanted, values, strict=False)
            for array in scop.arrays
            if array.value is not None and array.value == value
            for dim, size in enumerate(array.sizes)
            if array.shape[dim] is None and size is not None
        }
        vague = {
            access.array.name
            for statement in scop.statements
            for access in statement.accesses
            if not (access.exact and statement.exact)
        }
        unknown = frozenset(
            argument.name
            for argument, value in zip(wanted, values, strict=False)
            for array in scop.arrays
            if array.name in vague and array.value is not None and array.value == value
        )
        return _Places(numbers, sizes, unknown)


def _fitted(
    wanted: tuple[Argument, ...],
    function: ir.Operation,
    scop: Scop,
    given: Shapes,
    largest: int,
) -> tuple[Argument, ...]:
    """Values and shapes from the affine accesses alone."""
    places = _Places.of(wanted, function, scop)
    fixed = {
        name: given[argument][dim]
        for (argument, dim), name in places.sizes.items()
        if argument in given
    }
    control = in_control(scop)
    limits = dict.fromkeys(places.numbers.values(), largest)
    limits |= {
        name: largest for name in places.sizes.values() if name in control and name not in fixed
    }
    values = fitting_values(scop, limits, fixed, _equal_sizes(function, scop)) or {}
    found = tuple(_with_values(argument, places, values, given, largest) for argument in wanted)
    return _with_windows(wanted, found, function, given)


def _with_windows(
    wanted: tuple[Argument, ...],
    found: tuple[Argument, ...],
    function: ir.Operation,
    given: Shapes,
) -> tuple[Argument, ...]:
    """Open sizes grow to what windows that slide over them take, as a convolution's input has to:
    MLIR compares these sizes when it reads them.
    """
    arguments = list(function.regions[0].blocks[0].arguments)
    places = {value: k for k, value in enumerate(arguments[: len(found)])}
    shapes = {k: list(argument.shape or ()) for k, argument in enumerate(found)}

    def shape_of(value: ir.Value) -> Shape:
        """Of an argument, or of what is as large as an argument."""
        op = defining(value)
        if op is None or op.name not in ("memref.alloc", "memref.alloca"):
            return shapes.get(places.get(value, -1), [])
        open_sizes = iter([size_of(size) for size in op.operands])
        return [next(open_sizes) if n == DYNAMIC else n for n in value.type.shape]

    def size_of(value: ir.Value) -> int | None:
        op = defining(value)
        if op is None or op.name != "memref.dim":
            return None
        shape, dim = shape_of(op.operands[0]), constant_of(op.operands[1])
        return shape[dim] if dim is not None and dim < len(shape) else None

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "linalg.generic":
            operands = list(op.operands)
            for place, dim, size in windows(op, [shape_of(operand) for operand in operands]):
                k = places.get(operands[place], -1)
                if k >= 0 and (wanted[k].shape or ())[dim] == -1 and found[k].name not in given:
                    shapes[k][dim] = max(shapes[k][dim], size)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return tuple(
        argument if argument.shape is None else replace(argument, shape=tuple(shapes[k]))
        for k, argument in enumerate(found)
    )


def _equal_sizes(function: ir.Operation, scop: Scop) -> list[tuple[str, str]]:
    """Sizes that operations on whole arrays take for the same."""
    arrays = {array.value: array for array in scop.arrays if array.value is not None}
    found: list[tuple[str, str]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        known = [arrays.get(operand) for operand in op.operands]
        if op.name == "memref.copy":
            axes = [[(k, dim) for k in range(2)] for dim in range(known[0].rank if known[0] else 0)]
        elif op.name == "linalg.generic":
            axes = axes_of(op)
        else:
            return ir.WalkResult.ADVANCE
        for places in axes:
            sizes = [array.sizes[dim] for k, dim in places if (array := known[k]) is not None]
            texts = [size for size in sizes if size is not None]
            found.extend((texts[0], other) for other in texts[1:] if other != texts[0])
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _with_values(
    argument: Argument,
    places: _Places,
    values: Mapping[str, int],
    given: Shapes,
    largest: int,
) -> Argument:
    if argument.shape is None:
        if argument.element.startswith(("f", "bf")):
            return argument
        number = values.get(places.numbers.get(argument.name, ""), largest)
        return Argument(argument.name, argument.element, None, _in_range(number, argument.element))
    if argument.name in given:
        return Argument(argument.name, argument.element, given[argument.name])
    least = largest if argument.name in places.unknown else 1
    shape = tuple(
        max(least, values.get(places.sizes.get((argument.name, dim), ""), largest))
        if n == -1
        else n
        for dim, n in enumerate(argument.shape)
    )
    return Argument(argument.name, argument.element, shape)


def _in_range(number: int, element: str) -> int:
    """At most what an integer of that type holds."""
    width = 64 if element == "index" else int(element[1:])
    return min(number, 1 if width == 1 else 2 ** (width - 1) - 1)


def _settled(
    source: Source, wanted: Sequence[Argument], found: tuple[Argument, ...], given: Shapes
) -> tuple[tuple[Argument, ...] | None, int]:
    """The arguments after a look at the function with their values in it: products of them are
    affine now (A[i * n + j]). Open sizes grow to what is accessed; None where another is too small.

    With it, how many operations run.
    """
    for _ in range(_ROUNDS):
        scalars = {a.name: 1.0 if a.value is None else a.value for a in found if a.shape is None}
        try:
            module = _parsed(source, _binding(found), scalars)
        except (PassError, VerifyError):
            return None, 0  # sizes that MLIR knows not to fit
        function = program_function(module)
        scop = read_scop(function)
        needed = _needed(function, scop)
        grown = tuple(
            found_one
            if wanted_one.shape is None or found_one.name in given
            else _grown(wanted_one, found_one, needed.get(found_one.name, ()))
            for wanted_one, found_one in zip(wanted, found, strict=True)
        )
        if grown == found:
            fits = all(_holds(a, needed.get(a.name, ())) for a in found)
            return (found if fits else None), operations_in(scop) + points(function)
        found = grown
    return None, 0


def _needed(function: ir.Operation, scop: Scop) -> dict[str, tuple[int | None, ...]]:
    """What is accessed of each array argument, by the argument's name."""
    extents = needed_extents(scop)
    names = {
        value: argument_name(function.attributes.get("arg_attrs"), k) or ""
        for k, value in enumerate(function.regions[0].blocks[0].arguments)
    }
    needed: dict[str, tuple[int | None, ...]] = {
        names[array.value]: extents[array.name]
        for array in scop.arrays
        if array.value is not None and array.value in names and array.name in extents
    }
    for root, nbytes in viewed_bytes(function):
        if root in names:
            (known,) = needed.get(names[root], (None,))
            needed[names[root]] = (max(nbytes, known or 0),)
    return needed


def _grown(wanted: Argument, found: Argument, needed: Sequence[int | None]) -> Argument:
    """Its open sizes as large as needed."""
    assert wanted.shape is not None
    assert found.shape is not None
    if not needed:
        return found
    shape = tuple(
        max(size, least or 0) if open_size == -1 else size
        for open_size, size, least in zip(wanted.shape, found.shape, needed, strict=True)
    )
    return replace(found, shape=shape)


def _holds(argument: Argument, needed: Sequence[int | None]) -> bool:
    return argument.shape is None or all(
        least is None or least <= size for size, least in zip(argument.shape, needed, strict=False)
    )


def _binding(arguments: Sequence[Argument]) -> Binding:
    """Arrays of these shapes, as if a caller had them."""
    arrays = [(a.name, a.element, a.shape) for a in arguments if a.shape is not None]
    return Binding(
        tuple(Buffer(name, shape, e, name, row_major(shape)) for name, e, shape in arrays),
        tuple(Storage(name, shape, ITEMSIZE[e], (name,)) for name, e, shape in arrays),
    )
