"""Drivers: functions that only say which of their parts run, and on what.

Large functions with parts that threads share -> the same, where what is not shared stands in
functions too, and LLVM takes what is left as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func

from avial_lab.compiler.analysis.parallelism.marked_loops import nearest_loops
from avial_lab.compiler.codegen.loops.outline_loop import outline
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.llvm_attributes import NOT_INLINED, NOT_OPTIMISED, tell_llvm
from avial_lab.compiler.ir.operations import functions_in, operations_in, operations_named
from avial_lab.compiler.ir.remarks import add_remark

NAME = "outline-drivers"

LARGE = 300
"""As many operations take LLVM 40 ms to optimise, and run once for a block or a step of one, where
those of smaller drivers may run for a row.
"""

ALONE = ".alone"
"""After a function's name, in those of the functions with loops that one thread goes through."""


@dataclass(frozen=True)
class OutlineDrivers:
    """Outline the loops beside those that threads share, and have the rest not optimised.

    before:  func.func @S1(%A) { 200 bounds  affine.for %i { … }  omp.parallel { call @S1.part } }
    after:   func.func private @S1.alone(%A) { affine.for %i { … } }
             func.func @S1(%A) attributes {passthrough = ["noinline", "optnone"]} {
               200 bounds  call @S1.alone(%A)  omp.parallel { call @S1.part } }

    `least`: operations of a driver, without those loops, that is worth it.
    """

    least: int = LARGE

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in filter(_is_shared, functions_in(module)):
                loops = list(_alone(function))
                if _size(function) - sum(map(_size, loops)) >= self.least:
                    _split(function, loops)

    def __str__(self) -> str:
        return NAME if self.least == LARGE else f"{NAME}{{least={self.least}}}"


def _alone(op: ir.Operation) -> Iterator[ir.Operation]:
    """The outermost loops of which threads share nothing."""
    for loop in nearest_loops(op):
        if _is_shared(loop):
            yield from _alone(loop)
        else:
            yield loop


def _is_shared(op: ir.Operation) -> bool:
    return bool(operations_named(op, "omp.parallel"))


def _size(op: ir.Operation) -> int:
    return sum(1 for _ in operations_in(op))


def _split(function: ir.Operation, loops: list[ir.Operation]) -> None:
    name = text_attribute(function, "sym_name")
    for number, loop in enumerate(loops):
        symbol = f"{name}{ALONE}{number or ''}"
        arguments = outline(loop, function, symbol, (), lambda copy, _: copy)
        with ir.InsertionPoint(loop), loop.location:
            call = func.CallOp([result.type for result in loop.results], symbol, arguments)
        for before, after in zip(loop.results, call.results, strict=True):
            before.replace_all_uses_with(after)
        loop.erase()
    tell_llvm(function, NOT_INLINED, NOT_OPTIMISED)
    add_remark(
        function,
        NAME,
        "code that only calls other functions is compiled without optimisation; "
        f"loops that run on one thread, outlined from it: {len(loops)}",
    )
