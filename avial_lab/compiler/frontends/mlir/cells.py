"""Parse a cell: the notation, then MLIR, then what only the whole program can say.

Text, and what is known of the caller's arrays -> ir.Module in the avial dialect: verified, roles of
buffers inferred, arguments bound, every operation located at its line of the cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from mlir import ir

from avial_lab.compiler.codegen.gpu_prints import settle_prints
from avial_lab.compiler.frontends.mlir.aggregates import aggregates_to_loops
from avial_lab.compiler.frontends.mlir.arguments import bind_arguments, check_sizes
from avial_lab.compiler.frontends.mlir.async_regions import settle_async
from avial_lab.compiler.frontends.mlir.canonical import canonicalize_operands
from avial_lab.compiler.frontends.mlir.contractions import widen_contractions
from avial_lab.compiler.frontends.mlir.foreign import read_mlir
from avial_lab.compiler.frontends.mlir.functions import drop_foreign_attributes, one_function
from avial_lab.compiler.frontends.mlir.gpu_functions import (
    launch_in_place,
    refuse_only_kernels,
    write_out_threads,
)
from avial_lab.compiler.frontends.mlir.gpu_memory import settle_gpu_memory
from avial_lab.compiler.frontends.mlir.gpu_threads import settle_threads
from avial_lab.compiler.frontends.mlir.launch_limits import check_launches
from avial_lab.compiler.frontends.mlir.launches import size_launches
from avial_lab.compiler.frontends.mlir.memory_spaces import drop_memory_spaces
from avial_lab.compiler.frontends.mlir.results import results_to_arguments, settle_open_results
from avial_lab.compiler.frontends.mlir.roles import check_unwritten, resolve_roles
from avial_lab.compiler.frontends.mlir.runner_library import settle_library
from avial_lab.compiler.frontends.mlir.tensors import has_tensors, tensors_to_memory
from avial_lab.compiler.frontends.mlir.unit_extents import collapse_unit_extents
from avial_lab.compiler.frontends.mlir.unsigned_loops import count_unsigned_in_index
from avial_lab.compiler.frontends.notation.elaboration import Elaboration, Place, Scalar
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.frontends.notation.limits import check_limits
from avial_lab.compiler.frontends.notation.programs import elaborate
from avial_lab.compiler.frontends.notation.rules import USAGE
from avial_lab.compiler.frontends.notation.source import STATEMENT, Source, did_you_mean
from avial_lab.compiler.ir.attributes import CONTRACTED
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.dialects.verify import verify_program
from avial_lab.compiler.ir.divisors import refuse_divisors
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import constant_of, loops_in
from avial_lab.compiler.ir.program import functions_of, program_function, scheduled_function
from avial_lab.core.buffers import Binding
from avial_lab.core.errors import AvialError, BindError, InternalError, ParseError, VerifyError
from avial_lab.core.regions import iterations

MOST_ITERATIONS = 1 << 56
"""Of a loop: two years, where one takes a nanosecond."""

_LONG_NUMBER = re.compile(r"\d{17}")

ToMemory = Callable[[ir.Module], bool]
"""How tensors become memory; says whether there were any."""

NO_SCALARS: Mapping[str, Scalar] = MappingProxyType({})


def parse_cell(
    text: str,
    *,
    cell: str,
    context: ir.Context,
    binding: Binding | None = None,
    scalars: Mapping[str, Scalar] = NO_SCALARS,
    function: str | None = None,
    dynamic: bool = False,
    to_memory: ToMemory = tensors_to_memory,
) -> ir.Module:
    """The program in `text`, which its user knows as `cell`.

    `binding` gives the types that buffers of the program leave out; `scalars` replace arguments of
    int, float or index type. A text without an avial operation is MLIR of another compiler, of
    which `function` is meant (by default the only one it can be): in the module that is the one
    public function, with its helpers inlined and its results made arguments; with `dynamic` it
    stays one for arrays of any size and any numbers. Its tensors become memory by `to_memory`.
    Raises ParseError, VerifyError or BindError with the place in `text`.
    """
    register(context)
    source = Source(text, cell)
    try:
        check_limits(source)
        with context:
            if holds_schedule(text):
                module = _program(source, context, binding, scalars)
            else:
                module = _read_plain(source, context, binding, scalars)
                _settle_plain(module, binding, scalars, function, to_memory, dynamic=dynamic)
            if "step" in text or _LONG_NUMBER.search(text):
                _check_loops(module)
            if "gpu.launch" in text:
                check_launches(module.operation)
            if "mod" in text or "div" in text:
                refuse_divisors(module)
            _verified(module, source)
    except AvialError as error:
        if error.span is None and isinstance(error, VerifyError):
            error.span = source.span(len(text) - len(text.lstrip()) if text.strip() else 0)
        if error.span is not None and error.span.cell == cell and not error.span.text:
            error.span = replace(error.span, text=text)
        raise
    return module


def _program(
    source: Source,
    context: ir.Context,
    binding: Binding | None,
    scalars: Mapping[str, Scalar],
) -> ir.Module:
    """A text with avial's operations."""
    elaboration = elaborate(source, context, binding=binding, scalars=scalars)
    module = _parsed(elaboration)
    launches = _name_arguments(module, elaboration)
    verify_program(module, regions=elaboration.generic or elaboration.labels)
    function = scheduled_function(module)
    if elaboration.generic:
        canonicalize_operands(function)
    aggregates_to_loops(module.operation)
    collapse_unit_extents(module.operation)
    count_unsigned_in_index(module.operation)
    read_only = bind_arguments(function, binding, scalars)
    size_launches(launches)
    _settle_gpu(module)
    widen_contractions(module)
    resolve_roles(function, elaboration, read_only)
    return module


def _settle_plain(
    module: ir.Module,
    binding: Binding | None,
    scalars: Mapping[str, Scalar],
    name: str | None,
    to_memory: ToMemory,
    *,
    dynamic: bool,
) -> None:
    """A text without: any func.func that MLIR reads, in short notation too."""
    if not any(True for _ in functions_of(module)):
        refuse_only_kernels(module)
        verify_program(module)  # says that there is no task
    drop_foreign_attributes(module)
    _settle_gpu(module)
    widen_contractions(module)
    one_function(module, name)
    drop_memory_spaces(module)
    tensors = has_tensors(module)
    aggregates_to_loops(module.operation)
    to_memory(module)
    collapse_unit_extents(module.operation)
    count_unsigned_in_index(module.operation)
    function = program_function(module)
    if CONTRACTED in function.attributes:
        module.operation.attributes[CONTRACTED] = function.attributes[CONTRACTED]
        del function.attributes[CONTRACTED]
    results_to_arguments(function, handed_back=tensors)
    # C compiled by Polygeist hands sizes over that nobody looks at.
    read_only = bind_arguments(function, binding, scalars, all_known=False, dynamic=dynamic)
    check_unwritten(function, read_only)
    if binding is not None:
        known = [*(buffer.name for buffer in binding.buffers), *scalars] if dynamic else []
        check_sizes(settle_open_results(module, function), but=known)


def _settle_gpu(module: ir.Module) -> None:
    """The gpu dialect as others write it, in as few of its operations as all that follows knows."""
    settle_async(module)
    launch_in_place(module)
    write_out_threads(module)
    settle_gpu_memory(module)
    settle_library(module)
    settle_threads(module)
    with module.context, ir.Location.unknown():
        settle_prints(module.operation)


def _read_plain(
    source: Source,
    context: ir.Context,
    binding: Binding | None,
    scalars: Mapping[str, Scalar],
) -> ir.Module:
    """By the notation, which knows names and short forms; else, as MLIR alone reads it.

    Where neither can, the error is the notation's.
    """
    context.allow_unregistered_dialects = True
    try:
        elaboration = _elaborated(source, context, binding, scalars)
        if elaboration.main is not None:
            raise source.error(
                "a statement is outside any function",
                elaboration.main,
                hint="put it into func.func @f(…) { … }, or into an avial.schedule",
                kind=VerifyError,
            )
        module = _parsed(elaboration)
        size_launches(_name_arguments(module, elaboration))
        return module
    except (ParseError, VerifyError) as error:
        module = read_mlir(source)
        if module is None:
            raise error from None
        return module
    finally:
        context.allow_unregistered_dialects = False


def _elaborated(
    source: Source,
    context: ir.Context,
    binding: Binding | None,
    scalars: Mapping[str, Scalar],
) -> Elaboration:
    """Of several functions each has its %arg0: one that does not fit the array need not be meant.
    What is meant has to fit, once it is known which one that is.
    """
    try:
        return elaborate(source, context, binding=binding, scalars=scalars)
    except BindError as error:
        try:
            return elaborate(source, context)
        except BindError:
            raise error from None


def _parsed(elaboration: Elaboration) -> ir.Module:
    """MLIR's own parse; what it finds wrong is told at its place in the cell."""
    try:
        return ir.Module.parse(elaboration.output.text)
    except ir.MLIRError as error:
        raise _located(error, elaboration) from None


def _verified(module: ir.Module, source: Source) -> None:
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        diagnostic = error.error_diagnostics[0]
        span = span_of(diagnostic.location)
        raise InternalError(
            f"the module does not verify: {diagnostic.message}",
            span=span and replace(span, text=source.text),
        ) from error


def _check_loops(module: ir.Module) -> None:
    """A loop that does not get on never ends (MLIR looks at all loops but scf.for), and neither
    does one that has too far to go.
    """
    for loop in loops_in(module.operation):
        lows, highs, steps = _ends_of(loop)
        for step in steps if loop.name == "scf.for" else ():
            if step is not None and step < 1:
                raise VerifyError(
                    f"the step is {step}; a loop counts upwards", span=span_of(loop.location)
                )
        for low, high, step in zip(lows, highs, steps, strict=True):
            if low is None or high is None or step is None or step < 1:
                continue
            if iterations(low, high, step) > MOST_ITERATIONS:
                raise VerifyError(
                    f"the loop goes round {iterations(low, high, step):,} times, and never ends",
                    span=span_of(loop.location),
                    hint=f"its bounds are {low} and {high}",
                )


Numbers = list[int | None]


def _ends_of(loop: ir.Operation) -> tuple[Numbers, Numbers, Numbers]:
    """First values, ends and steps, as far as they are numbers."""
    if loop.name.startswith("affine."):
        if loop.name != "affine.for":
            return [], [], []
        low, high = (_number(loop.attributes[f"{end}BoundMap"]) for end in ("lower", "upper"))
        return [low], [high], [ir.IntegerAttr(loop.attributes["step"]).value]
    count = len(loop.regions[0].blocks[0].arguments) if loop.name == "scf.parallel" else 1
    numbers = [constant_of(value) for value in list(loop.operands)[: 3 * count]]
    return numbers[:count], numbers[count : 2 * count], numbers[2 * count :]


def _number(bound: ir.Attribute) -> int | None:
    results = list(ir.AffineMapAttr(bound).value.results)
    known = len(results) == 1 and isinstance(results[0], ir.AffineConstantExpr)
    return results[0].value if known else None


def _located(error: ir.MLIRError, elaboration: Elaboration) -> AvialError:
    """The first of MLIR's messages as an error of ours."""
    source = elaboration.source
    if not error.error_diagnostics:
        return ParseError(str(error))
    diagnostic = error.error_diagnostics[0]
    span = span_of(diagnostic.location)
    message = diagnostic.message.strip()
    if span is None:
        return ParseError(message)
    if span.cell == source.cell and span.cell != "-":
        offset = source.offset_of(span.line, span.column)
        kind: type[AvialError] = VerifyError
    else:
        offset = elaboration.output.origin(source, span.line, span.column)
        kind = ParseError
    if message == "expected operation name in quotes":
        # MLIR shows the end of what stands before.
        offset = source.skip(offset)
        word = re.compile(r"\S{1,40}").match(source.text, offset)
        return source.error(f"'{word[0] if word else ''}' is not a statement", offset, kind=kind)
    message, hint = _explained(message, offset, source)
    if hint is None and message.startswith("expected"):
        hint = _usage(source, offset)
    return source.error(message, offset, hint=hint, kind=kind)


def _explained(message: str, offset: int, source: Source) -> tuple[str, str | None]:
    """MLIR's message in the words of the notation, and a hint where one is certain."""
    if "use of undeclared SSA value name" in message:
        match = re.compile(r"%[\w$.-]+").match(source.text, offset)
        if match:
            known = set(re.findall(r"%[\w$.-]+", source.text)) - {match[0]}
            return f"unknown value {match[0]}", did_you_mean(match[0], known)
    if message == "use of undeclared identifier":
        match = re.compile(r"[A-Za-z_][\w$.-]*").match(source.text, offset)
        if match and re.search(rf"%{re.escape(match[0])}\b", source.text):
            return f"unknown name {match[0]}", f"values begin with %: write %{match[0]}"
    if found := re.match(
        r"use of value '(%\S+)' expects different type .*: '.*' vs '(.*)'", message
    ):
        return message, f"{found[1]} is {found[2]} before: write that, or convert it"
    unknown = re.match(r"(?:custom op|Dialect `[^']*' not found for custom op) '([^']*)'", message)
    if unknown and ("is unknown" in message or message.startswith("Dialect")):
        name = unknown[1].lstrip(".")
        full = [op for op in (*USAGE, "func.call") if op.endswith(f".{name}")]
        hint = f"did you mean {full[0]}?" if len(full) == 1 else None
        return f"unknown operation '{name}'", hint
    if message.startswith("redefinition of SSA value"):
        return message, "give one of the two another name"
    if message.startswith("block with no terminator"):
        return "the region does not end in a terminator (return, scf.yield, …)", None
    return message.splitlines()[0] if message else "this is not MLIR", None


def _usage(source: Source, offset: int) -> str | None:
    """How the operation of the statement around `offset` is written in short."""
    line_start = source.text.rfind("\n", 0, offset) + 1
    match = STATEMENT.match(source.text, line_start)
    op = match and match["op"]
    return f"write it as: {USAGE[op]}" if op in USAGE else None


def _name_arguments(module: ir.Module, elaboration: Elaboration) -> list[ir.Operation]:
    """Give loop variables and block arguments their names and places; the launches still without
    sizes.
    """
    cell = elaboration.source.cell
    names = elaboration.block_arguments
    launches: list[ir.Operation] = []
    groups: list[tuple[ir.Location, list[ir.BlockArgument]]] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        regions = op.regions
        if len(regions) == 0:
            return ir.WalkResult.ADVANCE
        if op.name == "gpu.launch" and "avial.bare" in op.attributes:
            launches.append(op)
        location = op.location
        if location.is_a_name():
            location = location.child_loc
        arguments = [a for region in regions for block in region for a in block.arguments]
        if arguments:
            groups.append((location, arguments))
        if not location.is_a_file():
            return ir.WalkResult.ADVANCE
        found = names.get((location.start_line, location.start_col))
        if found is None:
            return ir.WalkResult.ADVANCE
        if op.name == "gpu.launch" and len(arguments) >= 12:
            # In the text the grid's size stands between the block's and the thread's index.
            arguments[3:9] = [*arguments[6:9], *arguments[3:6]]
        if len(found) == len(arguments):
            for argument, (name, (line, column)) in zip(arguments, found, strict=True):
                place = ir.Location.file(cell, line, column)
                argument.set_location(ir.Location.name(name, place))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    _name_in_order(groups, names)
    return launches


def _name_in_order(
    groups: Sequence[tuple[ir.Location, Sequence[ir.BlockArgument]]],
    names: Mapping[Place, Sequence[tuple[str, Place]]],
) -> None:
    """Of operations that say that they are from another place, where they stand in the text in the
    same order as all that has names.
    """
    found = sorted(names.items())
    if [len(arguments) for _, arguments in groups] != [len(each) for _, each in found]:
        return
    for (location, arguments), (place, each) in zip(groups, found, strict=True):
        if location.is_a_file() and (location.start_line, location.start_col) == place:
            continue
        for argument, (name, _) in zip(arguments, each, strict=True):
            argument.set_location(ir.Location.name(name, location))
