"""Loops in the order in which the innermost walks memory by single elements.

Functions of loops -> the same values, every element's in the same order, computed by loops that the
machine's caches and vectors like better.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests
from avial_lab.compiler.analysis.patterns.interchange import better_order, loops_under
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.instances import shorter
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.units import Immovable, Unit, units_of
from avial_lab.compiler.codegen.loops.isl_ast import AstLoops
from avial_lab.compiler.ir.attributes import ORDERED
from avial_lab.compiler.ir.nesting import FORS
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name, phase_of
from avial_lab.machine.cpu import Cpu, this_cpu

NAME = "interchange-loops"


@dataclass(frozen=True)
class InterchangeLoops:
    """Exchange loops, and split those whose statements want different ones innermost.

    before:  affine.for %i { affine.for %j { affine.for %k { C[i, j] += A[i, k] * B[k, j] } } }
    after:   affine.for %i { affine.for %k { affine.for %j { C[i, j] += A[i, k] * B[k, j] } } }

    before:  affine.for %t { affine.for %i { affine.for %j { y[i, j] += x[t, i, j] } } }
    after:   affine.for %i { affine.for %t { affine.for %j { y[i, j] += x[t, i, j] } } }

    The second where y does not stay in the nearest cache of `cpu`. Where not everything in a nest
    is known exactly, the loops inside are tried one by one.
    """

    cpu: Cpu = field(default_factory=this_cpu, repr=False)

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            # All of them first: a walk must not meet loops that are gone.
            for function in functions_without_aliases(module):
                _order_in(function, self.cpu.l1_bytes // 2)

    def __str__(self) -> str:
        return NAME


def _order_in(op: ir.Operation, near: int) -> None:
    """The nests in the body of `op`."""
    for loop in list(free_nests(op)):
        if loop.name not in FORS or not _order(loop, near):
            _order_in(loop, near)


def _order(loop: ir.Operation, near: int) -> bool:
    """Whether nothing is left to do in the nest: it is good as it was, or has been rewritten."""
    if not _has_loop(loop) or ORDERED in loop.attributes:
        return True
    phase = phase_of(loop)
    try:
        scop = read_scop(loop)
        units = units_of(scop)
        times = better_order(scop, units, near)
        if times is None:
            names = listed(dict.fromkeys(each.name for each in scop.loops))
            lines = [f"no other order of {names} has better strides"]
        else:
            lines = _new_orders(units, times)
            _write(loop, scop, units, times)
    except Immovable as reason:
        add_remark(loop, NAME, f"the nest of {loop_name(loop)} is left unchanged: {reason}")
        return False
    for line in lines:
        add_remark(phase, NAME, line)
    return True


def _new_orders(units: tuple[Unit, ...], times: isl.UnionMap) -> list[str]:
    """For each unit whose loops are to stand in another order, both."""
    then = loops_under(times)
    lines: list[str] = []
    for unit in units:
        before = [loop.name for loop in unit.loops]
        dims = dict.fromkeys(then.get(unit.name, ()))  # a loop of one iteration repeats another's
        after = ["+".join(before[k] for k in sorted(each)) for each in dims]
        if after and after != before:
            stored = next(a for s in unit.statements for a in s.accesses if a.writes)
            lines.append(f"loops of {stored}: {' '.join(after)} instead of {' '.join(before)}")
    return lines or ["loops distributed, so that each statement has its best loop innermost"]


def _has_loop(loop: ir.Operation) -> bool:
    return bool(operations_named(loop, *FORS))


def _write(loop: ir.Operation, scop: Scop, units: tuple[Unit, ...], times: isl.UnionMap) -> None:
    """Put the loops that run at these times before `loop`, and take that away."""
    build = isl.AstBuild.from_context(scop.context)
    ast = limited(lambda: build.node_from_schedule_map(shorter(times)[0]), lambda: None)
    if ast is None:
        raise Immovable("isl gave up generating the loops")
    values = {name: value for name, value in scop.parameters.items() if value is not None}
    before = [view.operation for view in loop.block.operations]
    try:
        with loop.location, ir.InsertionPoint(loop):
            AstLoops(loop, {unit.name: unit for unit in units}, values).write(ast)
    except Immovable:
        for op in reversed([view.operation for view in loop.block.operations]):
            if op not in before:
                op.erase()
        raise
    loop.erase()
