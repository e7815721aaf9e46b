"""Runs passes one after the other, and verifies what each leaves."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from mlir import ir, passmanager

from avial_lab.artifact.binary import MachineCode
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.upstream import spelled
from avial_lab.core.errors import AvialError, InternalError, PassError, VerifyError
from avial_lab.core.underway import tell


class Pass(Protocol):
    """IR in, IR out; its text is its name and options."""

    def __call__(self, module: ir.Operation) -> None: ...

    def __str__(self) -> str: ...


Watch = Callable[[Pass | str, ir.Operation, float], None]
"""Told of every pass after it ran: the pass, the module, the seconds it took."""

Stages = Iterator[tuple[Stage, ir.Operation | MachineCode | None]]
"""Each stage with what it is the text of: the live module, changed once the next is asked for, or
the machine code.
"""

_SHAPES = re.compile(r"'(?:linalg|memref\.copy|memref\.cast)\b.*\b(?:shape|dimension|incompatible)")

_STRUCTURED = ("'linalg.", "'tensor.", "'tosa.")


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
    tell(f"pass {str(item).partition('{')[0]}")
    try:
        item(module)
    except ir.MLIRError as error:
        if _is_of_shapes(error):
            raise
        raise InternalError(f"{_said(error)} in the pass {item}\n{error}") from error


def _verify(module: ir.Operation, passes: Sequence[Pass | str]) -> None:
    """InternalError where they left IR that cannot be."""
    try:
        module.verify()
    except ir.MLIRError as error:
        if _said(error).startswith(_STRUCTURED) or _is_of_shapes(error):
            raise  # shapes that do not fit, which nobody sees in an operation with a name
        names = ",".join(map(str, passes))
        raise InternalError(f"{_said(error)} after the passes {names}\n{error}") from None


def _is_of_shapes(error: ir.MLIRError) -> bool:
    """Whether arrays of these sizes do not go together, which is the caller's to mend."""
    return bool(_SHAPES.match(_said(error)))


def _said(error: ir.MLIRError) -> str:
    return error.error_diagnostics[0].message if error.error_diagnostics else str(error)


def _run_mlirs(module: ir.Operation, names: Sequence[str]) -> None:
    """Ours run outside of their manager: within, nothing may load a dialect or run other passes."""
    if not names:
        return
    tell(f"pass {names[0]}" if len(names) == 1 else f"passes {names[0]} to {names[-1]}")
    manager = passmanager.PassManager("builtin.module")
    manager.enable_verifier(enable=False)  # some 4 ms a pass for a big module
    for name in names:
        manager.add(spelled(name))
    manager.run(module)


def _pass_error(error: ir.MLIRError, passes: Sequence[Pass | str]) -> AvialError:
    names = ",".join(map(str, passes))
    if not error.error_diagnostics:
        return InternalError(f"{error} in the passes {names}")
    first = error.error_diagnostics[0]
    if _is_of_shapes(error):
        return VerifyError(
            f"sizes that do not fit: {first.message}",
            span=span_of(first.location),
            hint="give arrays whose sizes agree",
        )
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
        raise PassError(f"{op.name} could not be lowered", span=span_of(op.location))
