"""The line that a stage or a pass shows, run on the file before it, makes what is shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mlir import ir

import avial_lab
from avial_lab.artifact.stages import PassStep, Stage
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.lowering import opt
from avial_lab.compiler.lowering.predicted_messages import without_messages
from avial_lab.compiler.passes.llvm.asserts_to_runtime import OWNED, STEPS
from avial_lab.core.toolchain import tool
from avial_lab.lessons.demo import deck_text
from tests.compiler.lowering.test_lower import BY_HAND

SUFFIX = {"mlir": "mlir", "llvm": "ll", "asm": "s", "ptx": "ptx"}
PROGRAMS = ["deck", "by hand", "gemm", "cholesky", "jacobi-2d", "correlation", "spmv", "prefix-sum"]
"""Tasks with one for a GPU, loops around tasks, and kernels: products, solvers, stencils,
statistics, sparse ones, scans.
"""


def program_called(name: str) -> avial_lab.Program:
    if name == "deck":
        arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
        return avial_lab.compile(deck_text(), arrays=arrays, ranks=2)
    if name == "by hand":
        arrays = {"a": np.ones(30), "b": np.ones(30), "e": np.zeros(())}
        return avial_lab.compile(BY_HAND, arrays=arrays, ranks=3, gpus=1, division="cyclic(4)")
    chosen = kernel_program(name, size="MINI")
    return avial_lab.compile(
        chosen.text, arrays=chosen.arrays, scalars=chosen.scalars, function=chosen.function
    )


def run(line: str, folder: Path) -> None:
    """As a shell does; a line of our passes alone in this process, which is sooner ready."""
    words = shlex.split(line)
    if words[:3] == ["python", "-m", "avial_lab.compiler.lowering.opt"] and "|" not in words:
        result = words.index("-o") + 1
        words[result] = str(folder / words[result])
        words[result - 2] = str(folder / words[result - 2])
        before = Path.cwd()
        os.chdir(folder)
        try:
            assert opt.main(words[3:]) == 0, line
        finally:
            os.chdir(before)
        return
    tools = folder / "bin"
    if not tools.exists():
        tools.mkdir()
        for name in ("mlir-opt", "mlir-translate", "opt", "llc"):
            (tools / name).symlink_to(tool(name))
        (tools / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        (tools / "python").chmod(0o755)
    paths = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=os.environ | paths,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"


def plain(text: str) -> str:
    """MLIR without what comes from places: the names of values, which a file of MLIR's own tools
    does not carry, and the lines that reasons and assertions name.
    """
    context = ir.Context()
    register(context)
    module = ir.Module.parse(text, context)
    for call in operations_named(module.operation, "llvm.call"):
        if _callee(call) in (*OWNED.values(), *STEPS.values()):
            for number in list(call.operands)[1:]:
                number.owner.attributes["value"] = ir.IntegerAttr.get(number.type, 0)
    return re.sub(r"\bline \d+", "line …", str(module))


def _callee(call: ir.Operation) -> str:
    return (
        ir.FlatSymbolRefAttr(call.attributes["callee"]).value if "callee" in call.attributes else ""
    )


def check_stage(stage: Stage, folder: Path) -> None:
    path = folder / f"{stage.name}.{SUFFIX[stage.language]}"
    path.unlink()
    run(stage.command, folder)
    made = path.read_text()
    path.write_text(stage.text)
    if stage.language != "mlir":
        assert made == stage.text
    else:
        assert plain(made) == plain(stage.text)


@pytest.mark.quick("deck", "jacobi-2d")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_stages_command_makes_it(name: str, tmp_path: Path) -> None:
    stages = program_called(name).stages
    for stage in stages.values():
        (tmp_path / f"{stage.name}.{SUFFIX[stage.language]}").write_text(stage.text)
    first, *rest = stages.values()
    assert not first.command
    for stage in rest:
        check_stage(stage, tmp_path)


@pytest.mark.parametrize("name", ["deck", "gemm", "jacobi-2d"])
def test_our_own_lines_give_the_very_text(name: str, tmp_path: Path) -> None:
    """With the user's names: they are read from the file."""
    stages = program_called(name).stages
    first, *rest = stages
    for stage in (stages[other] for other in rest):
        words = shlex.split(stage.command)
        if words[:3] != ["python", "-m", "avial_lab.compiler.lowering.opt"] or "|" in words:
            continue
        source = words[words.index("-o") - 1].removesuffix(".mlir")
        if source == first:  # what a person wrote has names that MLIR's text of it has not
            continue
        (tmp_path / f"{source}.mlir").write_text(stages[source].text)
        run(stage.command, tmp_path)
        # What messages are foreseen for it is told in comments.
        assert (tmp_path / f"{stage.name}.mlir").read_text() == without_messages(stage.text)


@pytest.mark.quick("deck")
@pytest.mark.parametrize("name", ["deck", "by hand", "jacobi-2d"])
def test_a_passs_command_makes_the_text_after_it(name: str, tmp_path: Path) -> None:
    program = program_called(name)
    for stage in program.stages.values():
        (tmp_path / f"{stage.name}.{SUFFIX[stage.language]}").write_text(stage.text)
    for inside in program.inside.stages:
        text = ""
        for step in inside.passes:
            assert step.command, (inside.name, step.name)
            text = check_pass(step, text, tmp_path)


def check_pass(step: PassStep, before: str, folder: Path) -> str:
    """The text after it, for the next one, which may change nothing."""
    result = folder / shlex.split(step.command)[-1]
    run(step.command, folder)
    made = result.read_text()
    text = step.text or before
    if text:
        assert _comparable(made, result) == _comparable(text, result), step.name
        result.write_text(text)
    return text


def _comparable(text: str, path: Path) -> str:
    return plain(text) if path.suffix == ".mlir" else text
