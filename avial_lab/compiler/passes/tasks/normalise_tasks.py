"""The bodies of tasks in the form that the loop passes work on.

Module of task functions and the entry that calls them -> the same, each body as a plain function's
loops are: calls written out, named operations as loops, loops raised to affine, nests distributed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mlir import ir, passmanager

from avial_lab.compiler.analysis.accesses.no_alias import has_no_aliases
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.catalogue import PLAIN
from avial_lab.compiler.codegen.outline_tasks import is_gpu_task
from avial_lab.compiler.ir.attributes import AS_WRITTEN, SHARED
from avial_lab.compiler.ir.effects import symbols_in
from avial_lab.compiler.ir.operations import (
    LOOPS,
    constant_of,
    functions_in,
    operations_in,
    operations_named,
)
from avial_lab.compiler.ir.program import symbol_of
from avial_lab.compiler.ir.remarks import add_remark
from avial_lab.compiler.passes.loops.facts.no_alias import NoAlias
from avial_lab.compiler.passes.tasks.control_level import CONDITIONS
from avial_lab.compiler.upstream import spelled
from avial_lab.core.errors import AvialError, InternalError
from avial_lab.core.regions import iterations

NAME = "normalise-tasks"


@cache
def _steps() -> tuple[Any, ...]:
    """What a plain function goes through before its nests become phases; a string is one of
    MLIR's.
    """
    return PLAIN.passes({"check-accesses": None, "drop-in": None})


LEAST = 256
"""Iterations from which on a body is worth the passes: one of fewer takes less than a µs as it is
written, and a program of thousands of such tasks is to be compiled in seconds.
"""


@dataclass(frozen=True)
class NormaliseTasks:
    """Bring every task's function into the normal form of loops, each in a module of its own.

    before:  func.func private @t(%A, %B, %C) { linalg.matmul ins(%A, %B) outs(%C) }
    after:   func.func private @t(%A, %B, %C) { affine.for … { affine.for … { affine.for … } } }

    Left as they are written: bodies of fewer than `least` iterations, but for a GPU's; kernels of a
    GPU, bodies whose arrays may share memory, and bodies that have no such form, which say why.
    """

    least: int = LEAST

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            NoAlias()(module)
            for function in [f for f in functions_in(module) if AS_WRITTEN in f.attributes]:
                del function.attributes[AS_WRITTEN]
                if has_no_aliases(function) and _may_be_loops(function, self.least):
                    _normalise(module, function)
                else:
                    function.attributes[SHARED] = ir.UnitAttr.get()

    def __str__(self) -> str:
        return NAME if self.least == LEAST else f"{NAME}{{least={self.least}}}"


def _may_be_loops(function: ir.Operation, least: int) -> bool:
    """Whether it is worth a try: no kernel, no values of tensors, and enough iterations."""
    if any(op.name.startswith(_NO_LOOPS) for op in operations_in(function)):
        return False
    if is_gpu_task(function):
        return True  # whose threads are looked for among affine loops
    count = sum(_iterations(block) for block in function.regions[0].blocks)
    return count >= least


_NO_LOOPS = ("gpu.", "tensor.", "bufferization.", "tosa.")


def _iterations(block: ir.Block) -> float:
    """Of the innermost loops of `block`; infinite where nobody knows."""
    return sum(_iterations_of(view.operation) for view in block.operations)


def _iterations_of(op: ir.Operation) -> float:
    if op.name in _AS_LARGE_AS_ARRAYS or op.name.startswith("linalg."):
        return math.inf
    inside = sum(_iterations(block) for region in op.regions for block in region.blocks)
    if op.name in LOOPS:
        return _trips(op) * max(inside, 1)
    return math.inf if len(op.regions) and op.name not in CONDITIONS else inside


_AS_LARGE_AS_ARRAYS = ("memref.copy", "func.call", "cf.br", "cf.cond_br", "cf.switch")


def _trips(loop: ir.Operation) -> float:
    """How often it goes round in all its dimensions, where its text says so."""
    if loop.name.startswith("affine."):
        return _affine_trips(loop) if loop.name == "affine.for" else math.inf
    dimensions = len(loop.regions[0].blocks[0].arguments) if loop.name == "scf.parallel" else 1
    numbers = [constant_of(value) for value in list(loop.operands)[: 3 * dimensions]]
    known = [number for number in numbers if number is not None]
    if len(known) < 3 * dimensions or min(known[2 * dimensions :]) < 1:
        return math.inf
    lows, highs, steps = (known[k * dimensions : (k + 1) * dimensions] for k in range(3))
    return math.prod(iterations(*ends) for ends in zip(lows, highs, steps, strict=True))


def _affine_trips(loop: ir.Operation) -> float:
    lows, highs = ([end for end in ends if end is not None] for ends in known_ends(loop))
    if not lows or not highs:
        return math.inf
    return iterations(max(lows), min(highs), ir.IntegerAttr(loop.attributes["step"]).value)


def _normalise(module: ir.Operation, function: ir.Operation) -> None:
    """Put the normal form of `function` in its place, if it has one."""
    alone = _module_of(module, function)
    try:
        _run(alone.operation)
    except InternalError:
        raise
    except AvialError as error:
        add_remark(function, NAME, f"left as written: {error.message}")
        function.attributes[SHARED] = ir.UnitAttr.get()
        return
    made = next(f for f in functions_in(alone.operation) if symbol_of(f) == symbol_of(function))
    _take_over(module, function, made, alone.operation)


def _run(alone: ir.Operation) -> None:
    for step in _steps():
        try:
            if isinstance(step, str):
                manager = passmanager.PassManager("builtin.module")
                manager.add(spelled(step))
                manager.run(alone)
            else:
                step(alone)
        except ir.MLIRError as error:
            said = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
            raise InternalError(f"{said} in the pass {step} on a task's body\n{error}") from error


def _module_of(module: ir.Operation, function: ir.Operation) -> ir.Module:
    """A module of the function, as its program, and of what it calls and the globals it uses."""
    with ir.Location.unknown(module.context):
        alone = ir.Module.create()
    for name in module.attributes:
        alone.operation.attributes[name] = module.attributes[name]
    with ir.InsertionPoint(alone.body):
        for op in _needed(module, function):
            copy = op.clone().operation
            if op == function:
                copy.attributes["sym_visibility"] = ir.StringAttr.get("public")
    return alone


def _needed(module: ir.Operation, function: ir.Operation) -> Sequence[ir.Operation]:
    """The function and every function and global that it uses, directly or not, in order."""
    symbols = {
        symbol_of(op): op
        for op in (view.operation for view in module.regions[0].blocks[0].operations)
        if "sym_name" in op.attributes
    }
    found = {symbol_of(function): function}
    waiting = [function]
    while waiting:
        for name in _symbols_used(waiting.pop()):
            if name in symbols and name not in found:
                found[name] = symbols[name]
                waiting.append(symbols[name])
    return list(found.values())


def _symbols_used(op: ir.Operation) -> Iterator[str]:
    for user in operations_named(op, "func.call", "func.constant", "memref.get_global"):
        for key in ("callee", "value", "name"):
            if key in user.attributes and isinstance(user.attributes[key], ir.FlatSymbolRefAttr):
                yield ir.FlatSymbolRefAttr(user.attributes[key]).value


def _take_over(
    module: ir.Operation, function: ir.Operation, made: ir.Operation, alone: ir.Operation
) -> None:
    """`made` stands where `function` stood, with the globals that its passes have added."""
    taken = symbols_in(module)
    copied = set(map(symbol_of, _needed(module, function)))
    for op in [view.operation for view in alone.regions[0].blocks[0].operations]:
        if op == made or "sym_name" not in op.attributes or symbol_of(op) in copied:
            continue
        while symbol_of(op) in taken:  # of another task's body, with other values
            _rename(op, f"{symbol_of(op)}_", made)
        taken.add(symbol_of(op))
        op.move_before(function)
    made.attributes["sym_visibility"] = function.attributes["sym_visibility"]
    made.move_before(function)
    function.erase()


def _rename(symbol: ir.Operation, name: str, user: ir.Operation) -> None:
    """The same global by another name, where `user` uses it too."""
    old = symbol_of(symbol)
    symbol.attributes["sym_name"] = ir.StringAttr.get(name)
    for op in operations_named(user, "memref.get_global"):
        if ir.FlatSymbolRefAttr(op.attributes["name"]).value == old:
            op.attributes["name"] = ir.FlatSymbolRefAttr.get(name)
