"""A pass of ours that fails: the program runs without it, and it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from mlir import ir

import avial_lab
from avial_lab.compiler.passes.loops.order.interchange_loops import InterchangeLoops
from avial_lab.compiler.passes.tasks.distribute_loops import DistributeLoops
from avial_lab.compiler.requests import Build, Built
from avial_lab.compiler.worker.answers import answer
from avial_lab.core.errors import (
    AvialError,
    CompilerCrash,
    CompilerTimeout,
    FaultWarning,
    InternalError,
)
from avial_lab.program import cached_build
from avial_lab.program.program import Program

SUMS = """
func.func @sums(%A: memref<40x30xf64>, %s: memref<40xf64>) {
  affine.for %i = 0 to 40 {
    affine.for %j = 0 to 30 {
      %a = affine.load %A[%i, %j] : memref<40x30xf64>
      %b = affine.load %s[%i] : memref<40xf64>
      %c = arith.addf %a, %b : f64
      affine.store %c, %s[%i] : memref<40xf64>
    }
  }
  return
}
"""


@dataclass
class InThisProcess:
    """The compiler, where a test can break its passes; counts what it was asked."""

    asked: int = 0

    def ask(self, question: Build, **_: object) -> object:
        self.asked += 1
        answered = answer(question)
        if isinstance(answered, AvialError):
            raise answered
        return answered


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> InThisProcess:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = InThisProcess()
    monkeypatch.setattr(cached_build, "shared_compiler", lambda: here)
    return here


def compiled(text: str = SUMS) -> Program:
    arrays = {"A": np.random.default_rng(1).random((40, 30)), "s": np.zeros(40)}
    return avial_lab.compile(text, arrays=arrays, cell="In [4]")


def fails(_: object, module: ir.Operation) -> None:
    raise KeyError("loop3")


def breaks(_: object, module: ir.Operation) -> None:
    """IR that cannot be: a constant whose value is of another type."""
    with module.context, ir.Location.unknown(module.context):
        i32, i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
        block = module.regions[0].blocks[0]
        ir.Operation.create(
            "arith.constant",
            results=[i32],
            attributes={"value": ir.IntegerAttr.get(i64, 1)},
            ip=ir.InsertionPoint.at_block_begin(block),
        )


@pytest.mark.quick("fails-*")
@pytest.mark.parametrize(
    ("fault", "said"), [(fails, "KeyError: 'loop3'"), (breaks, "after the passes")]
)
def test_an_optional_pass_is_left_out(
    compiler: InThisProcess, monkeypatch: pytest.MonkeyPatch, fault: object, said: str
) -> None:
    monkeypatch.setattr(InterchangeLoops, "__call__", fault)
    with pytest.warns(FaultWarning, match="without optional loop passes") as told:
        program = compiled()
    assert said in str(told[0].message)
    assert told[0].filename == __file__
    assert said in str(program.explain())
    assert program.explain().reports[0].kind.value == "replicate"
    program.run(check=True)
    with pytest.warns(FaultWarning, match="a reproducer is in"):
        compiled()
    assert compiler.asked == 2, "the second time it comes from the disk, and is told again"


def test_a_pass_that_every_program_needs(
    compiler: InThisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DistributeLoops, "__call__", fails)
    with pytest.warns(FaultWarning, match="as one task on one rank") as told:
        program = compiled()
    assert compiler.asked == 3
    assert "a fault in avial_lab: KeyError: 'loop3'" in str(program.explain())
    program.run(check=True)
    where = Path(str(told[0].message).partition("a reproducer is in ")[2])
    assert (where / "program.avial").read_text() == SUMS
    assert (
        "DistributeLoops" in (where / "report.txt").read_text()
        or "KeyError" in (where / "report.txt").read_text()
    )


def test_what_fails_in_any_case_is_told_as_it_failed_first(
    compiler: InThisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(question: Build, **_: object) -> Built:
        compiler.asked += 1
        raise InternalError(f"fault {compiler.asked}")

    monkeypatch.setattr(compiler, "ask", always)
    with pytest.raises(InternalError, match="fault 1"):
        compiled()


@pytest.mark.parametrize(
    ("fault", "asked"), [(CompilerTimeout("too long"), 1), (CompilerCrash("died"), 3)]
)
def test_a_crash_is_a_fault_and_a_time_limit_is_not(
    compiler: InThisProcess, monkeypatch: pytest.MonkeyPatch, fault: AvialError, asked: int
) -> None:
    def always(question: Build, **_: object) -> Built:
        compiler.asked += 1
        raise fault

    monkeypatch.setattr(compiler, "ask", always)
    with pytest.raises(type(fault)):
        compiled()
    assert compiler.asked == asked


def test_what_a_crash_left_is_not_kept(
    compiler: InThisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker may have been killed: the next time the program is compiled as ever."""
    ask = compiler.ask

    def once(question: Build, **_: object) -> object:
        monkeypatch.setattr(compiler, "ask", ask)
        raise CompilerCrash(
            "the compiler's process was killed by SIGKILL", hint="a reproducer is in x; …"
        )

    monkeypatch.setattr(compiler, "ask", once)
    with pytest.warns(FaultWarning, match="SIGKILL.*a reproducer is in x$"):
        assert compiled().explain().fault
    assert not compiled().explain().fault


def test_on_the_command_line(tmp_path: Path) -> None:
    """A worker whose passes fail: the run ends well, and says so in one line."""
    (tmp_path / "sums.mlir").write_text(SUMS)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'avial_lab.compiler.worker.main' in sys.orig_argv:\n"
        "    from avial_lab.compiler.passes.loops.order.interchange_loops import InterchangeLoops\n"
        "    def fails(self, module): raise KeyError('loop3')\n"
        "    InterchangeLoops.__call__ = fails\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "avial_lab", "run", "sums.mlir", "-n", "1", "--check"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "FaultWarning: a fault in avial_lab (KeyError: 'loop3')" in done.stderr
