"""From LLVM's dialect to machine code: LLVM IR, assembly, objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping

from mlir import ir
from mlir.dialects import llvm

from avial_lab.artifact.binary import MachineCode
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.backends.llvm import begun, compile_llvm_ir
from avial_lab.compiler.catalogue import HOST_ALONE, LLVM_FACTS
from avial_lab.compiler.ir.attributes import NO_ALIAS, ON_DEVICE
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import Stages, Watch, check_lowered, run_passes
from avial_lab.compiler.lowering.stages import mlir_opt_line, mlir_stage, object_stage, our_line
from avial_lab.compiler.pass_rows import Given
from avial_lab.compiler.passes.llvm.independent_to_llvm import MARKS
from avial_lab.compiler.passes.llvm.signed_offsets import may_run_backwards
from avial_lab.core.underway import tell
from avial_lab.machine.cpu import NATIVE

Images = Callable[[], Mapping[str, str]]
"""Waits for the PTX of kernels, by their names."""


def to_tools(
    work: ir.Operation,
    host_text: str,
    watch: Watch | None,
    *,
    cpu: str = NATIVE,
    images: Images | None = None,
) -> Generator[tuple[Stage, ir.Operation | None], None, MachineCode]:
    """The stages down to what tools make machine code of; they do so while these are printed, and
    whoever asked for them looks at them.
    """
    started = time.perf_counter()
    line = lower_to_llvm(work, host_text, watch=watch, images=images)
    check_lowered(work)
    seconds = time.perf_counter() - started
    llvm_ir = _translated(work)
    with begun(llvm_ir.text, cpu) as underway:
        yield mlir_stage("llvm", "the LLVM dialect", work, line, seconds), work
        tell("machine code")
        yield llvm_ir, None
        return compile_llvm_ir(llvm_ir.text, underway=underway, cpu=cpu)


def _translated(work: ir.Operation) -> Stage:
    started = time.perf_counter()
    llvm_ir = llvm.translate_module_to_llvmir(work)
    line = "mlir-translate --mlir-to-llvmir llvm.mlir -o llvmir.ll"
    return Stage("llvmir", "LLVM IR", "llvm", llvm_ir, line, time.perf_counter() - started)


def lower_llvm(work: ir.Operation, *, cpu: str = NATIVE) -> Stages:
    """On from the LLVM dialect."""
    check_lowered(work)
    stage = _translated(work)
    yield stage, None
    yield object_stage(compile_llvm_ir(stage.text, cpu=cpu))


def lower_to_llvm(
    module: ir.Operation, text: str, *, watch: Watch | None = None, images: Images | None = None
) -> str:
    """Bring the host's module, whose text is `text`, into the LLVM dialect; `images` are those of
    the kernels that it launches.

    Returns the line that does the same.
    """
    alone = HOST_ALONE.passes() if ON_DEVICE in text else ()
    run_passes(module, (*alone, *TO_LLVM), watch=watch)
    first = f"{our_line(alone, 'host.mlir', '-')} | " if alone else ""
    source = "-" if alone else "host.mlir"
    wanted = {
        "signed-offsets": may_run_backwards(text),
        "no-alias-to-llvm": NO_ALIAS in text,
        "independent-to-llvm": any(mark in text for mark in MARKS),
        "pool-allocations": "memref.alloc(" in text,
        "asserts-to-runtime": "cf.assert" in text,
    }
    given: Given = {name: {} if each else None for name, each in wanted.items()}
    embedded = None if images is None else {"images": images()}
    ours = LLVM_FACTS.passes({**given, "embed-kernels": embedded})
    if not ours:
        return first + mlir_opt_line(TO_LLVM, source, "llvm.mlir")
    run_passes(module, ours, watch=watch)
    line = first + mlir_opt_line(TO_LLVM, source, "-")
    return f"{line} | {our_line(ours, '-', 'llvm.mlir')}"
