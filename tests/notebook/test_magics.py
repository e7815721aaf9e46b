"""The magics: what they hand on, what they keep, and how mistakes look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.error import UsageError

import avial_lab
from avial_lab.core.errors import AvialError, CellSpan, CheckError, InternalError, ParseError
from avial_lab.lessons.demo import deck_text
from avial_lab.machine.alike import changed
from avial_lab.machine.topologies import topology_called
from avial_lab.program import session
from avial_lab.program.program import Program
from avial_lab.program.session import cluster_for
from avial_lab.runtime.launch.registry import Known, Record, this_owner
from tests.notebook.conftest import Page, recorded_program

CELL = "avial.schedule %a {\n}\n"


class Compiler:
    """Stands for `avial_lab.compile`: remembers what it was asked, answers or fails."""

    def __init__(self) -> None:
        self.text = ""
        self.asked: Mapping[str, Any] = {}
        self.error: Exception | None = None

    def __call__(self, text: str, **asked: Any) -> Program:
        self.text, self.asked = text, asked
        if self.error is not None:
            raise self.error
        return recorded_program(asked["name"])


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    compiler = Compiler()
    monkeypatch.setattr(avial_lab, "compile", compiler, raising=False)
    return compiler


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What `Program.run` was called with."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(
        Program, "run", lambda _, cluster=None, **options: calls.append((cluster, options))
    )
    return calls


def test_hands_on_the_options(page: Page, compiler: Compiler) -> None:
    page.run("a = 3; x = __import__('numpy').arange(4)")
    line = "-o prog --ranks 3 --gpus=1 --policy levels --sync=levels --division grid --fn f"
    line += " -D n=len(x)*2 --without interchange-loops --sizes tile-time{widths=8x8}"
    line += " --strict --dynamic"
    assert page.run(f"%%avial {line}\n{CELL}") is None
    asked = dict(compiler.asked)
    namespace = asked.pop("arrays")
    assert isinstance(namespace, avial_lab.Namespace)
    assert namespace["a"] == 3
    assert asked.pop("cell").startswith("In [")
    assert asked.pop("progress") is None  # a terminal
    assert asked == {
        "scalars": {"n": 8}, "ranks": 3, "gpus": 1, "topology": None, "policy": "levels",
        "sync": "levels", "division": "grid", "function": "f", "name": "prog",
        "without": "interchange-loops", "sizes": "tile-time{widths=8x8}", "strict": True,
        "dynamic": True,
    }  # fmt: skip
    assert isinstance(page.names["prog"], Program)


def test_a_cell_is_tuned(page: Page, compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the search finds is the cell's program."""
    asked: list[tuple[float, int | None, bool]] = []

    def tune(
        program: Program, seconds: float, *, threads: int | None, oversubscribe: bool
    ) -> Program:
        asked.append((seconds, threads, oversubscribe))
        return replace(program, name="tuned")

    monkeypatch.setattr(Program, "tune", tune)
    assert page.run(f"%%avial -o prog --tune 2.5 --threads 1\n{CELL}") is None
    assert asked == [(2.5, 1, False)]
    assert page.names["prog"].name == "tuned"


def test_a_kernel_is_loaded_into_the_next_cell(
    page: Page,
    compiler: Compiler,
    runs: list[tuple[Any, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its arrays, so that the cell runs as it stands."""
    cells: list[str] = []
    monkeypatch.setattr(page.shell, "set_next_input", cells.append)
    line = "%avial load gemm -D ni=k+3 -D NJ=4 -D nk=6 --element=f64 --seed 7"
    assert page.run(f"k = 2\n{line}") is None
    assert "NI = 5, NJ = 4, NK = 6, f64, random inputs, seed 7" in page.text
    names: Mapping[str, Any] = page.names
    assert names["C"].shape == (5, 4)
    assert names["A"].dtype == np.float64
    assert isinstance(names["alpha"], float)
    assert page.run(cells[0]) is None
    assert compiler.text.startswith("\nfunc.func @kernel_gemm(%alpha: f64")
    assert runs[0][1]["check"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gem", "there is no file and no kernel 'gem'"),
        ("gemm -D N=3", "gemm has no number N"),
        ("gemm --element=i1", "gemm has no i1 version"),
    ],
)
def test_a_kernel_that_is_none(page: Page, line: str, expected: str) -> None:
    error = page.run(f"%avial load {line}")
    assert isinstance(error, AvialError)
    assert error.message == expected
    assert error.hint is not None


def test_line_numbers_are_the_editors(page: Page, compiler: Compiler) -> None:
    """Line 1 is the magic's own."""
    page.run(f"%%avial\n{CELL}")
    assert compiler.text == f"\n{CELL}"
    assert compiler.text.splitlines()[1] == "avial.schedule %a {"


def test_the_cell_is_named_as_jupyter_counts(page: Page, compiler: Compiler) -> None:
    page.shell.execution_count = 7
    page.run(f"%%avial\n{CELL}")
    assert compiler.asked["cell"] == "In [7]"
    assert compiler.asked["name"] == "cell7"


@pytest.mark.usefixtures("compiler")
def test_shows_pictures_by_default_and_what_is_asked_for(page: Page) -> None:
    page.run(f"%%avial\n{CELL}")
    assert page.html.count("<figure") == 2
    page.run(f"%%avial --show=lanes\n{CELL}")
    assert page.html.count("<figure") == 1
    for quiet in ("-q", "--show none"):
        page.run(f"%%avial {quiet}\n{CELL}")
        assert page.bundles == []


@pytest.mark.usefixtures("compiler")
def test_run_and_check(page: Page, runs: list[tuple[Any, dict[str, Any]]]) -> None:
    page.run(f"%%avial -q\n{CELL}")
    assert runs == []
    page.run(f"%%avial -q --run --timeout=2.5\n{CELL}")
    page.run(f"%%avial -q --check\n{CELL}")
    page.run(f"%%avial -q --run --no-trace\n{CELL}")
    page.run("%avial run --no-trace -q")
    usual = {"threads": None, "oversubscribe": False}
    assert runs == [
        (None, {"check": False, "timeout": 2.5, "trace": True, **usual}),
        (None, {"check": True, "timeout": None, "trace": True, **usual}),
        (None, {"check": False, "timeout": None, "trace": False, **usual}),
        (None, {"check": False, "timeout": None, "trace": False, **usual}),
    ]
    page.run("%config AvialMagics.timeout = 60")
    page.run("%avial run -q")
    assert runs[-1][1]["timeout"] == 60
    page.run("%avial run -q --timeout=1")
    assert runs[-1][1]["timeout"] == 1


def test_a_mistake_is_short_and_costs_nothing(page: Page, compiler: Compiler) -> None:
    page.run("kept = 1")
    compiler.error = ParseError(
        "unknown buffer %e", span=CellSpan("In [4]", f"\n{CELL}", 2, 16), hint="name it"
    )
    error = page.run(f"%%avial -o prog\n{CELL}")
    assert error is compiler.error
    assert "In [4]:2:16" in page.stdout
    assert "avial.schedule %a {\n               ^" in page.stdout
    assert "Hint: name it" in page.stdout
    assert "Traceback" not in page.stdout
    assert page.names["kept"] == 1
    assert "prog" not in page.names


def test_a_fault_of_ours_keeps_its_traceback(page: Page, compiler: Compiler) -> None:
    compiler.error = InternalError("boom")
    page.run(f"%%avial\n{CELL}")
    assert "Traceback" in page.stdout
    assert "fault in avial_lab" in page.stdout
    assert "Unexpected exception formatting exception" not in page.stdout


@pytest.mark.parametrize("option", ["--expect-error", '--expect-error="no device"',
                                    "--expect-error 'no device'"])  # fmt: skip
def test_an_expected_error_passes(page: Page, compiler: Compiler, option: str) -> None:
    compiler.error = AvialError("there is no device for it")
    assert page.run(f"%%avial {option}\n{CELL}") is None
    assert "there is no device for it" in page.text


def test_another_error_than_expected_fails(page: Page, compiler: Compiler) -> None:
    compiler.error = AvialError("something else")
    assert isinstance(page.run(f"%%avial --expect-error 'no device'\n{CELL}"), CheckError)
    assert "something else" in page.stdout


@pytest.mark.usefixtures("compiler")
def test_no_error_where_one_is_expected_fails(page: Page) -> None:
    assert isinstance(page.run(f"%%avial --expect-error\n{CELL}"), CheckError)


def test_a_bug_is_never_an_expected_error(page: Page, compiler: Compiler) -> None:
    compiler.error = RuntimeError("boom")
    assert isinstance(page.run(f"%%avial --expect-error boom\n{CELL}"), RuntimeError)
    compiler.error = InternalError("boom")
    assert isinstance(page.run(f"%%avial --expect-error boom\n{CELL}"), InternalError)


def test_ctrl_c_passes(page: Page, compiler: Compiler) -> None:
    compiler.error = KeyboardInterrupt()  # type: ignore[assignment]
    assert isinstance(page.run(f"%%avial\n{CELL}"), KeyboardInterrupt)
    compiler.error = None
    assert page.run(f"%%avial -q\n{CELL}") is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--rnaks 3", "unrecognized arguments: --rnaks; did you mean --ranks?"),
        ("--ranks three", "invalid int value"),
        ("--policy=fastest", "invalid choice"),
        ("--policy=hetf", "did you mean heft?"),
        ("-o 3x", "not '3x'"),
        ("-D n", "NAME=EXPR"),
        ("--show 'dag", "No closing quotation"),
    ],
)
@pytest.mark.usefixtures("compiler")
def test_a_wrong_option_is_said(page: Page, line: str, words: str) -> None:
    error = page.run(f"%%avial {line}\n{CELL}")
    assert isinstance(error, UsageError)
    assert words in str(error)


@pytest.mark.parametrize(
    ("line", "near"),
    [("lod", "load"), ("run --chek", "--check"), ("load gemm --sise=MINI", "--size")],
)
def test_a_wrong_line_offers_the_neighbour(page: Page, line: str, near: str) -> None:
    error = page.run(f"%avial {line}")
    assert isinstance(error, UsageError)
    assert str(error).endswith(f"did you mean {near}?")


def test_a_wrong_part_offers_the_neighbour_before_any_work(page: Page, compiler: Compiler) -> None:
    error = page.run(f"%%avial --show=dga\n{CELL}")
    assert "did you mean 'dag'?" in str(error)
    assert compiler.text == ""


@pytest.mark.usefixtures("compiler")
def test_lists_and_finds_programs(page: Page) -> None:
    page.run("%avial")
    assert "No programs yet" in page.text
    for name in ("first", "second"):
        page.run(f"%%avial -q --name {name}\n{CELL}")
    page.run("%avial list")
    assert page.text.index("first") < page.text.index("second")
    page.run("%avial show --show=dag")
    assert "second: compiled" in page.text
    page.run("%avial show first --show=dag")
    assert "first: compiled" in page.text
    assert "did you mean 'first'?" in str(page.run("%avial show frist"))


@pytest.mark.usefixtures("compiler")
def test_a_program_in_a_variable_is_found_too(page: Page) -> None:
    page.names["mine"] = recorded_program("mine")
    assert page.run("%avial show mine") is None
    assert "there is no program yet" not in page.stdout


def test_programs_that_python_compiled_are_listed(page: Page) -> None:
    """Whatever holds them; not longer than that."""
    page.run("import avial_lab, numpy as np, gc; a = np.zeros(4, np.int32)")
    text = "func.func @f(%a: memref<4xi32>) { return }"
    page.run(f"kept = [avial_lab.compile({text!r}, arrays=dict(a=a), name='in a list')]")
    page.run("%avial list")
    assert "in a list" in page.text
    page.run("%avial show --show=none")
    page.run("del kept; gc.collect()")
    page.run("%avial list")
    assert "in a list" not in page.text


@pytest.mark.usefixtures("compiler")
def test_stages(page: Page) -> None:
    page.run(f"%%avial -q --name deck\n{CELL}")
    page.run("%avial stages")
    assert "llc -march=nvptx64" in page.text
    page.run("%avial stages deck ptx")
    assert page.text.count(".target sm_90") > 100
    assert "did you mean 'ptx'?" in str(page.run("%avial stages deck ptxx"))


@pytest.mark.usefixtures("compiler")
def test_report(page: Page, tmp_path: Path) -> None:
    page.run(f"%%avial --name=one\n{CELL}")
    page.run(f"%%avial --name=two\n{CELL}")
    for line, name in ((f"{tmp_path}/latest.html", "two"), (f"one {tmp_path}/one.html", "one")):
        page.run(f"%avial report {line}")
        assert f"<h1>{name}</h1>" in (tmp_path / line.rpartition("/")[2]).read_text()
    error = page.run(f"%avial report {tmp_path}/missing/r.html")
    assert isinstance(error, AvialError)
    assert "cannot write" in str(error)


@pytest.mark.usefixtures("compiler")
def test_rerunning_a_cell_replaces_its_program(page: Page) -> None:
    for name in ("deck", "other", "deck"):
        page.run(f"%%avial -q --name {name}\n{CELL}")
    page.run("%avial")
    assert page.text.count("deck") == 1
    assert page.text.index("other") < page.text.index("deck")


def test_usage_is_one_question_mark_away(page: Page) -> None:
    usage = page.shell.find_line_magic("avial").__doc__ or ""
    for words in ("--ranks", "--expect-error", "--opt=-value", "%avial cluster start"):
        assert words in usage


class Engines:
    """Stands for a cluster: starts at once, knows its topology."""

    def __init__(self, cpu: int, gpu: int) -> None:
        self.cpu, self.gpu = cpu, gpu
        self.topology = avial_lab.Topology.local(cpu + gpu, gpus=gpu, arch="x86_64")
        self.stopped = False

    @property
    def is_stopped(self) -> bool:
        return self.stopped

    @property
    def status(self) -> str:
        return f"cluster of {self.topology.ranks} engines"

    @property
    def id(self) -> str:
        return "4b1d"

    def stop(self) -> None:
        self.stopped = True


def test_the_cluster_started_here_is_used_and_stopped(
    page: Page, compiler: Compiler, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Engines] = []

    def start(
        *, cpu: int, gpu: int, profile: str | None, keep_s: float, progress: Callable[[str], None]
    ) -> Engines:
        assert keep_s > 0, "a kernel may be restarted"
        progress("starting …")
        started.append(Engines(cpu, gpu))
        return started[-1]

    monkeypatch.setattr(avial_lab.Cluster, "start", start)
    page.run("%avial cluster status")
    assert "no cluster is running" in page.text
    page.run("%avial cluster start --cpu=2 --gpu=1")
    page.run(f"%%avial -q --run\n{CELL}")
    assert compiler.asked["topology"] is started[0].topology
    assert runs[0][0] is started[0]
    page.run(f"%%avial -q --ranks=2\n{CELL}")
    assert compiler.asked["topology"] is None
    page.run("%avial cluster start")
    assert started[0].stopped
    assert (started[1].cpu, started[1].gpu) == (2, 1)
    page.run("%avial cluster stop")
    assert started[1].stopped
    assert "the cluster is stopped" in page.text
    page.run("%avial cluster start --cpu=2")  # and none of what was not asked for
    assert (started[2].cpu, started[2].gpu) == (2, 0)


def test_without_mpi_a_lesson_goes_on_in_one_process(
    page: Page, compiler: Compiler, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIEXEC", "no-such-mpiexec")
    error = page.run("%avial cluster start --cpu=2 --gpu=1")
    assert "'mpiexec' was not found" in str(error)
    assert page.run("%avial cluster start --cpu=2 --gpu=1 --or-reference") is None
    assert (
        "The cluster could not be started:\nno ranks: MPI could not start: the program" in page.text
    )
    assert page.run(f"%%avial -q --run\n{CELL}") is None
    assert isinstance(runs[0][0], avial_lab.OneProcess)
    assert compiler.asked["topology"] is runs[0][0].topology
    assert page.run("%avial cluster stop") is None
    assert "the cluster is stopped" in page.text


def test_arrays_are_found_by_name_only() -> None:
    """A namespace holds anything; what no program names is not looked at."""
    namespace = avial_lab.Namespace({"a": np.zeros(3), "unrelated": object()})
    assert set(namespace) == {"a", "unrelated"}


def test_the_cluster_of_the_session(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python finds the cluster that the magic started, and a run that names none takes it."""
    monkeypatch.setattr(avial_lab.Cluster, "start", lambda cpu, gpu, **_: Engines(cpu, gpu))
    assert "this session has no cluster" in str(page.run("import avial_lab; avial_lab.cluster()"))
    page.run("%avial cluster start --cpu=2")
    page.run("mine = avial_lab.cluster()")
    assert isinstance(page.names["mine"], Engines)
    assert cluster_for(2) is page.names["mine"]
    assert cluster_for(3) is None
    page.names["mine"].stop()  # type: ignore[attr-defined]
    assert cluster_for(2) is None


def test_a_cluster_that_a_restart_left_is_found(
    page: Page, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`status` says that it is there and how to connect to it."""
    _, mine = this_owner()
    gone = Known(2**22 + 1, 0.0)
    left = Record("4b1d", tmp_path, 0, 600.0, 60.0, 0.0, gone, mine, (), (gone, gone), 2)
    other = replace(left, id="77aa", owner_name="other.ipynb")
    monkeypatch.setattr("avial_lab.notebook.clusters.clusters", lambda: (other, left))
    page.run("%avial cluster status")
    assert "the one from before its restart still is:\n4b1d  2 engines" in page.text
    assert "%avial cluster connect 4b1d connects to it" in page.text
    assert "77aa" not in page.text
    monkeypatch.setattr("avial_lab.notebook.clusters.clusters", lambda: ())
    page.run("%avial cluster status")
    assert "no cluster is running; %avial cluster start starts one" in page.text


def test_more_ranks_than_cores_are_told_before_they_start(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def start(cpu: int, gpu: int, **_: object) -> Engines:
        seen.append(str(shown[-1]))
        return Engines(cpu, gpu)

    shown: list[object] = []
    monkeypatch.setattr(avial_lab.Cluster, "start", start)
    monkeypatch.setattr("IPython.display.DisplayHandle.display", lambda _, note: shown.append(note))
    page.run("%avial cluster start --cpu 4000")
    assert "4,000 ranks share" in seen[0]
    assert "Interrupt the kernel" in seen[0]
    page.run("%avial cluster start --cpu 1")
    assert "share" not in seen[1]


def test_the_kernels_there_are(page: Page) -> None:
    assert page.run("%avial load") is None
    assert "gemm             C = alpha · A · B + beta · C." in page.text


def test_help_lists_commands_and_options(page: Page) -> None:
    for line in ("%avial help", "%avial --help", "%avial cluster -h"):
        assert page.run(line) is None
        assert "%avial cluster start [--cpu=N]" in page.text
        assert "--timeout SECONDS" in page.text


def test_the_verdict_is_shown_where_no_picture_is(
    page: Page, compiler: Compiler, runs: list[Any]
) -> None:
    assert page.run(f"%%avial --check --show=none --name=quiet\n{CELL}") is None
    assert len(runs) == 1
    assert page.text.startswith("quiet: ")


DOUBLED = """
func.func @f(%A: memref<4096xf64>) {
  affine.for %i = 0 to 4096 {
    %x = affine.load %A[%i] : memref<4096xf64>
    %y = arith.addf %x, %x : f64
    affine.store %y, %A[%i] : memref<4096xf64>
  }
  return
}
"""


def test_plans_the_run_of_a_program_of_loops(page: Page) -> None:
    page.run("import numpy; A = numpy.ones(4096)")
    assert page.run(f"%%avial -o twice -q\n{DOUBLED}") is None
    assert page.run("%avial plan twice --topology=preset:laptop --bandwidth=0.5") is None
    assert "By ranks on a laptop with other links, simulated" in page.text
    assert "What if? twice on a laptop with other links, simulated" in page.text
    assert "simulated on a laptop with other links" in page.text
    error = page.run("%avial plan twice --topology=preset:latop")
    assert isinstance(error, AvialError)


def test_a_machine_that_was_changed_is_what_predictions_take(
    page: Page, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: session.use_machine(None))
    page.run("import numpy; A = numpy.ones(4096)")
    assert page.run(f"%%avial -o twice -q\n{DOUBLED}") is None
    assert page.run("%avial topology preset:laptop") is None
    assert "4 ranks: 4 CPUs on laptop" in page.text
    before = page.run("own = twice.simulate().label")
    assert before is None
    session.use_machine(changed(topology_called("preset:laptop"), {"nodes": "2"}))
    assert page.run("%avial plan twice") is None
    assert "By ranks on a laptop, edited, simulated" in page.text
    assert page.run("assert 'edited' in twice.simulate().label and 'edited' not in own") is None
    assert page.run("assert 'edited' not in twice.predicted().label") is None
    assert page.run("%avial plan twice --topology=preset:laptop") is None
    assert "By ranks on a laptop, simulated" in page.text
    assert isinstance(page.run("%avial topology preset:latop"), AvialError)


def test_plans_the_run_of_a_program_of_tasks(page: Page) -> None:
    page.run("import numpy; a, b, c, d = (numpy.zeros(20, numpy.int32) for _ in range(4))")
    assert page.run(f"%%avial -o deck -q\n{deck_text()}") is None
    assert page.run("%avial plan deck --policy=heft") is None
    assert "deck on this machine" in page.text
    assert "What if? deck on this machine, simulated" in page.text
    assert "heft" in page.text
    assert "simulated on this machine" in page.text
