"""What no GPU of the target can launch is refused where it is written.

Module -> nothing, or VerifyError at the launch. Sizes that are known only when it runs are looked
at then, by the device (`runtime/native/devices`).
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import nbytes_of, operations_in, operations_named
from avial_lab.core.errors import VerifyError
from avial_lab.core.words import format_bytes
from avial_lab.machine.devices.cuda import (
    MOST_BLOCKS,
    MOST_THREADS,
    MOST_THREADS_OF,
    first_chip_with,
    has,
    most_shared_bytes,
)

_DIMENSIONS = "xyz"


def check_launches(module: ir.Operation) -> None:
    """VerifyError at a block of too many threads, or of none, at a grid that is too large, and at
    more shared memory than a block of the target has.
    """
    for launch in operations_named(module, "gpu.launch"):
        first = ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"])[0]
        sizes = [_known(value) for value in list(launch.operands)[first : first + 6]]
        _check_block(launch, sizes[3:])
        for dimension, blocks, most in zip(_DIMENSIONS, sizes[:3], MOST_BLOCKS, strict=True):
            if blocks is not None and not 0 <= blocks <= most:
                raise VerifyError(
                    f"a grid of {blocks:,} blocks in {dimension}; at most {most:,} are possible",
                    span=span_of(launch.location),
                    hint="let each thread do several elements, in a loop",
                )
        _check_shared(launch)
        _check_operations(launch)


def _check_operations(launch: ir.Operation) -> None:
    arch = _arch_of(launch)
    for op in operations_in(launch):
        first = first_chip_with(op.name)
        if not has(arch, first):
            raise VerifyError(
                f"{op.name} is of {first}, and the target is {arch}",
                span=span_of(op.location),
                hint=f'write avial.target {{arch = "{first}"}}, or "gpu" for any that has it',
            )


def _check_block(launch: ir.Operation, threads: list[int | None]) -> None:
    hint = f"use blocks of at most {MOST_THREADS:,} threads, and more of them"
    total = 1
    for dimension, number, most in zip(_DIMENSIONS, threads, MOST_THREADS_OF, strict=True):
        if number is None:
            continue
        total *= number
        if not 1 <= number <= most:
            raise VerifyError(
                f"a block of {number:,} threads in {dimension}; from 1 to {most:,} are possible",
                span=span_of(launch.location),
                hint=hint,
            )
    if total > MOST_THREADS:
        raise VerifyError(
            f"a block of {total:,} threads; at most {MOST_THREADS:,} are possible",
            span=span_of(launch.location),
            hint=hint,
        )


def _check_shared(launch: ir.Operation) -> None:
    number = 0
    if "workgroup_attributions" in launch.attributes:
        number = ir.IntegerAttr(launch.attributes["workgroup_attributions"]).value
    kinds = [argument.type for argument in list(launch.regions[0].blocks[0].arguments)[12:]]
    shared = [ir.MemRefType(kind) for kind in kinds[:number]]
    if not all(kind.has_static_shape for kind in shared):
        return
    nbytes = sum(nbytes_of(kind) for kind in shared)
    arch = _arch_of(launch)
    most = most_shared_bytes(arch)
    if nbytes > most:
        raise VerifyError(
            f"{format_bytes(nbytes)} of shared memory in a block; {arch} has {format_bytes(most)}",
            span=span_of(launch.location),
            hint="use smaller tiles",
        )


def _known(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.operation.attributes["value"]).value


def _arch_of(launch: ir.Operation) -> str:
    """What the task around asks for; any GPU where there is none."""
    around = launch.parent
    while around is not None and around.operation.name not in ("avial.task", "avial.replicate"):
        around = around.operation.parent
    if around is None:
        return "gpu"
    target = around.operation.operands[0].owner
    if "arch" not in target.attributes:
        return "gpu"
    return ir.StringAttr(target.attributes["arch"]).value
