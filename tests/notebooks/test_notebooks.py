"""Every notebook of the course runs from top to bottom, in a kernel of its own: with MPI, the same
text twice, and without, labelled; its exercise fails with reasons, its solution does not.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.notebooks.course import NOTEBOOKS, read, run, said, shown, tagged

SENSIBLE = {
    "00_first_light": ("task1", "equal to the sequential reference", "the cluster is stopped"),
    "01_the_dialect": (
        "%c16 = arith.constant 16 : index",
        "In [4]:7:24",
        "✓ square runs on a GPU: gpu0 (gpu, emulated",
    ),
    "02_dependences_and_levels": (
        "read    clear  WAR     x       [0:16]",
        "right   copy   RAW     x       [8:12]",
        "task 'task2' writes %c, which it does not list",
        "In [4]:18:24",
    ),
    "03_lowering": (
        "mpi.recv(%y",
        "PTX of add",
        "host     %w = arith.addi %v, %v : i32\nllvm     %w = llvm.add",
        "y[0:8] from rank 0 to rank 1",
    ),
    "04_drop_in": (
        "rod[i - 1] is written by an earlier iteration of t: line 17",
        "✓ 160 bytes between ranks, planned and counted",
        "in order on one rank",
        "equal to the sequential reference",
    ),
    "05_halos_and_messages": (
        "✓ 20 messages between ranks, planned and counted",
        "cyclic(2)   30 messages   880 bytes",
        "✓ 320 bytes between ranks, planned and counted",
    ),
    "06_heat_equation": (
        "the plate: 25 frames of 48 × 48 values; mean 2.083 at first, 19.65 at last",
        "76 messages, 27.3 KiB moved, counted in the run and as planned",
        "✓ 796 messages between ranks, planned and counted",
    ),
    "07_fast": (
        "product: the same bits after each step",
        "✓ C has the expected values (250,000 elements)",
        "heat: the same bits after each step",
        "several steps run on each part of the arrays while it is in cache",
        "grid[j + 1, i - 1] is written by the previous iteration of i: line 10, as grid[j, i]",
        "✓ turned has the expected values (4,000,000 elements)",
    ),
    "08_arrays": (
        "the same bits as NumPy: True",
        "runs: 1 programs compiled: ",
        "2 ranks, 50 messages",
        "fitted as on NumPy's arrays; "
        if find_spec("sklearn")
        else "skipped: scikit-learn is not installed here",
        "✓ S1 is divided over the ranks",
    ),
    "09_planning": (
        "bytes between the ranks",
        "simulated on a node of 8 GPUs",
        "By ranks on a fat tree of 1,024 nodes, simulated",
        "more of them hardly pay",
        "critical-locality",
        "fast links: tasks on 3 of 4 ranks",
        "slow links: tasks on 1 of 4 ranks",
        "of the ranks' time: sending and waiting for S2",
        "✓ at most 3 µs on a fat tree of 1,024 nodes, simulated",
    ),
    "10_python": (
        "the same bits as Python: True",
        "and in the arrays: True",
        "index is out of bounds, size 8",
        "total += a[k]",
        "rounds step",
        "the last round changed 0.0098",
        "✓ S1 is divided over the ranks",
    ),
    "11_parallel_training": (
        "<Model gpt: 38 weights of 109 KiB>",
        '%b0_up_w lies "split 1, copy" on @m: 8 KiB a device',
        "the loss falls: True",
        "the gradient is right: True",
        "simulated on a node of 8 GPUs",
        "configurations on 4 devices",
        "the first loss again: True",
        "✓ 28,672 bytes between ranks, planned",
    ),
    "12_gpu": (
        "S1_kernel: ceil(j / 64) x ceil(i / 16) blocks of 64 x 4 threads",
        "%ctaid.x",
        "41,296 bytes; with both arrays there and back for each of 40 launches 2,304,000",
        "65,536 from gpu0 to cpu0",
        "✓ 98,304 bytes between hosts and GPUs, planned and counted",
    ),
}
"""What a notebook has to say."""

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


LONG = ("07", "11")
"""Lessons that take most of a minute."""


@pytest.mark.mpi
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow) if path.stem[:2] in LONG else path
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_runs(path: Path, tmp_path: Path) -> None:
    notebook = run(path, tmp_path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [output for output in outputs if output.get("name") == "stderr"] == []
    text = "\n".join(map(said, notebook.cells))
    for sensible in SENSIBLE[path.stem]:
        assert sensible in text, sensible
    assert "reference run, one process" not in text
    assert "Traceback" not in text
    assert os.listdir(tmp_path) == []
    _exercise_needs_its_reader(path, notebook)


def _exercise_needs_its_reader(path: Path, notebook: object) -> None:
    """As it stands the check says what is missing; the solution has nothing but ticks."""
    (check,), (solution,) = (tagged(notebook, tag) for tag in ("check", "solution"))  # type: ignore[arg-type]
    words = said(check)
    assert "CheckError: " in words
    assert "✗ " in words or "there is no program yet" in words  # where it does not compile
    assert said(solution).count("✓ ") >= check.source.count("avial_lab.check(")
    assert "✗" not in said(solution)


@pytest.mark.mpi
@pytest.mark.slow
@each
def test_says_the_same_twice(path: Path, tmp_path: Path) -> None:
    assert shown(run(path, tmp_path)) == shown(run(path, tmp_path))


@pytest.mark.parametrize(
    "path",
    [
        path if path.stem[:2] in ("00",) else pytest.param(path, marks=pytest.mark.slow)
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
def test_runs_without_mpi_and_says_so(path: Path, tmp_path: Path) -> None:
    """Every check holds that held with it, but for what only ranks can count."""
    notebook = run(path, tmp_path, environment={"MPIEXEC": "no-such-mpiexec"})
    text = "\n".join(map(said, notebook.cells))
    label = "MPI could not start: the program 'mpiexec' was not found"
    # Calls of Python functions return what is computed and show no run.
    told = "no ranks" if path.stem == "10_python" else "reference run, one process"
    assert f"{told}: {label}" in text
    text = text.replace("Where the time went (simulated", "")  # which needs no ranks
    for pretended in ("measured", "Where the time went", "counted", "equal to the sequential"):
        assert pretended not in text
    assert os.listdir(tmp_path) == []
    _exercise_needs_its_reader(path, notebook)


# As they are stored -------------------------------------------------------------------------------


@each
def test_is_stored_without_outputs(path: Path) -> None:
    for cell in read(path).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@each
def test_is_short(path: Path) -> None:
    """One idea in twelve cells, read in a few minutes; one more ends the cluster."""
    notebook = read(path)
    assert len(notebook.cells) <= 13
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    words = [len(text.split()) for text in prose]
    assert max(words) <= 110
    assert sum(words) <= 330
    assert notebook.cells[0].cell_type == "markdown"
    assert re.match(r"# \S", notebook.cells[0].source)


@each
def test_has_an_exercise_a_check_and_a_solution(path: Path) -> None:
    notebook = read(path)
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", ())]
    assert [tag for tag in tags if tag != "raises-exception"] == ["exercise", "check", "solution"]
    (check,), (solution,) = (tagged(notebook, tag) for tag in ("check", "solution"))
    assert "raises-exception" in check.metadata.tags  # so that "run all" goes on
    assert solution.metadata.jupyter.source_hidden
    assert "avial_lab.check(" in check.source


@each
def test_its_cluster_ends_with_it(path: Path) -> None:
    code = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
    assert re.search(r"%avial cluster start|start_or_reference", "\n".join(code))
    assert code[-1] in ("%avial cluster stop", "cluster.stop()")


@pytest.mark.parametrize("path", NOTEBOOKS[4:7], ids=lambda path: path.stem)
def test_leaves_out_the_types_that_may_be_left_out(path: Path) -> None:
    code = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
    assert re.findall(r"memref<|: f64|: index", "\n".join(code)) == []


def test_what_the_numbers_of_statements_are_is_said_where_they_come_first() -> None:
    prose = {path.stem: "\n".join(c.source for c in read(path).cells) for path in NOTEBOOKS}
    assert next(name for name, text in prose.items() if "S1" in text) == "04_drop_in"
    assert re.search(r"\*\*statement\*\*.*`S1`", prose["04_drop_in"])


@each
def test_names_no_place_of_a_machine(path: Path) -> None:
    assert not re.search(r"(?<![\w.)])/(?:home|work|tmp|usr|opt)/|https?://", path.read_text())


@each
def test_links_lead_to_the_next(path: Path) -> None:
    prose = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)]+)\)", prose)
    assert [link for link in links if not (path.parent / link).is_file()] == []
    following = NOTEBOOKS[NOTEBOOKS.index(path) + 1 :]
    assert path == NOTEBOOKS[-1] or following[0].name in links
