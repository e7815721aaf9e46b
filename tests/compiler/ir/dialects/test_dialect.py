"""The dialect: stock MLIR reads it, accessors name its operands, the verifier says what IRDL
cannot.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mlir import ir

from avial_lab.compiler.frontends.mlir import parse_cell
from avial_lab.compiler.ir.dialects import IRDL_FILE
from avial_lab.compiler.ir.dialects.avial import (
    ConvergeOp,
    ReplicateOp,
    ScheduleOp,
    TargetOp,
    TaskOp,
)
from avial_lab.compiler.ir.dialects.verify import verify_program
from avial_lab.core.errors import VerifyError
from avial_lab.core.toolchain import tool

PROGRAM = """
avial.schedule %a: memref<20xi32>, %b: memref<4x4xf32>, %r: memref<f32> {
  %cpu = avial.target {arch = "x86_64", node = "node07"}
  %any = avial.target
  %first = avial.task %cpu, %b, %a {
    %k = arith.constant 3 : index
    %x = memref.load %a[%k]
    %y = memref.load %b[%k, %k]
    memref.store %y, %b[%k, %k]
  }
  %rounds = avial.converge until %r lt 1.0e-6 max 100 after %first {
    avial.task %any, %r { %x = memref.load %r[] memref.store %x, %r[] }
  }
  %all = avial.replicate %cpu, %a after %rounds, %first {
    scf.parallel %i = 0 to 20 { %x = memref.load %a[%i] memref.store %x, %a[%i] }
  }
}
"""


@pytest.fixture
def module(context: ir.Context) -> ir.Module:
    return parse_cell(PROGRAM, cell="test", context=context)


def body(module: ir.Module) -> list[ir.OpView]:
    schedule = next(
        op for op in module.body.operations[0].regions[0].blocks[0] if isinstance(op, ScheduleOp)
    )
    return [schedule, *schedule.body_ops]


def test_stock_mlir_opt_reads_and_prints_the_program(module: ir.Module) -> None:
    for text in (str(module), str(module.operation.get_asm(print_generic_op_form=True))):
        done = subprocess.run(
            [str(tool("mlir-opt")), f"--irdl-file={IRDL_FILE}", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == str(module).strip()


def test_stock_mlir_opt_refuses_what_is_no_task() -> None:
    text = '%t = "avial.task"() ({ omp.terminator }) {name = "t"} : () -> !avial.task_ref'
    done = subprocess.run(
        [str(tool("mlir-opt")), f"--irdl-file={IRDL_FILE}", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0


def test_operands_by_name(module: ir.Module) -> None:
    schedule, *ops = body(module)
    assert isinstance(schedule, ScheduleOp)
    assert [str(buffer.type) for buffer in schedule.buffers] == [
        "memref<20xi32>",
        "memref<4x4xf32>",
        "memref<f32>",
    ]
    found = {type(op): op for op in ops}
    task, converge, replicate = found[TaskOp], found[ConvergeOp], found[ReplicateOp]
    assert task.name == "first"
    assert task.target_op.arch == "x86_64"
    assert task.target_op.node == "node07"
    assert [str(value.type) for value in task.reads] == ["memref<4x4xf32>", "memref<20xi32>"]
    assert [str(value.type) for value in task.writes] == ["memref<4x4xf32>"]
    assert task.reads[0] == schedule.buffers[1]
    assert replicate.after_names == ("rounds", "first")
    assert (converge.max, converge.predicate, converge.threshold) == (100, "lt", 1.0e-6)
    assert converge.until == schedule.buffers[2]
    assert [type(op) for op in converge.body_ops if isinstance(op, TaskOp)] == [TaskOp]
    targets = [op for op in ops if isinstance(op, TargetOp)]
    assert [(t.name, t.arch, t.node) for t in targets] == [
        ("cpu", "x86_64", "node07"),
        ("any", "cpu", None),
    ]


GENERIC = """
func.func @main(%a: memref<4xi32>) {{
  %ref = builtin.unrealized_conversion_cast %a : memref<4xi32> to !avial.buffer_ref
  "avial.schedule"(%ref) ({{
    %cpu = "avial.target"() {{name = "cpu"}} : () -> !avial.target_ref
    {inside}
    omp.terminator
  }}) : (!avial.buffer_ref) -> ()
  {outside}
  return
}}
"""
TASK = (
    '"avial.task"(%cpu) ({ omp.terminator })'
    ' {name = "t", operandSegmentSizes = array<i32: 1, 0, 0, 0>}'
    " : (!avial.target_ref) -> !avial.task_ref"
)


@pytest.mark.parametrize(
    ("inside", "outside", "message"),
    [
        (f"%t = {TASK}", "", None),
        ("", "", "the program has no task"),
        (f"%t = {TASK} %u = {TASK}", "", "two tasks are named t"),
        (
            f"%t = {TASK}",
            '%x = "avial.target"() {name = "x"} : () -> !avial.target_ref',
            "avial.target is in func.func",
        ),
        (
            f'%x = "avial.target"() {{name = "x", rank = 1}} : () -> !avial.target_ref %t = {TASK}',
            "",
            None,
        ),
        (
            f'%x = "avial.target"() {{name = "x", rank = -1}} : () -> !avial.target_ref'
            f" %t = {TASK}",
            "",
            "rank of avial.target is -1 : i64, not the number of a rank",
        ),
        (
            f"%t = {TASK}".replace("{ omp.terminator }", "{ ub.unreachable }"),
            "",
            "does not end in omp.terminator",
        ),
        (
            f"%t = {TASK}".replace("{ omp.terminator }", "{ cf.br ^bb1 ^bb1: omp.terminator }"),
            "",
            "has several blocks",
        ),
        (
            "%x = builtin.unrealized_conversion_cast %cpu : !avial.target_ref to !avial.target_ref"
            f" %t = {TASK.replace('(%cpu)', '(%x)')}",
            "",
            "the first operand of avial.task is not an avial.target",
        ),
        (
            "%x = builtin.unrealized_conversion_cast to !avial.buffer_ref %t = "
            + TASK.replace("(%cpu)", "(%cpu, %x)")
            .replace("1, 0, 0, 0", "1, 1, 0, 0")
            .replace("(!avial.target_ref)", "(!avial.target_ref, !avial.buffer_ref)"),
            "",
            "lists a value that is not a memref",
        ),
    ],
)
def test_what_the_verifier_refuses(
    inside: str, outside: str, message: str | None, context: ir.Context
) -> None:
    with context:
        module = ir.Module.parse(GENERIC.format(inside=inside, outside=outside))
    if message is None:
        verify_program(module)
        return
    with pytest.raises(VerifyError, match=message):
        verify_program(module)


def test_the_irdl_file_is_shipped() -> None:
    assert Path(IRDL_FILE).read_text().startswith("// The avial dialect")
