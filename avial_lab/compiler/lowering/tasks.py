"""The way down, stage by stage, each one kept as text with the line that makes it.

Module, Schedule -> Stages, and the Binary at the end.

    avial ─► placed ─► mpi ─┬─► host ─► llvm ─► llvmir ─► object
                            └─► gpu ─► ptx:task3

`python -m avial_lab.compiler.lowering.tasks -p tasks-to-mpi placed.mlir -o mpi.mlir` runs passes of
ours on a file, as mlir-opt does its own.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Protocol

from mlir import ir, passmanager
from mlir.dialects import llvm

from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.llvm import (
    MachineCode,
    assembly_command,
    begun,
    compile_llvm_ir,
    has_fma,
)
from avial_lab.compiler.backends.nvptx import Kernels, compile_kernels, ptx_command
from avial_lab.compiler.catalogue import ARITHMETIC, HOST, LLVM_FACTS, SELECT, TO_LLVM_DIALECT, rows
from avial_lab.compiler.frontends.mlir.foreign import name_printed
from avial_lab.compiler.frontends.notation.source import Source
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.passes.gpu.select_gpu_tasks import is_gpu_task
from avial_lab.compiler.passes.llvm.independent_to_llvm import MARKS
from avial_lab.compiler.passes.llvm.signed_offsets import may_run_backwards
from avial_lab.compiler.passes.loops.facts.no_alias import APART
from avial_lab.core.errors import AvialError, InternalError, PassError


class Pass(Protocol):
    """IR in, IR out; its text is its name and options."""

    def __call__(self, module: ir.Operation) -> None: ...

    def __str__(self) -> str: ...


OURS: dict[str, type] = {row.name: row.load(by_name=True) for row in rows() if row.is_ours}
"""Passes that can be named on a command line."""

TO_HOST: tuple[Pass | str, ...] = HOST.passes({"check-bounds": None})

TO_LLVM: tuple[str, ...] = TO_LLVM_DIALECT.passes()


Watch = Callable[[Pass | str, ir.Operation, float], None]
"""Told of every pass after it ran: the pass, the module, the seconds it took."""

Stages = Iterator[tuple[Stage, ir.Operation | MachineCode | None]]
"""Each stage with what it is the text of: the live module, changed once the next is asked for, or
the machine code.
"""


def arithmetic(*, strict: bool) -> tuple[Pass, ...]:
    """What comes before everything else, in a run as in the reference: which operations there are.

    Where the machine has no instruction for a product and a sum, they are rounded apart, as with
    `strict`.
    """
    fused = not strict and has_fma()
    return ARITHMETIC.passes(
        {
            "strict-arithmetic": {} if strict else None,
            "contract-products": {} if fused else None,
            "mark-math": None if strict else {"fused": fused},
        }
    )


def to_tools(
    work: ir.Operation, host_text: str, watch: Watch | None
) -> Generator[tuple[Stage, ir.Operation | None], None, MachineCode]:
    """The stages down to what tools make machine code of; they do so while these are printed, and
    whoever asked for them looks at them.
    """
    started = time.perf_counter()
    line = lower_to_llvm(work, host_text, watch=watch)
    check_lowered(work)
    seconds = time.perf_counter() - started
    llvm_ir = _translated(work)
    with begun(llvm_ir.text) as underway:
        yield mlir_stage("llvm", "the LLVM dialect", work, line, seconds), work
        yield llvm_ir, None
        return compile_llvm_ir(llvm_ir.text, underway=underway)


def _translated(work: ir.Operation) -> Stage:
    started = time.perf_counter()
    llvm_ir = llvm.translate_module_to_llvmir(work)
    line = "mlir-translate --mlir-to-llvmir llvm.mlir -o llvmir.ll"
    return Stage("llvmir", "LLVM IR", "llvm", llvm_ir, line, time.perf_counter() - started)


def machine_stages(work: ir.Operation, host_text: str, *, watch: Watch | None = None) -> Stages:
    """On from the host's part, whose text is `host_text`, to machine code."""
    machine = yield from to_tools(work, host_text, watch)
    yield object_stage(machine)


def lower_llvm(work: ir.Operation) -> Stages:
    """On from the LLVM dialect."""
    check_lowered(work)
    stage = _translated(work)
    yield stage, None
    yield object_stage(compile_llvm_ir(stage.text))


def lower_to_llvm(module: ir.Operation, text: str, *, watch: Watch | None = None) -> str:
    """Bring the host's module, whose text is `text`, into the LLVM dialect.

    Returns the line that does the same.
    """
    printing = operations_named(module, "vector.print") if "vector.print" in text else ()
    for first in printing:
        raise PassError(
            "vector.print needs a library of MLIR's own, which ranks do without",
            span=span_of(first.location),
            hint="store what you want to see in an array",
        )
    run_passes(module, TO_LLVM, watch=watch)
    wanted = {
        "signed-offsets": may_run_backwards(text),
        "apart-to-llvm": APART in text,
        "independent-to-llvm": any(mark in text for mark in MARKS),
        "keep-memory": "memref.alloc(" in text,
    }
    ours = LLVM_FACTS.passes({name: {} if each else None for name, each in wanted.items()})
    if not ours:
        return mlir_opt_line(TO_LLVM, "host.mlir", "llvm.mlir")
    run_passes(module, ours, watch=watch)
    line = mlir_opt_line(TO_LLVM, "host.mlir", "-")
    return f"{line} | {our_line(ours, '-', 'llvm.mlir')}"


def finished(stages: Stages) -> tuple[list[Stage], MachineCode]:
    """All of the stages, and the machine code at their end."""
    made: list[Stage] = []
    code: MachineCode | None = None
    for stage, of in stages:
        made.append(stage)
        code = of if isinstance(of, MachineCode) else code
    if code is None:
        raise InternalError("the stages do not end in machine code")
    return made, code


def ptx_in(stages: Iterable[Stage]) -> dict[str, str]:
    """The PTX by task."""
    found = (s for s in stages if s.name.startswith("ptx:") and s.language == "ptx")
    return {stage.name.removeprefix("ptx:"): stage.text for stage in found}


_READING_ORDER = (
    "source", "avial", "placed", "mpi", "gpu", "ptx", "loops", "host", "llvm", "llvmir", "object"
)  # fmt: skip


def in_reading_order(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """The GPU's part before the host's."""
    return tuple(sorted(stages, key=lambda s: _READING_ORDER.index(s.name.partition(":")[0])))


# -- passes ----------------------------------------------------------------------------------------


def run_passes(
    module: ir.Operation, passes: Sequence[Pass | str], *, watch: Watch | None = None
) -> float:
    """Run `passes` on `module` in place, verified after the last, with a `watch` after each; the
    seconds it took.

    A string is the name of one of MLIR's. Errors are PassErrors at the operation's place in the
    cell.
    """
    started = time.perf_counter()
    if watch is not None:
        for item in passes:
            watch(item, module, run_passes(module, (item,)))
        return time.perf_counter() - started
    try:
        with module.context:
            names: list[str] = []
            for item in passes:
                if isinstance(item, str):
                    names.append(item)
                    continue
                _run_mlirs(module, names)
                names = []
                _run_ours(module, item)
            _run_mlirs(module, names)
            _verify(module, passes)
    except ir.MLIRError as error:
        raise _pass_error(error, passes) from None
    return time.perf_counter() - started


def _run_ours(module: ir.Operation, item: Pass) -> None:
    """InternalError where it cannot make the IR that it wants to make."""
    try:
        item(module)
    except ir.MLIRError as error:
        raise InternalError(f"{_said(error)} in the pass {item}\n{error}") from error


def _verify(module: ir.Operation, passes: Sequence[Pass | str]) -> None:
    """InternalError where they left IR that cannot be."""
    try:
        module.verify()
    except ir.MLIRError as error:
        if _said(error).startswith(_STRUCTURED):
            raise  # shapes that do not fit, which nobody sees in an operation with a name
        names = ",".join(map(str, passes))
        raise InternalError(f"{_said(error)} after the passes {names}\n{error}") from None


_STRUCTURED = ("'linalg.", "'tensor.", "'tosa.")


def _said(error: ir.MLIRError) -> str:
    return error.error_diagnostics[0].message if error.error_diagnostics else str(error)


def _run_mlirs(module: ir.Operation, names: Sequence[str]) -> None:
    """Ours run outside of their manager: within, nothing may load a dialect or run other passes."""
    if not names:
        return
    manager = passmanager.PassManager("builtin.module")
    manager.enable_verifier(enable=False)  # some 4 ms a pass for a big module
    for name in names:
        manager.add(name)
    manager.run(module)


def _pass_error(error: ir.MLIRError, passes: Sequence[Pass | str]) -> AvialError:
    names = ",".join(map(str, passes))
    if not error.error_diagnostics:
        return InternalError(f"{error} in the passes {names}")
    first = error.error_diagnostics[0]
    return PassError(f"{first.message} (in the passes {names})", span=span_of(first.location))


def check_lowered(module: ir.Operation) -> None:
    """PassError at the first operation that is not in the LLVM dialect."""
    for op in operations_in(module):
        if op.name.startswith(("llvm.", "omp.")):  # these are translated together
            continue
        if op.name == "builtin.unrealized_conversion_cast":
            # The operation that needs it has not been lowered: it is the one to name.
            users = [use.owner.operation for result in op.results for use in result.uses]
            done = ("llvm.", "builtin.")
            op = next((user for user in users if not user.name.startswith(done)), op)
        raise PassError(f"no lowering was found for {op.name}", span=span_of(op.location))


# -- stages ----------------------------------------------------------------------------------------


def mlir_stage(name: str, title: str, module: ir.Operation, command: str, seconds: float) -> Stage:
    return Stage(name, title, "mlir", text_of(module), command, seconds)


def text_of(module: ir.Operation) -> str:
    """The module with the user's names for values."""
    return str(module.get_asm(use_name_loc_as_prefix=True, assume_verified=True))


def our_line(passes: Sequence[Pass | str], source: str, result: str) -> str:
    names = shlex.quote(",".join(map(str, passes)))
    return f"python -m avial_lab.compiler.lowering.tasks -p {names} {source} -o {result}"


def mlir_opt_line(passes: Sequence[str], source: str, result: str) -> str:
    pipeline = shlex.quote(f"--pass-pipeline=builtin.module({','.join(passes)})")
    return f"mlir-opt {pipeline} {source} -o {result}"


def object_stage(code: MachineCode) -> tuple[Stage, MachineCode]:
    """The last stage: the assembly, to read."""
    line = assembly_command("llvmir.ll", "object.s", parts=code.parts)
    return Stage("object", "machine code", "asm", code.assembly, line, code.seconds), code


def has_gpu_tasks(module: ir.Operation) -> bool:
    return any(
        op.operation.name == "func.func" and is_gpu_task(op.operation)
        for op in module.regions[0].blocks[0].operations
    )


def gpu_text(module: ir.Operation) -> str:
    part = module.clone().operation
    run_passes(part, SELECT.passes())
    return str(part.get_asm(enable_debug_info=True))


def gpu_stages(kernels: Kernels) -> Iterator[Stage]:
    line = f"python -m avial_lab.compiler.lowering.tasks -p select-gpu-tasks mpi.mlir | {kernels.outline_command}"
    title = "; ".join(["kernels, outlined", *kernels.remarks])
    yield Stage("gpu", title, "mlir", kernels.outlined, line, kernels.seconds)
    yield from _ptx_stages(kernels.ptx, kernels.failures, kernels.ptx_command)


def kernel_stages(outlined: str, tasks: Sequence[str]) -> Iterator[Stage]:
    """On from kernels that are outlined."""
    yield from _ptx_stages(*compile_kernels(outlined, tasks), ptx_command())


def _ptx_stages(
    ptx: Mapping[str, str], failures: Mapping[str, str], command: str
) -> Iterator[Stage]:
    for task, text in ptx.items():
        line = f"{command} | python -m avial_lab.compiler.backends.nvptx {shlex.quote(task)}"
        line += f" -o {shlex.quote(f'ptx:{task}.ptx')}"
        yield Stage(f"ptx:{task}", f"PTX of {task}", "ptx", text, line)
    for task, why in failures.items():
        yield Stage(f"ptx:{task}", f"no PTX for {task}", "text", why, command)


# -- the command line ------------------------------------------------------------------------------


_PASS = r"\s*[\w-]+(\{[^{}]*\})?\s*"


def parse_passes(text: str) -> tuple[Pass | str, ...]:
    """Passes from their printed form, one after the other; what is none of ours is MLIR's.
    PassError where one is not written as a pass: MLIR's nested pipelines are for mlir-opt.

    >>> [str(item) for item in parse_passes("tasks-to-mpi{share=false},lower-affine,mpi-to-llvm")]
    ['tasks-to-mpi{share=false}', 'lower-affine', 'mpi-to-llvm']
    """
    if not re.fullmatch(rf"{_PASS}(,{_PASS})*", text):
        raise PassError(
            f"{text!r} is no list of passes",
            hint="write name,name{option=value},… as --help lists them",
        )
    result: list[Pass | str] = []
    for name, options in re.findall(r"([\w-]+)(?:\{([^}]*)\})?", text):
        if name not in OURS:
            result.append(f"{name}{{{options}}}" if options else name)
            continue
        given = dict(option.split("=", 1) for option in options.split())
        known = {field.name.replace("_", "-"): field.name for field in fields(OURS[name])}
        if unknown := given.keys() - known.keys():
            raise PassError(f"{name} has no option {', '.join(sorted(unknown))}")
        values = {known[key]: _option(value) for key, value in given.items()}
        if missing := [each for each in _required(OURS[name]) if each not in values]:
            raise PassError(f"{name} needs {', '.join(missing)}")
        result.append(OURS[name](**values))
    return tuple(result)


def _required(kind: type) -> list[str]:
    """Fields without a default."""
    without = (MISSING, MISSING)
    return [f.name for f in fields(kind) if (f.default, f.default_factory) == without]


def _option(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run our passes on a file."""
    parser = argparse.ArgumentParser(
        prog="python -m avial_lab.compiler.lowering.tasks", description=main.__doc__
    )
    parser.add_argument(
        "-p",
        dest="passes",
        required=True,
        help=f"comma-separated; MLIR's own, and ours (see avial-lab passes): {', '.join(OURS)}",
    )
    parser.add_argument("file", help="- reads standard input")
    parser.add_argument("-o", dest="output", default="-")
    options = parser.parse_args(arguments)
    context = ir.Context()
    register(context)
    try:
        source = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
        with context:
            parsed = ir.Module.parse(source)
            name_printed(parsed, Source(source, options.file))
        module = parsed.operation
        run_passes(module, parse_passes(options.passes))
    except (AvialError, ir.MLIRError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if options.output == "-":
        sys.stdout.write(text_of(module))
    else:
        Path(options.output).write_text(text_of(module))
    return 0


if __name__ == "__main__":
    sys.exit(main())
