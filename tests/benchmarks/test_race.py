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
from avial_lab.benchmarks import Answer, Course, contestants, race
from avial_lab.benchmarks import rounds as heats
from avial_lab.benchmarks.builders import CEntry, OwnEntry
from avial_lab.benchmarks.c_peers import peer_folder, peer_source
from avial_lab.benchmarks.json_report import sheet_facts
from avial_lab.benchmarks.kernel_suite import KernelProgram, kernel_program
from avial_lab.benchmarks.table import ALONE, Heat, Lane, Sheet, means
from avial_lab.benchmarks.worker import Booth
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


def heat(kernel: str, *lanes: Lane) -> Heat:
    return Heat(
        kernel, "f64", {"N": 10}, ranks=1, threads=1, flops=2_000_000, bytes=100_000,
        lanes=lanes, ceilings=CEILINGS,
    )  # fmt: skip


HEATS = (
    heat(
        "gemm",
        Lane("avial", (0.001, 0.0005, 0.0006), compile_s=0.25),
        Lane("gcc", (0.0003, 0.0003, 0.01)),
        Lane("numpy", (0.002,)),
    ),
    heat("mvt", Lane("avial", (0.001,)), Lane("gcc", fault="wrong: x1[0] is 1.0, not 2.0 ± 0.1")),
    heat("lu", Lane("avial", (0.001,)), Lane("gcc", (0.002,))),
)


# -- the table -------------------------------------------------------------------------------------


def test_the_table() -> None:
    notes = ("left out: C (neither gcc nor clang is installed)",)
    sheet = Sheet("SMALL", HEATS, (CEILINGS,), MACHINE, notes)
    assert str(sheet).splitlines() == [
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
    wide = heat("gemm", Lane("avial", (0.002,)), Lane(ALONE, (0.001,)), Lane("gcc", (0.004,)))
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
    sheet = Sheet("SMALL", HEATS, (CEILINGS,), MACHINE)
    facts = json.loads(json.dumps(sheet_facts(sheet, {})))
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


def test_each_kernel_takes_the_first_type_it_has() -> None:
    course = Course(size="MINI", against=(), elements=("f64", "i64"))
    heats = race(["nussinov", "gesummv"], course).heats
    assert [heat.element for heat in heats] == ["i64", "f64"]


def test_an_unknown_kernel_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "measure_ceilings", pytest.fail)
    with pytest.raises(BindError):
        race(["gemm", "gem"], Course())


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
        Booth(entry(gemm_source(old, new)), start.before, threads=1, places=[root])


def test_a_booth_goes_with_a_race_that_is_killed(tmp_path: Path) -> None:
    """It stands still between two turns: no end of a pipe, no signal but SIGKILL reaches it."""
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    (tmp_path / "start").write_bytes(
        pickle.dumps((entry(gemm_source("", "")), start.before, [root]))
    )
    text = f"""
import pickle, sys
from avial_lab.benchmarks.worker import Booth
entry, before, places = pickle.load(open({str(tmp_path / "start")!r}, "rb"))
booth = Booth(entry, before, threads=1, places=places)
print(booth.process.pid, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as racing:
        assert racing.stdout is not None
        booth = psutil.Process(int(racing.stdout.readline()))
        racing.kill()
    assert_gone([booth])


def test_a_run_begins_with_the_arguments_as_they_were() -> None:
    """gemm adds to C: a second run on what the first one left would differ."""
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    booth = Booth(entry(gemm_source("", "")), start.before, threads=1, places=[root])
    try:
        assert booth.compile_s > 0
        assert booth.run() > 0
        Answer(start).check(booth.arrays())
    finally:
        booth.close()


def test_a_wrong_answer_is_not_timed() -> None:
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    wrong = entry(gemm_source("C[i][j] *= beta;", "C[i][j] *= 2;"))
    booth = Booth(wrong, start.before, threads=1, places=[root])
    try:
        booth.run()
        with pytest.raises(CheckError, match=r"wrong: C\[0, 0\]"):
            Answer(start).check(booth.arrays())
    finally:
        booth.close()


def test_a_small_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    told: list[Heat] = []
    course = Course(size="MINI", against=("c", "numpy"), told=told.append)
    sheet = race(["gesummv"], course)
    (only,) = sheet.heats
    assert told == [only]
    assert {lane.contestant for lane in only.lanes} >= {"avial", "numpy"}
    for lane in only.lanes:
        assert not lane.fault
        assert len(lane.seconds) >= heats.LEAST_RUNS
        assert all(second > 0 for second in lane.seconds)


def test_a_wrong_peer_is_a_lane_without_times(monkeypatch: pytest.MonkeyPatch) -> None:
    source = contestants.peer_source

    def broken(*arguments: Any, **options: Any) -> str:
        text = source(*arguments, **options)
        assert "alpha * first" in text
        return text.replace("alpha * first", "first")

    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    monkeypatch.setattr(contestants, "peer_source", broken)
    (only,) = race(["gesummv"], Course(size="MINI", against=("c",))).heats
    ours, *peers = only.lanes
    assert ours.seconds
    assert peers
    for lane in peers:
        assert lane.fault.startswith("wrong: y[0] is ")
        assert not lane.seconds
    assert only.ratio is None


def own_booth(start: KernelProgram, *, threads: int = 1) -> Booth:
    built = compilation.compile(
        start.text,
        arrays=start.arrays,
        scalars=start.scalars,
        function=start.function,
        ranks=1,
    )
    root = str(peer_folder(start.kernel).parent.parent)
    return Booth(OwnEntry(built.binary, threads), start.before, threads=1, places=[root])


def test_threads_reach_our_own_program() -> None:
    start = kernel_program("gesummv", size="MINI")
    with closing(own_booth(start)) as booth:
        Answer(start).check(booth.arrays())
    with pytest.raises(AvialError, match="100000 threads for a rank is an invalid value"):
        own_booth(start, threads=100_000)


def test_our_own_options_reach_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def compile(*_: object, **options: object) -> object:
        asked.append(options)
        raise AvialError("enough")

    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    monkeypatch.setattr(compilation, "compile", compile)
    course = Course(size="MINI", against=(), without="all", strict=True, threads=(2,))
    sheet = race(["gesummv"], course)
    assert [(o["without"], o["strict"], o["ranks"]) for o in asked] == [("all", True, 1)] * 2
    assert [lane.fault for lane in sheet.heats[0].lanes] == ["enough"] * 2
    assert sheet.notes[-2:] == ("avial without all", "avial with strict arithmetic")


def test_who_falls_in_a_run_is_a_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others come home, and the race goes on."""
    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    arrays, run = Booth.arrays, Booth.run
    entered: list[Booth] = []
    asked: list[Booth] = []

    def checked(booth: Booth) -> dict[str, np.ndarray]:
        entered.append(booth)
        return arrays(booth)

    def fall(booth: Booth) -> float:
        asked.append(booth)
        if booth is entered[0] and asked.count(booth) > 1:
            booth.process.kill()
        return run(booth)

    monkeypatch.setattr(Booth, "arrays", checked)
    monkeypatch.setattr(Booth, "run", fall)
    sheet = race(["gesummv"], Course(size="MINI", against=("numpy",)))
    ours, *others = sheet.heats[0].lanes
    assert ours.fault == "its process ended with SIGKILL"
    assert not ours.seconds
    assert all(lane.seconds for lane in others)
    assert sheet.heats[0].ratio is None


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
    lanes = {name: Lane(name) for name in said}
    done = heats.take_turns({name: Fake(second) for name, second in said.items()}, lanes)
    assert {name: len(lane.seconds) for name, lane in done.items()} == {
        "avial": 5, "gcc": heats.MOST_RUNS, "numpy": 2, "numba": 17,
    }  # fmt: skip
    assert done["numpy"].note == "2 runs only, being far slower"
    assert not done["gcc"].note


def test_nobody_always_runs_behind_the_same_one() -> None:
    """Who has filled the caches would decide."""
    ran: list[str] = []

    class Told(Fake):
        def __init__(self, name: str) -> None:
            super().__init__(0.03)
            self.name = name

        def run(self) -> float:
            ran.append(self.name)
            return super().run()

    names = ("avial", "gcc", "numpy")
    heats.take_turns({name: Told(name) for name in names}, {name: Lane(name) for name in names})
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

    lanes = {name: Lane(name) for name in ("avial", "gcc")}
    done = heats.take_turns({"avial": Waking(0.01), "gcc": Fake(0.1)}, lanes)
    assert set(done["avial"].seconds) == {0.005}
    assert set(done["gcc"].seconds) == {0.1}


def test_who_gives_no_answer_is_left() -> None:
    start = kernel_program("gemm", size="MINI")
    stuck = entry(gemm_source("C[i][j] *= beta;", "for (volatile int k = 0;; k++);"))
    root = str(peer_folder(start.kernel).parent.parent)
    with pytest.raises(AvialError, match=r"no answer in 3 s"):
        Booth(stuck, start.before, threads=1, places=[root], limit_s=3)


def test_an_interrupt_keeps_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    ran = [HEATS[0]]

    def heat_or_interrupt(*_: object) -> Heat:
        if ran:
            return ran.pop()
        raise KeyboardInterrupt

    monkeypatch.setattr(race_module, "run_heat", heat_or_interrupt)
    sheet = race(["gemm", "mvt"], Course(size="MINI"))
    assert sheet.heats == (HEATS[0],)
    assert sheet.notes[-1] == "interrupted after 1 of 2 heats"
    assert not sheet.whole


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
    with closing(own_booth(start)) as booth:
        for _ in range(2):
            booth.run()
            Answer(start).check(booth.arrays())
