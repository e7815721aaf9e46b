"""The catalogue says which passes there are, in which order, and which can be left out: it does so
truly.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

import avial_lab
from avial_lab.cli.main import main
from avial_lab.compiler import passes
from avial_lab.compiler.catalogue import (
    ARITHMETIC,
    CATALOGUE,
    DEFINITIONS,
    EXACT,
    GROUP_PHASES,
    HOST,
    LOOPS,
    NORMALISE,
    OPTIONAL,
    PHASES_TO_MPI,
    PLAIN,
    SEQUENTIAL,
    SIZES,
    TASKS_TO_MPI,
    TO_LLVM_DIALECT,
    WHOLE,
    WRITTEN,
    rows,
)
from avial_lab.compiler.lowering import arithmetic as arithmetic_module
from avial_lab.compiler.lowering.arithmetic import arithmetic, settled
from avial_lab.compiler.lowering.lower import to_loops, to_one, to_tasks
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.pipelines import OURS, TO_HOST, TO_LLVM
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.pass_rows import Pipeline, Row, documentation
from avial_lab.compiler.passes.tasks import normalise, normalise_tasks
from avial_lab.compiler.worker import reference
from avial_lab.compiler.worker.reference.interpreter import definitions, in_order
from avial_lab.core.errors import InternalError, PassError
from avial_lab.machine.topology import Topology

OWN = {row.name: row for row in rows() if row.is_ours}
NEEDED: dict[str, dict[str, Any]] = {
    "one-task": {"why": "it is one"},
}
"""What some passes cannot be made without."""


ROOT = Path(avial_lab.__file__).parents[1]


def names(made: Iterable[object]) -> list[str]:
    return [str(each).partition("{")[0] for each in made]


# -- the rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", OWN.values(), ids=OWN)
def test_a_row_names_a_pass(row: Row) -> None:
    kind = row.load(by_name=True)
    assert "__call__" in vars(kind)
    assert str(kind(**NEEDED.get(row.name, {}))).partition("{")[0] == row.name
    assert "__call__" in vars(row.load())


@pytest.mark.parametrize("pipeline", CATALOGUE, ids=lambda each: f"{each.stage}: {each.title}")
def test_a_row_says_what_and_why(pipeline: Pipeline) -> None:
    for row in pipeline.rows:
        for said in (row.what, row.why):
            assert said[:1].isupper() or said.startswith(("memref.", "scf.", "expm1"))
            assert said.endswith((".", ".)"))


def classes_in(folder: Path) -> Iterator[str]:
    """Every class in the folder that a pipeline could run: it is called, and has a name."""
    for path in sorted(folder.rglob("*.py")):
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.ClassDef):
                methods = {part.name for part in each.body if isinstance(part, ast.FunctionDef)}
                if {"__call__", "__str__"} <= methods:
                    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                    yield f"{module}:{each.name}"


def test_every_pass_has_a_row() -> None:
    known = {at for row in rows() for at in (row.at, row.by_name) if at}
    folders = (Path(passes.__file__).parent, Path(reference.__file__).parent)
    assert {each for folder in folders for each in classes_in(folder)} == known


def test_a_pass_in_several_places_is_the_same_pass() -> None:
    for row in rows():
        if row.is_ours:
            assert (row.at, row.optional, row.what) == (
                OWN[row.name].at, OWN[row.name].optional, OWN[row.name].what
            )  # fmt: skip


def test_all_of_ours_can_be_named() -> None:
    assert set(OURS) == set(OWN)
    assert [str(each) for each in parse_passes("inline-calls,one-task{why=so}")] == [
        "inline-calls", "one-task"
    ]  # fmt: skip
    with pytest.raises(PassError, match="one-task needs why"):
        parse_passes("one-task")


def test_only_optional_passes_have_sizes() -> None:
    assert set(SIZES) <= set(OPTIONAL)


# -- what the stages run ---------------------------------------------------------------------------

CHOICES = (
    CompileOptions(),
    CompileOptions(strict=True),
    CompileOptions(blas=True),
    CompileOptions(no_bounds=True),
    CompileOptions.of(without="block-contractions"),
    CompileOptions.of(without="merge-split-reductions"),
)


def run_by_the_stages() -> Iterator[tuple[Pipeline, list[str]]]:
    """Each pipeline with what is run of it, in all kinds of programs."""
    for strict in (False, True):
        first = names(settled(strict=strict))
        exact = len(EXACT.rows)
        yield EXACT, first[:exact]
        yield ARITHMETIC, first[exact:]
        for plain, grid, on in itertools.product((False, True), (False, True), ("", "gpu")):
            run = names(to_tasks(plain=plain, grid=grid, strict=strict, on=on))
            assert run[: len(first)] == first
            yield PLAIN if plain else WRITTEN, run[len(first) :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic_module, "has_fma", lambda: False)
        yield ARITHMETIC, names(arithmetic(strict=False))
    yield NORMALISE, names(normalise._steps())
    yield PLAIN, names(normalise_tasks._steps())
    yield WHOLE, names(WHOLE.passes({"one-task": {"why": ""}}))
    for options in CHOICES:
        yield LOOPS, names(to_loops(options))
        for ranks, given_up in itertools.product((1, 2), (False, True)):
            machine = Topology.local(ranks, gpus=0)
            yield GROUP_PHASES, names(to_one(machine, options, given_up=given_up))
    yield PHASES_TO_MPI, names(PHASES_TO_MPI.passes())
    yield TASKS_TO_MPI, names(TASKS_TO_MPI.passes())
    yield HOST, names(TO_HOST)
    for tasks, structured in ((False, False), (True, False), (False, True)):
        yield SEQUENTIAL, names(in_order(tasks=tasks, structured=structured))
    for bounds_checks in (False, True):
        yield DEFINITIONS, names(definitions(bounds_checks=bounds_checks))
    inside, *after = TO_LLVM
    each = inside.removeprefix("func.func(")[:-1].split(",")
    yield TO_LLVM_DIALECT, names([*each, *after])


def test_the_stages_run_them_in_their_order() -> None:
    for pipeline, run in run_by_the_stages():
        left = iter([row.name for row in pipeline.rows])
        assert all(name in left for name in run), (pipeline.title, run)


def test_a_row_says_when_it_is_run_and_only_then() -> None:
    """One without `when` is always run; one with it is, and is not, in some program."""
    found: dict[str, list[tuple[Row, bool]]] = defaultdict(list)
    for pipeline, run in run_by_the_stages():
        for row in pipeline.rows:
            without = pipeline is LOOPS and row.optional and not row.when and row.name not in run
            if not without:  # left out by name
                found[f"{pipeline.title}: {row.name}"].append((row, row.name in run))
    for place, seen in found.items():
        row, _ = seen[0]
        assert {there for _, there in seen} == ({False, True} if row.when else {True}), place


@pytest.mark.parametrize("name", OPTIONAL)
def test_an_optional_pass_can_be_left_out_alone(name: str) -> None:
    """What it is for goes with it: expand-arrays and merge-split-reductions with
    block-contractions.
    """
    options, whole = CompileOptions.of(without=name), CompileOptions()
    gone = {"block-contractions": {"merge-split-reductions", "expand-arrays"}}.get(name, set()) | {
        name
    }
    for machine in (Topology.local(ranks, gpus=0) for ranks in (1, 2)):
        with_it = [*names(to_one(machine, whole, given_up=True)), *names(to_loops(whole))]
        without = [*names(to_one(machine, options, given_up=True)), *names(to_loops(options))]
        assert without == [each for each in with_it if each not in gone]
        if machine.ranks > 1:
            assert name in with_it


def test_what_is_left_without_all_is_what_cannot_be_left_out() -> None:
    all_left_out = CompileOptions.of(without="all")
    assert names(to_loops(all_left_out)) == [
        "no-alias", "check-loaded", "outline-launches", "form-kernels", "mark-parallel",
        "duplicate-function-elimination",
    ]  # fmt: skip
    assert not to_one(Topology.local(2, gpus=0), all_left_out, given_up=True)


def test_code_and_rows_that_say_different_things_are_found_out() -> None:
    with pytest.raises(InternalError, match="no pass 'jam-for-store' is in the pipeline"):
        LOOPS.passes({"jam-for-store": {"rows": 3}})
    with pytest.raises(InternalError, match="'jam-for-stores' is left out, and its row has no"):
        LOOPS.passes({"jam-for-stores": None})


# -- for people ------------------------------------------------------------------------------------


def test_all_passes_are_printed_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [f"{pipeline.stage}: {pipeline.title}" for pipeline in CATALOGUE]
    assert [line for line in lines if line in heads] == heads
    begun = [line.split()[0] for line in lines if line[:1].strip() and line not in heads]
    assert begun == ["pass", *(row.name for row in rows())]


def test_all_passes_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in facts] == [row.name for row in rows()]
    assert {row["name"] for row in facts if row["optional"]} == set(OPTIONAL)


def test_one_pass_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "keep-independent"]) == 0
    assert capsys.readouterr().out == snapshot("""\
keep-independent

  host: code for the CPU; always
    what: Moves the marks of loops into their bodies.
    why:  Before lower-affine, which drops attributes of loops.

What is known of innermost loops, in LLVM's words.

Loops with marks -> loops with a marking operation inside, which survives on the way to LLVM's
dialect; there -> annotations of the loop and of what it loads and stores.

Put the mark of a loop into its body, as lowerings drop what stands on loops.

before:  affine.for %j … { … } {avial.independent}
after:   affine.for %j … { …  llvm.call_intrinsic "llvm.sideeffect"() {avial.independent} }
""")


def test_one_of_mlirs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "mem2reg"]) == 0
    assert capsys.readouterr().out.endswith(
        "One of MLIR's own: mlir-opt --help, under --mem2reg.\n"
    )


def test_a_pass_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "jam-for-store"]) == 1
    assert "did you mean 'jam-for-stores'?" in capsys.readouterr().err


def test_the_documentation_is_the_classs_own() -> None:
    said = documentation(OWN["jam-for-stores"].at)
    assert said.cls == OWN["jam-for-stores"].load().__doc__.replace("\n    ", "\n").strip()  # pyright: ignore[reportOptionalMemberAccess]
    assert "before:" in said.cls
