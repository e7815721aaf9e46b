"""The race: its table, its refusals, and that a contestant's fall is only its own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from avial_lab import race as race_module
from avial_lab.__main__ import main
from avial_lab.errors import AvialError, BindError, CheckError
from avial_lab.race import Course, race
from avial_lab.race.booth import Booth
from avial_lab.race.ceilings import Ceilings, measure_ceilings
from avial_lab.race.entry import CEntry
from avial_lab.race.native import any_compiler, peer_folder, peer_source
from avial_lab.race.table import Heat, Lane, Sheet, geometric_means
from avial_lab.suite import kernel_program

CEILINGS = Ceilings(threads=1, element="f64", flops_per_s=10e9, bytes_per_s=1e9)


def heat(kernel: str, *lanes: Lane) -> Heat:
    return Heat(
        kernel, "f64", {"N": 10}, ranks=1, threads=1, flops=2_000_000, bytes=100_000,
        lanes=lanes, ceilings=CEILINGS,
    )  # fmt: skip


HEATS = (
    heat(
        "gemm",
        Lane("avial", (0.001, 0.0005, 0.0006)),
        Lane("gcc", (0.0003, 0.0003, 0.01)),
        Lane("numpy", (0.002,)),
    ),
    heat("mvt", Lane("avial", (0.001,)), Lane("gcc", fault="wrong: x1[0] is 1.0, not 2.0 ± 0.1")),
    heat("lu", Lane("avial", (0.001,)), Lane("gcc", (0.002,))),
)


# -- the table -------------------------------------------------------------------------------------


def test_the_table() -> None:
    sheet = Sheet("SMALL", HEATS, (CEILINGS,), ("left out: C, there is neither gcc nor clang",))
    assert str(sheet).splitlines() == [
        "kernel  type  ranks  threads  avial    gcc  numpy     ×  GFLOP/s  GB/s  roofline",
        "gemm    f64       1        1  0.600  0.300  2.000  0.50     3.33  0.17       33%",
        "mvt     f64       1        1  1.000  fault      -     -     2.00  0.10       20%",
        "lu      f64       1        1  1.000  2.000      -  2.00     2.00  0.10       20%",
        "geometric mean, f64, 1 rank, 1 thread: 1.00 × the best peer (2 kernels)",
        "ceilings, 1 thread, f64: 10.0 GFLOP/s (fused multiply-adds), 1.0 GB/s (STREAM triad)",
        "mvt: gcc: wrong: x1[0] is 1.0, not 2.0 ± 0.1",
        "left out: C, there is neither gcc nor clang",
    ]


def test_medians_and_the_best_peer() -> None:
    first = HEATS[0]
    assert first.ratio == pytest.approx(0.5)
    assert first.best is not None
    assert first.best.contestant == "gcc"
    assert HEATS[1].ratio is None


def test_means_are_of_like_with_like() -> None:
    wide = replace(HEATS[2], threads=2)
    assert [(r, t, n) for r, t, _, _, n in geometric_means((*HEATS, wide))] == [
        (1, 1, 2),
        (1, 2, 1),
    ]


def test_facts_are_json() -> None:
    facts = json.loads(json.dumps(Sheet("SMALL", HEATS, (CEILINGS,)).facts()))
    gemm, mvt, _ = facts["heats"]
    assert gemm["lanes"][0]["seconds"] == [0.001, 0.0005, 0.0006]
    assert gemm["best_peer"] == "gcc"
    assert mvt["lanes"][1] == {
        "contestant": "gcc", "median_s": None, "seconds": [], "compile_s": 0.0,
        "fault": "wrong: x1[0] is 1.0, not 2.0 ± 0.1",
    }  # fmt: skip
    assert facts["geometric_means"][0]["of"] == 2


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
        (["gemm", "--threads", "1;2"], "1;2 is no list of numbers like 1,2"),
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
        (["gemm", "--self"], "bench --self measures the lab, not gemm"),
    ],
)
def test_bad_questions_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 1
    assert said in capsys.readouterr().err


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


def test_a_run_begins_with_the_arguments_as_they_were() -> None:
    """gemm adds to C: a second run on what the first one left would differ."""
    start = kernel_program("gemm", size="MINI")
    root = str(peer_folder(start.kernel).parent.parent)
    booth = Booth(entry(gemm_source("", "")), start.before, threads=1, places=[root])
    try:
        assert booth.built.compile_s > 0
        assert booth.run() > 0
        race_module.Answer(start).check(booth.arrays())
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
            race_module.Answer(start).check(booth.arrays())
    finally:
        booth.close()


def test_a_small_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "measure_ceilings", lambda *_: CEILINGS)
    heats: list[Heat] = []
    course = Course(size="MINI", against=("c", "numpy"), told=heats.append)
    sheet = race(["gesummv"], course)
    (only,) = sheet.heats
    assert heats == [only]
    assert {lane.contestant for lane in only.lanes} >= {"avial", "numpy"}
    for lane in only.lanes:
        assert not lane.fault
        assert len(lane.seconds) >= race_module.LEAST_RUNS
        assert all(second > 0 for second in lane.seconds)


@pytest.mark.slow
def test_ceilings_are_those_of_a_machine() -> None:
    """Wide bounds: they catch a loop that the compiler took away, or a wrong unit."""
    ceilings = measure_ceilings(1, "f32")
    assert 1e8 < ceilings.flops_per_s < 1e13
    assert 1e8 < ceilings.bytes_per_s < 1e13
