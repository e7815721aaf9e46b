"""The reference shares no rewrite with the run: a pass that is broken on purpose, wherever it is
run, is found by `--check`.

A broken pass makes a sum of the first difference that it leaves. Those passes that run
and reference have in common would deceive both; they are listed here, each with why it may.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from mlir import ir

import avial_lab
from avial_lab.compiler import catalogue
from avial_lab.compiler.ir.operations import operations_in, replaced
from avial_lab.compiler.lowering import run
from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.pass_rows import Pipeline, Row
from avial_lab.compiler.passes.tasks import normalise
from avial_lab.compiler.worker.answers import answer
from avial_lab.program import cached_build
from avial_lab.program.compiler_client import Compiler

COMMON = {
    "strict-arithmetic": "which arithmetic it is: a promise, not a way to compute it",
    "contract-fma": "which products are rounded with their sums; tested against exact fractions",
    "select-math": "which functions are code of ours",
    "expand-math": "what those functions are; tested against many digits",
    "converge-to-loops": "what a converge is",
    "emulate-gpu": "what a launch is, on a machine without a GPU",
    "launch-on-devices": "nothing in the reference, where no call is a launch",
    "lower-affine": "of vectors and parallel reductions alone, in the reference",
    "reset-globals": "with which values a run begins",
    "copies-to-loops": "what memref.copy is",
    "bools-to-bytes": "how i1 lies in memory",
    "expm1-to-libm": "which function of libm it is",
    "ieee-min-max": "which operation of LLVM's it is; another one in the reference",
    "free-allocations": "memory is given back",
    "mpi-to-llvm": "marks in the journal, and how the entry takes its arrays",
    **dict.fromkeys(
        [row.name for row in catalogue.TO_LLVM_DIALECT.rows], "a plain conversion to LLVM's dialect"
    ),
}

RUN = (catalogue.EXACT, catalogue.ARITHMETIC, catalogue.PLAIN, catalogue.NORMALISE,
       catalogue.WHOLE, catalogue.WRITTEN, catalogue.PLACE_TASKS, catalogue.PLACE_PHASES,
       catalogue.GROUP_PHASES, catalogue.TASKS_TO_MPI, catalogue.PHASES_TO_MPI, catalogue.LOOPS,
       catalogue.HOST, catalogue.TO_LLVM_DIALECT, catalogue.LLVM_FACTS)  # fmt: skip
REFERENCE = (catalogue.ARITHMETIC, catalogue.SEQUENTIAL, catalogue.DEFINITIONS,
             catalogue.TO_LLVM_DIALECT)  # fmt: skip


def rows_of(pipelines: Iterable[Pipeline]) -> dict[str, Row]:
    return {row.name: row for pipeline in pipelines for row in pipeline.rows}


def test_what_run_and_reference_have_in_common_is_listed() -> None:
    assert rows_of(RUN).keys() & rows_of(REFERENCE).keys() == COMMON.keys()


def test_the_reference_runs_none_of_mlirs_greedy_rewrites() -> None:
    rewriting = {"canonicalize", "cse", "mem2reg", "sccp", "one-shot-bufferize"}
    assert not rewriting & rows_of(REFERENCE).keys()
    assert not any("canonicalize" in step or "cse" in step for step in TO_LLVM)


# -- passes that are broken ------------------------------------------------------------------------

PLAIN = """
func.func @f(%a: memref<40xf32>, %b: memref<40xf32>, %c: memref<40xf32>) {
  affine.for %i = 0 to 40 {
    %x = affine.load %a[%i] : memref<40xf32>
    %y = affine.load %b[%i] : memref<40xf32>
    %d = arith.subf %x, %y : f32
    affine.store %d, %c[%i] : memref<40xf32>
  }
  return
}
"""

TASKS = """
avial.schedule %a, %b, %c {
  %cpu = avial.target {arch = "cpu"}
  %t = avial.task %cpu, %a, %b, %c {
    affine.for %i = 0 to 40 {
      %x = affine.load %a[%i] : memref<40xf32>
      %y = affine.load %b[%i] : memref<40xf32>
      %d = arith.subf %x, %y : f32
      affine.store %d, %c[%i] : memref<40xf32>
    }
  }
}
"""

TENSORS = """
func.func @f(%a: tensor<40xf32>, %b: tensor<40xf32>) -> tensor<40xf32> {
  %e = tensor.empty() : tensor<40xf32>
  %c = linalg.sub ins(%a, %b : tensor<40xf32>, tensor<40xf32>)
                  outs(%e : tensor<40xf32>) -> tensor<40xf32>
  return %c : tensor<40xf32>
}
"""

PROGRAMS = {"plain": PLAIN, "tasks": TASKS, "tensors": TENSORS}

UPSTREAM = {
    "lift-cf-to-scf": "plain",
    "canonicalize": "plain",
    "cse": "plain",
    "one-shot-bufferize": "plain",
    "linalg-generalize-named-ops": "plain",
    "scf-forall-to-parallel": "plain",
    "mem2reg": "plain",
    "convert-linalg-to-loops": "plain",
}
OURS = {
    "index-to-arith": "plain",
    "fold-index-casts": "plain",
    "inline-calls": "plain",
    "raise-to-affine": "plain",
    "iter-args-to-memory": "plain",
    "drop-in": "plain",
    "exact-affine": "plain",
    "place-phases": "plain",
    "fuse-phases": "plain",
    "replicate-to-mpi": "plain",
    "linalg-to-loops": "tensors",
    "tasks-to-mpi": "tasks",
    "normalise-tasks": "tasks",
    "fuse-loops": "tasks",
    "interchange-loops": "plain",
    "mark-parallel": "plain",
    "thread-loops": "plain",
    "align-vectors": "plain",
}


def spoil(module: ir.Operation) -> None:
    """(Not by an exchange of operands: a pass that is run twice would take it back.)"""
    for op in operations_in(module):
        if op.name == "arith.subf":
            with module.context:
                replaced(op, "arith.addf", list(op.operands), {})
            return


def break_mlirs(name: str, patch: pytest.MonkeyPatch) -> None:
    """Wherever passes are run by their names."""
    together, one = run._run_mlirs, normalise._run

    def run_all(module: ir.Operation, names: list[str]) -> None:
        for each in names:
            together(module, [each])
            if re.match(rf"{name}(\{{|$)", each):
                spoil(module)

    def run_one(module: ir.Operation, each: str) -> None:
        one(module, each)
        if each == name:
            spoil(module)

    patch.setattr(run, "_run_mlirs", run_all)
    patch.setattr(normalise, "_run", run_one)


def break_ours(name: str, patch: pytest.MonkeyPatch) -> None:
    kind = rows_of(RUN)[name].load()
    right = vars(kind)["__call__"]

    def wrong(self: Any, module: ir.Operation) -> None:
        right(self, module)
        spoil(module)

    patch.setattr(kind, "__call__", wrong)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler in this process, where passes can be broken; it builds every program anew."""
    monkeypatch.setattr(cached_build, "made_once", lambda _folder, _key, make: make())

    def ask(self: Compiler, question: Any, **_: object) -> Any:
        found = answer(question)
        if isinstance(found, avial_lab.AvialError):
            raise found
        return found

    monkeypatch.setattr(Compiler, "ask", ask)


def check(program: str) -> str:
    """What `--check` says; a run that is told to be wrong raises CheckError."""
    rng = np.random.default_rng(5)
    arrays = {name: rng.normal(size=40).astype(np.float32) for name in "ab"}
    if program != "tensors":
        arrays["c"] = np.zeros(40, np.float32)
    compiled = avial_lab.compile(PROGRAMS[program], arrays=arrays, ranks=1)
    compiled.run(check=True, threads=1, oversubscribe=True)
    assert compiled.check_report is not None
    return compiled.check_report


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("program", PROGRAMS)
def test_without_a_broken_pass_they_agree(program: str) -> None:
    assert check(program).startswith("equal to the sequential reference, bit for bit")


@pytest.mark.quick("canonicalize", "one-shot-bufferize")
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", UPSTREAM)
def test_a_broken_pass_of_mlirs_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in rows_of(RUN)
    break_mlirs(name, monkeypatch)
    with pytest.raises(avial_lab.AvialError, match="differs from the sequential reference"):
        check(UPSTREAM[name])


@pytest.mark.quick(
    "interchange-loops", "fuse-loops", "exact-affine", "replicate-to-mpi", "mark-parallel"
)
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", OURS)
def test_a_broken_pass_of_ours_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_ours(name, monkeypatch)
    with pytest.raises(avial_lab.AvialError, match="differs from the sequential reference"):
        check(OURS[name])
