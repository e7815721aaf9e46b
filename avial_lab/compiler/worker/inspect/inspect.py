"""All stages of a program, made once more and watched.

Stages as they are made, a log of their passes -> Inside. The texts are those of `Program.stages`:
what is told of a line here holds there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from mlir import ir, passmanager
from mlir.dialects import llvm

from avial_lab.artifact.binary import MachineCode
from avial_lab.artifact.stages import Inside, Lines, PassStep, Stage, StageInside
from avial_lab.compiler.analysis.costs.operation_counts import operation_counts
from avial_lab.compiler.backends.llvm import assembly_of, bitcode, optimised, optimised_command
from avial_lab.compiler.backends.tools import host_triple, safeguards
from avial_lab.compiler.catalogue import LAUNCHED
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.gpu import has_kernels, kernel_modules
from avial_lab.compiler.lowering.run import Stages
from avial_lab.compiler.lowering.stages import our_line
from avial_lab.compiler.worker.inspect.debug_lines import assembly_origins, llvm_origins
from avial_lab.compiler.worker.inspect.kernels import kernels_inside
from avial_lab.compiler.worker.inspect.origins import LocatedText
from avial_lab.compiler.worker.inspect.pass_log import PassLog, dumped_steps, step_between
from avial_lab.compiler.worker.inspect.symbols import counts_of, parts_of
from avial_lab.machine.cpu import NATIVE

_SCOPE = "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly})"


def look_inside(stages: Stages, log: PassLog, cell: str) -> Inside:
    """What is inside of `stages`, in the order they come; `cell` is whose lines are looked for."""
    found: list[StageInside] = []
    kernels: dict[str, Stage] = {}
    before_kernels, made = "", PassStep("", "", 0.0, 0, 0, None)
    llvm_ir, marked = "", _Marked("", [])
    for stage, module in stages:
        if isinstance(module, ir.Operation):
            if stage.name == "host" and has_kernels(module):
                before_kernels, made = _kernels(stage, module)
            if stage.name == "llvm":
                marked = _with_debug_information(_located(module, cell))
            found.append(_of_mlir(stage, module, log, cell))
        elif stage.name == "llvmir":
            found.append(_stage(stage, llvm_origins(stage.text, marked.llvm_ir, marked.table)))
            llvm_ir = stage.text
        elif stage.name == "object":
            cpu = module.cpu if isinstance(module, MachineCode) else NATIVE
            found.append(_of_object(stage, llvm_ir, marked, cpu))
        else:
            kernels[stage.name] = stage
    if kernels:
        found += kernels_inside(made, before_kernels, kernels, cell)
    return Inside(tuple(found))


def _kernels(host: Stage, module: ir.Operation) -> tuple[str, PassStep]:
    """The kernels with their places, and the pass that made them."""
    started = time.perf_counter()
    kernels = kernel_modules(module)
    seconds = time.perf_counter() - started
    asked = {"use_name_loc_as_prefix": True, "enable_debug_info": True}
    text = str(kernels.get_asm(assume_verified=True, **asked))
    clean = "\n".join(LocatedText(text, "").lines) + "\n"
    passes = LAUNCHED.passes()
    step = step_between(str(passes[-1]), seconds, host.text, clean)
    return text, replace(step, command=our_line(passes, "host.mlir", "gpu.mlir"))


def look_at_text(stages: Iterable[Stage], edited: str) -> Inside:
    """Of stages that have only their texts, in lines of the edited one."""
    return Inside(
        tuple(
            _stage(stage, _themselves(stage) if stage.name == edited else None) for stage in stages
        )
    )


def _themselves(stage: Stage) -> tuple[Lines, ...]:
    return tuple((line,) for line in range(1, len(stage.text.splitlines()) + 1))


def _located(module: ir.Operation, cell: str) -> LocatedText:
    text = module.get_asm(use_name_loc_as_prefix=True, assume_verified=True, enable_debug_info=True)
    return LocatedText(str(text), cell)


def _of_mlir(stage: Stage, module: ir.Operation, log: PassLog, cell: str) -> StageInside:
    located = _located(module, cell)
    fits = located.lines == stage.text.splitlines()
    return _stage(
        stage,
        located.origins if fits else None,
        passes=log.take(stage.name),
        facts=_work(module) if stage.name in ("source", "avial") else {},
    )


def _stage(
    stage: Stage,
    origins: tuple[Lines, ...] | None,
    *,
    passes: tuple[PassStep, ...] = (),
    facts: Mapping[str, str] | None = None,
) -> StageInside:
    """`origins` None: the text with places is not the one that is shown."""
    known = dict(facts or {})
    if origins is None:
        origins = ((),) * len(stage.text.splitlines())
        known["lines"] = "their source line is not known"
    return StageInside(
        stage.name,
        origins,
        passes,
        parts_of(stage.text, stage.language),
        counts_of(stage.text, stage.language),
        known,
    )


# -- machine code ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Marked:
    """LLVM IR with debug information: its line k stands for the cell's lines `table[k]`."""

    llvm_ir: str
    table: list[Lines]


def _with_debug_information(located: LocatedText) -> _Marked:
    """The LLVM dialect translated with every place as a line of its own."""
    numbered, table = located.numbered()
    context = ir.Context()
    register(context)
    module = ir.Module.parse(numbered, context)
    with context:
        for op in operations_in(module.operation):
            if op.name.startswith("omp."):  # their places become texts in the program itself
                op.location = ir.Location.unknown()
        passmanager.PassManager.parse(_SCOPE).run(module.operation)
    return _Marked(llvm.translate_module_to_llvmir(module.operation), table)


NEAREST = ("-use-unknown-locations=Disable",)
"""What llc adds of its own, a spill or a shuffle, has the line of the instruction before it."""


def _of_object(stage: Stage, llvm_ir: str, marked: _Marked, cpu: str) -> StageInside:
    """opt and llc are its passes: what the shown text was made by, with the time each takes."""
    with ThreadPoolExecutor(2, thread_name_prefix="tools") as pool:
        debug = pool.submit(lambda: assembly_of(bitcode(marked.llvm_ir, cpu), *NEAREST, cpu=cpu))
        to_read = pool.submit(optimised, llvm_ir, cpu)
        started = time.perf_counter()
        code = bitcode(llvm_ir, cpu)
        halfway = time.perf_counter()
        assembly_of(code, cpu=cpu)
        text = to_read.result()
        if len(code) == 1:  # which the command has opt read from the file, and several from a pipe
            text = text.replace("<stdin>", "llvmir.ll", 1)
        dumps = [
            ("opt", halfway - started, text),
            ("llc", time.perf_counter() - halfway, stage.text),
        ]
        origins = assembly_origins(stage.text, debug.result(), marked.table)
    opt, llc = dumped_steps(dumps, llvm_ir)
    # llc gets bitcode, not the text: only both together make the stage.
    command = optimised_command(
        "llvmir.ll", "object.ll", parts=len(code), guards=safeguards(llvm_ir), cpu=cpu
    )
    steps = (
        replace(opt, command=command),
        replace(llc, command=stage.command),
    )
    return _stage(stage, origins, passes=steps, facts={"machine": host_triple()})


# -- what it asks for ------------------------------------------------------------------------------


def _work(module: ir.Operation) -> dict[str, str]:
    """Before anything is optimised."""
    work = operation_counts(module)
    names = {
        "flops": work.flops,
        "integer operations": work.integer,
        "bytes loaded": work.loaded,
        "bytes stored": work.stored,
    }
    if not work.known:
        return {"work": "not known before a run: some loop's bounds are not constant"}
    return {f"{name} (as written)": f"{value:,}" for name, value in names.items() if value}
