"""The race: its table, its refusals, and that a contestant's fall is only its own."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from avial_lab import benchmarks as race_module
from avial_lab.benchmarks import Answer, Configuration, contestants, race
from avial_lab.benchmarks import rounds as rounds_of
from avial_lab.benchmarks.builders import CEntry, OwnEntry
from avial_lab.benchmarks.c_peers import peer_folder, peer_source
from avial_lab.benchmarks.json_report import report_facts
from avial_lab.benchmarks.kernel_suite import KernelProgram, kernel_program
from avial_lab.benchmarks.table import ALONE, Report, Result, Round, means
from avial_lab.benchmarks.worker import BenchmarkWorker
from avial_lab.cli.main import main
from avial_lab.core.c_compiler import any_compiler
from avial_lab.core.errors import AvialError, BindError, CheckError
from avial_lab.machine.host import CacheLevel, Machine
from avial_lab.machine.measure import measure_ceilings
from avial_lab.machine.roofline import Ceilings
from avial_lab.program import compilation
from tests.waiting import assert_gone

CEILINGS = Ceilings(
    1, "f64", flops_per_s=10e9, bytes_per_s=1e9, vector_bits=256, cache_bytes_per_s=((2, 5e9),)
)
MACHINE = Machine(
    "A <processor>", "x86_64", 2, 4, (CacheLevel(1, 32768, 1), CacheLevel(3, 1 << 25, 2))
)


def raced(kernel: str, *results: Result) -> Round:
    return Round(
        kernel, "f64", {"N": 10}, ranks=1, threads=1, flops=2_000_000, bytes=100_000,
        results=results, ceilings=CEILINGS,
    )  # fmt: skip


HEATS = (
    raced(
        "gemm",
        Result("avial", (0.001, 0.0005, 0.0006), compile_s=0.25),
        Result("gcc", (0.0003, 0.0003, 0.01)),
        Result("numpy", (0.002,)),
    ),
    raced(
        "mvt", Result("avial", (0.001,)), Result("gcc", fault="wrong: x1[0] is 1.0, not 2.0 ± 0.1")
    ),
    raced("lu", Result("avial", (0.001,)), Result("gcc", (0.002,))),
)


# -- the table -------------------------------------------------------------------------------------


def test_the_table() -> None:
    notes = ("left out: C (neither gcc nor clang is installed)",)
    report = Report("SMALL", HEATS, (CEILINGS,), MACHINE, notes)
    assert str(report).splitlines() == [
        "kernel  type  ranks  threads  avial    gcc  numpy     ×  ×least  GFLOP/s  GB/s  roofline",
        "gemm    f64       1        1  0.600  0.300  2.000  0.50    0.60     3.33  0.17       33%",
        "mvt     f64       1        1  1.000  fault      -     -       -     2.00  0.10       20%",
        "lu      f64       1        1  1.000  2.000      -  2.00    2.00     2.00  0.10       20%",
        "",
        "compile, s  type  ranks  threads  avial   gcc  numpy",
        "gemm        f64       1        1   0.25  0.00   0.00",
        "mvt         f64       1        1   0.00     -      -",
        "lu          f64       1        1   0.00  0.00      -",
        "",
        "geometric mean, f64, 1 rank, 1 thread: 1.00 × the best peer "
        "(2 kernels, worst gemm 0.50 ×)",
        "geometric mean, f64, 1 rank, 1 thread: 1.00 × gcc (2 kernels, worst gemm 0.50 ×)",
        "geometric mean, f64, 1 rank, 1 thread: 3.33 × numpy (1 kernel, worst gemm 3.33 ×)",
        "A <processor>, x86_64, 2 cores (4 threads), L1 32 KiB, L3 32 MiB for 2 cores",
        "ceilings, 1 thread, f64: 10.0 GFLOP/s (fused multiply-adds in vectors of 256 bits), "
        "1.0 GB/s (STREAM triad), 5.0 GB/s (triad in L2)",
        "mvt: gcc: wrong: x1[0] is 1.0, not 2.0 ± 0.1",
        "left out: C (neither gcc nor clang is installed)",
    ]


def test_medians_and_the_best_peer() -> None:
    first = HEATS[0]
    assert first.ratio == pytest.approx(0.5)
    assert first.best is not None
    assert first.best.contestant == "gcc"
    assert HEATS[1].ratio is None


def test_our_own_on_one_rank_is_no_peer() -> None:
    wide = raced(
        "gemm", Result("avial", (0.002,)), Result(ALONE, (0.001,)), Result("gcc", (0.004,))
    )
    assert wide.best is not None
    assert wide.best.contestant == "gcc"
    assert [(mean.against, mean.ratio) for mean in means([wide])] == [
        ("", 2.0), (ALONE, 0.5), ("gcc", 2.0),
    ]  # fmt: skip


def test_means_are_of_like_with_like() -> None:
    wide = replace(HEATS[2], threads=2)
    best = [mean for mean in means((*HEATS, wide)) if not mean.against]
    assert [(mean.threads, mean.kernels) for mean in best] == [(1, 2), (2, 1)]


def test_facts_are_json() -> None:
    report = Report("SMALL", HEATS, (CEILINGS,), MACHINE)
    facts = json.loads(json.dumps(report_facts(report, {})))
    assert (facts["format"], facts["version"]) == ("avial-lab race", 2)
    gemm, mvt, _ = facts["heats"]
    ours, gcc, _ = gemm["lanes"]
    assert ours["seconds"] == [0.001, 0.0005, 0.0006]
    assert (ours["least_s"], ours["compile_s"], ours["ours"]) == (0.0005, 0.25, True)
    assert (gcc["ratio"], gcc["roofline"]) == (pytest.approx(0.5), pytest.approx(2 / 3))
    assert gemm["best_peer"] == "gcc"
    assert mvt["lanes"][1] == {
        "contestant": "gcc", "ours": False, "median_s": None, "least_s": None, "seconds": [],
        "compile_s": None, "ratio": None, "flops_per_s": None, "bytes_per_s": None,
        "roofline": None, "fault": "wrong: x1[0] is 1.0, not 2.0 ± 0.1", "note": None,
    }  # fmt: skip
    best = facts["means"][0]
    assert (best["against"], best["kernels"], best["worst_kernel"]) == (None, 2, "gemm")
    assert facts["machine"]["caches"][1] == {"level": 3, "nbytes": 1 << 25, "shared_by": 2}


def test_the_roof_is_the_lower_of_two() -> None:
    assert CEILINGS.seconds(10_000_000_000, 1) == 1
    assert CEILINGS.seconds(1, 2_000_000_000) == 2


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gemm", "--against", "fortran"], "there is no peer 'fortran', only c, numba, numpy"),
        (["gemm", "--threads", "0"], "0 threads: this machine can race from 1 to"),
        (["gemm", "--ranks", "1,99999"], "99999 ranks: this machine can race from 1 to"),
        (["gemm", "--threads", "1;2"], "1;2 is not a list of numbers; expected for example 1,2"),
        (["gemm", "--size", "huge"], "invalid choice: 'HUGE'"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["bench", *arguments])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gem"], "did you mean gemm?"),
        (["gemm", "--element", "f16"], "gemm has no f16 version"),
        (["gemm", "nussinov", "--element", "f64"], "nussinov has no f64 version"),
        (["--json", "gemm"], "--json gemm would write a file of that name"),
        (["gemm", "--without", "magic"], "there is no optional pass 'magic'"),
        (["gemm", "--self"], "bench --self measures avial_lab itself, not gemm"),
    ],
)
def test_bad_questions_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_each_kernel_takes_the_first_type_it_has() -> None:
    configuration = Configuration(size="MINI", against=(), elements=("f64", "i64"))
    rounds = race(["nussinov", "gesummv"], configuration).rounds
    assert [raced.element for raced in rounds] == ["i64", "f64"]


def test_an_unknown_kernel_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "measure_ceilings", pytest.fail)
    with pytest.raises(BindError):
        race(["gemm", "gem"], Configuration())


# -- contestants -----------------------------------------------------------------------------------


def entry(source: str) -> CEntry:
    return CEntry(any_compiler(), source, "peer")


def gemm_source(old: str, new: str) -> str:
    start = kernel_program("gemm", size="MINI")
    text = peer_source(start.kernel, "f32", {"NI": 20, "NJ": 25, "NK": 30}, symbol="peer")
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("C[i][j] *= beta;", "__builtin_abort();", "its process ended with SIGABRT"),
        ("C[i][j] *= beta;", "C[i][j] *= gamma;", "does not build the peer"),
    ],
)
def test_a_fall_is_told(old: str, new: str, said: str) -> None:
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    with pytest.raises(AvialError, match=said):
        BenchmarkWorker(entry(gemm_source(old, new)), start.before, threads=1, places=[root])


def test_a_worker_goes_with_a_race_that_is_killed(tmp_path: Path) -> None:
    """It stands still between two turns: no end of a pipe, no signal but SIGKILL reaches it."""
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    (tmp_path / "start").write_bytes(
        pickle.dumps((entry(gemm_source("", "")), start.before, [root]))
    )
    text = f"""
import pickle, sys
from avial_lab.benchmarks.worker import BenchmarkWorker
entry, before, places = pickle.load(open({str(tmp_path / "start")!r}, "rb"))
worker = BenchmarkWorker(entry, before, threads=1, places=places)
print(worker.process.pid, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as racing:
        assert racing.stdout is not None
        worker = psutil.Process(int(racing.stdout.readline()))
        racing.kill()
    assert_gone([worker])


def test_a_run_begins_with_the_arguments_as_they_were() -> None:
    """gemm adds to C: a second run on what the first one left would differ."""
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    worker = BenchmarkWorker(entry(gemm_source("", "")), start.before, threads=1, places=[root])
    try:
        assert worker.compile_s > 0
        assert worker.run() > 0
        Answer(start).check(worker.arrays())
    finally:
        worker.close()


def test_a_wrong_answer_is_not_timed() -> None:
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    wrong = entry(gemm_source("C[i][j] *= beta;", "C[i][j] *= 2;"))
    worker = BenchmarkWorker(wrong, start.before, threads=1, places=[root])
    try:
        worker.run()
        with pytest.raises(CheckError, match=r"wrong: C\[0, 0\]"):
            Answer(start).check(worker.arrays())
    finally:
        worker.close()


def test_a_small_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    ended: list[Round] = []
    configuration = Configuration(size="MINI", against=("c", "numpy"), on_round=ended.append)
    report = race(["gesummv"], configuration)
    (only,) = report.rounds
    assert ended == [only]
    assert {result.contestant for result in only.results} >= {"avial", "numpy"}
    for result in only.results:
        assert not result.fault
        assert len(result.seconds) >= rounds_of.LEAST_RUNS
        assert all(second > 0 for second in result.seconds)


def test_a_wrong_peer_is_a_result_without_times(monkeypatch: pytest.MonkeyPatch) -> None:
    source = contestants.peer_source

    def broken(*arguments: Any, **options: Any) -> str:
        text = source(*arguments, **options)
        assert "alpha * first" in text
        return text.replace("alpha * first", "first")

    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    monkeypatch.setattr(contestants, "peer_source", broken)
    (only,) = race(["gesummv"], Configuration(size="MINI", against=("c",))).rounds
    ours, *peers = only.results
    assert ours.seconds
    assert peers
    for result in peers:
        assert result.fault.startswith("wrong: y[0] is ")
        assert not result.seconds
    assert only.ratio is None


def own_worker(start: KernelProgram, *, threads: int = 1) -> BenchmarkWorker:
    built = compilation.compile(
        start.text,
        arrays=start.arrays,
        scalars=start.scalars,
        function=start.function,
        ranks=1,
    )
    root = str(peer_folder(start.kernel).parent.parent)
    return BenchmarkWorker(OwnEntry(built.binary, threads), start.before, threads=1, places=[root])


def test_threads_reach_our_own_program() -> None:
    start = kernel_program("gesummv", size="MINI")
    with closing(own_worker(start)) as worker:
        Answer(start).check(worker.arrays())
    with pytest.raises(AvialError, match="100000 threads for a rank is an invalid value"):
        own_worker(start, threads=100_000)


def test_our_own_options_reach_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def compile(*_: object, **options: object) -> object:
        asked.append(options)
        raise AvialError("enough")

    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    monkeypatch.setattr(compilation, "compile", compile)
    configuration = Configuration(size="MINI", against=(), without="all", strict=True, threads=(2,))
    report = race(["gesummv"], configuration)
    assert [(o["without"], o["strict"], o["ranks"]) for o in asked] == [("all", True, 1)] * 2
    assert [result.fault for result in report.rounds[0].results] == ["enough"] * 2
    assert report.notes[-2:] == ("avial without all", "avial with strict arithmetic")


def test_who_fails_in_a_run_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others come home, and the race goes on."""
    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    arrays, run = BenchmarkWorker.arrays, BenchmarkWorker.run
    entered: list[BenchmarkWorker] = []
    asked: list[BenchmarkWorker] = []

    def checked(worker: BenchmarkWorker) -> dict[str, np.ndarray]:
        entered.append(worker)
        return arrays(worker)

    def fall(worker: BenchmarkWorker) -> float:
        asked.append(worker)
        if worker is entered[0] and asked.count(worker) > 1:
            worker.process.kill()
        return run(worker)

    monkeypatch.setattr(BenchmarkWorker, "arrays", checked)
    monkeypatch.setattr(BenchmarkWorker, "run", fall)
    report = race(["gesummv"], Configuration(size="MINI", against=("numpy",)))
    ours, *others = report.rounds[0].results
    assert ours.fault == "its process ended with SIGKILL"
    assert not ours.seconds
    assert all(result.seconds for result in others)
    assert report.rounds[0].ratio is None


class Fake:
    """A contestant whose every run takes, by its own word, that long."""

    note = ""
    compile_s = 0.0

    def __init__(self, second: float) -> None:
        self.second = second

    def run(self) -> float:
        return self.second

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    def close(self) -> None:
        return


def test_everybody_runs_five_times_but_who_is_far_behind() -> None:
    said = {"avial": 0.2, "gcc": 0.001, "numpy": 1.5, "numba": 0.03}
    results = {name: Result(name) for name in said}
    done = rounds_of.run_alternately({name: Fake(second) for name, second in said.items()}, results)
    assert {name: len(result.seconds) for name, result in done.items()} == {
        "avial": 5, "gcc": rounds_of.MOST_RUNS, "numpy": 2, "numba": 17,
    }  # fmt: skip
    assert done["numpy"].note == "2 runs only, being far slower"
    assert not done["gcc"].note


def test_nobody_always_runs_behind_the_same_one() -> None:
    """Who has filled the caches would decide."""
    ran: list[str] = []

    class Recorded(Fake):
        def __init__(self, name: str) -> None:
            super().__init__(0.03)
            self.name = name

        def run(self) -> float:
            ran.append(self.name)
            return super().run()

    names = ("avial", "gcc", "numpy")
    rounds_of.run_alternately(
        {name: Recorded(name) for name in names}, {name: Result(name) for name in names}
    )
    rounds = [ran[k : k + 3] for k in range(0, len(ran), 3)]
    assert all(sorted(each) == sorted(names) for each in rounds)
    assert {(one, other) for one, other in pairwise(ran) if one != other} == set(
        permutations(names, 2)
    )


def test_a_short_run_is_told_by_the_next() -> None:
    """That wakes its threads and has its arrays back in the caches, the contestant's own."""

    class Waking(Fake):
        runs = 0

        def run(self) -> float:
            self.runs += 1
            return self.second if self.runs % 2 else self.second / 2

    results = {name: Result(name) for name in ("avial", "gcc")}
    done = rounds_of.run_alternately({"avial": Waking(0.01), "gcc": Fake(0.1)}, results)
    assert set(done["avial"].seconds) == {0.005}
    assert set(done["gcc"].seconds) == {0.1}


def test_who_gives_no_answer_is_left() -> None:
    start = kernel_program("gemm", size="MINI")
    stuck = entry(gemm_source("C[i][j] *= beta;", "for (volatile int k = 0;; k++);"))
    root = str(peer_folder(start.kernel).parent.parent)
    with pytest.raises(AvialError, match=r"no answer in 3 s"):
        BenchmarkWorker(stuck, start.before, threads=1, places=[root], limit_s=3)


def test_an_interrupt_keeps_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    ran = [HEATS[0]]

    def round_or_interrupt(*_: object) -> Round:
        if ran:
            return ran.pop()
        raise KeyboardInterrupt

    monkeypatch.setattr(race_module, "run_round", round_or_interrupt)
    report = race(["gemm", "mvt"], Configuration(size="MINI"))
    assert report.rounds == (HEATS[0],)
    assert report.notes[-1] == "interrupted after 1 of 2 rounds"
    assert not report.whole


@pytest.mark.slow
def test_ceilings_are_those_of_a_machine() -> None:
    """Wide bounds: they catch a loop that the compiler took away, or a wrong unit."""
    ceilings = measure_ceilings(1, "f32")
    assert 1e8 < ceilings.flops_per_s < 1e13
    assert 1e8 < ceilings.bytes_per_s < 1e13
    assert all(1e8 < rate < 1e14 for _, rate in ceilings.cache_bytes_per_s)
    assert ceilings.vector_bits in (128, 256, 512)


@pytest.mark.parametrize("name", ["trmm", "jacobi-1d"])
def test_what_is_given_of_a_part_of_an_array_is_there_in_each_run(name: str) -> None:
    """The engine puts it into memory of its own, whose other elements are written wrong."""
    start = kernel_program(name, size="MINI")
    with closing(own_worker(start)) as worker:
        for _ in range(2):
            worker.run()
            Answer(start).check(worker.arrays())
