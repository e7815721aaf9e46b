"""Functions that are kernels: what they are called, and what is said of those that are none.

Module whose calls are marked for devices -> the functions that they call; function -> a symbol for
its next kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlir import ir

from avial_lab.compiler.codegen.outline_tasks import ARCH
from avial_lab.compiler.ir.attributes import CHIP, LAUNCH, NO_KERNEL, OF_TASK
from avial_lab.compiler.ir.effects import symbols_in, text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.remarks import add_remark
from avial_lab.machine.devices.cuda import OLDEST_CHIP, capability, chip_of, first_chip_with

NUMBERS = ("block_x", "block_y", "block_z", "thread_x", "thread_y", "thread_z")
"""The last arguments of a kernel."""


def calls_on_devices(module: ir.Operation, *, having: str = LAUNCH) -> set[str]:
    """The names of the functions that devices are to run: of calls with that attribute."""
    return {
        ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        for op in operations_in(module)
        if LAUNCH in op.attributes and having in op.attributes
    }


def kernel_symbol(module: ir.Operation, function: ir.Operation) -> str:
    """Of letters and digits alone, as PTX has names."""
    stem = re.sub(r"\W", "_", text_attribute(function, "sym_name"), flags=re.ASCII)
    known = symbols_in(module)
    name, k = f"{stem}_kernel", 0
    while name in known:
        name, k = f"{stem}_kernel_{k}", k + 1
    return name


def name_chip(
    kernel: ir.Operation, function: ir.Operation, does: Iterable[ir.Operation] = ()
) -> None:
    """What the task asks for whose kernel it is, or the first that has what it does; nothing where
    any GPU will do.
    """
    chip = chip_of(text_attribute(function, ARCH)) if ARCH in function.attributes else None
    needed = max((first_chip_with(op.name) for op in does), key=capability, default=OLDEST_CHIP)
    if capability(needed) > capability(OLDEST_CHIP) and (
        chip is None or capability(chip) <= capability(needed)
    ):
        chip = needed
    if chip is not None:
        kernel.attributes[CHIP] = ir.StringAttr.get(chip)


def refuse_kernel(function: ir.Operation, op: ir.Operation, why: str, *, who: str) -> None:
    """Say on the function that it has no kernel: `why`, at `op`. An emulated device calls it."""
    span = span_of(op.location)
    where = f" (line {span.line})" if span is not None else ""
    add_remark(function, who, f"no kernel: {why}{where}")
    named = OF_TASK if OF_TASK in function.attributes else "sym_name"
    said = f"{text_attribute(function, named)} has no kernel for a GPU: {why}{where}"
    function.attributes[NO_KERNEL] = ir.StringAttr.get(said)
