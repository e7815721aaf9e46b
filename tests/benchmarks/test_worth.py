"""What passes are worth: what is raced and what is not, what a table says of it, and what is left
when time is over or somebody interrupts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from inline_snapshot import snapshot

from avial_lab.benchmarks.subjects import compile_seconds, foreign_names, subject, subject_names
from avial_lab.benchmarks.worth import Configuration, code_of, worth
from avial_lab.benchmarks.worth_table import Race, Timed, Worth, worth_facts, worth_of
from avial_lab.cli.main import main
from avial_lab.compiler.catalogue import OPTIONAL
from avial_lab.core.errors import AvialError, CheckError
from avial_lab.machine.host import CacheLevel, Machine

MACHINE = Machine("A processor", "x86_64", 2, 4, (CacheLevel(1, 32768, 1),))
PASSES = ("jam-for-stores", "pack-operands", "tile-time", "jam-for-loads")


# -- the method, with programs that are none -------------------------------------------------------


class FakeSubject:
    """A program whose code is "x", or what stands in `codes` without a pass."""

    element = "f64"

    def __init__(self, name: str, codes: Mapping[str, str]) -> None:
        self.name, self.codes = name, codes
        self.compilations: list[str] = []

    def compiled(self, ranks: int, without: str = "") -> Any:
        self.compilations.append(without)
        code = self.codes.get(without, "x")
        if code == "interrupt":
            raise KeyboardInterrupt
        if code == "refused":
            raise AvialError("it cannot be\ncompiled")
        steps = [SimpleNamespace(name="jam-for-stores{depth=2}", seconds=0.25)] * 2
        stage = SimpleNamespace(passes=(*steps, SimpleNamespace(name="cse", seconds=9.0)))
        return SimpleNamespace(
            stages={"llvmir": SimpleNamespace(text=code)}, inside=SimpleNamespace(stages=(stage,))
        )

    def check(self, compiled: Any, arrays: Mapping[str, np.ndarray]) -> None:
        if code_of(compiled) == "wrong":
            raise CheckError("wrong: C[0] is 1.0, not 2.0")


class FakeRunner:
    compile_s, note = 0.0, ""

    def __init__(self, second: float) -> None:
        self.second, self.closed = second, False

    def run(self) -> float:
        return self.second

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    def close(self) -> None:
        self.closed = True


class Stand:
    """Programs by name, and how long each code takes; everybody who was built."""

    seconds: Mapping[str, float] = {"x": 0.2, "slow": 0.4, "same": 0.2, "wrong": 0.1, "short": 1e-6}

    def __init__(self, **programs: Mapping[str, str]) -> None:
        self.subjects = {name: FakeSubject(name, codes) for name, codes in programs.items()}
        self.built: list[tuple[str, str]] = []
        self.runners: list[FakeRunner] = []

    def find(self, name: str, size: str, elements: object) -> Any:
        return self.subjects[name]

    def build(self, of: Any, compiled: Any, ranks: int, threads: int) -> FakeRunner:
        self.built.append((of.name, code_of(compiled)))
        self.runners.append(FakeRunner(self.seconds[code_of(compiled)]))
        return self.runners[-1]

    def worth(self, **configuration: Any) -> Worth:
        chosen = Configuration(passes=PASSES, find=self.find, build=self.build, **configuration)
        return worth(tuple(self.subjects), chosen)


def test_a_slower_program_is_seen_and_an_equal_one_not_raced() -> None:
    stand = Stand(gemm={"jam-for-stores": "slow", "pack-operands": "same"})
    report = stand.worth()
    assert stand.built == [("gemm", "x"), ("gemm", "slow"), ("gemm", "same")]
    rows = {row.name: row for row in report.rows}
    assert rows["jam-for-stores"].gains == {"gemm": 2.0}
    assert rows["pack-operands"].gains == {"gemm": 1.0}
    assert rows["tile-time"].changed == 0
    assert rows["jam-for-stores"].compile_s == 0.5  # in both places where it stands
    assert report.whole
    assert all(runner.closed for runner in stand.runners)


def test_the_same_code_is_raced_once() -> None:
    stand = Stand(gemm={"jam-for-stores": "slow", "pack-operands": "slow"})
    report = stand.worth()
    assert stand.built == [("gemm", "x"), ("gemm", "slow")]
    assert [(r.left_out, r.gain) for r in report.programs[0].races] == [
        ("jam-for-stores", 2.0), ("pack-operands", 2.0),
    ]  # fmt: skip


def test_a_wrong_answer_is_not_raced() -> None:
    report = Stand(gemm={"jam-for-stores": "wrong", "tile-time": "refused"}).worth()
    assert report.faults == (
        "gemm without jam-for-stores: wrong: C[0] is 1.0, not 2.0",
        "gemm without tile-time: it cannot be; compiled",
    )
    assert report.rows[0].mark == "faults alone"


def test_what_is_too_short_is_skipped_with_the_reason() -> None:
    stand = Stand(small={"": "short", "jam-for-stores": "slow"})
    report = stand.worth()
    assert report.remarks == ("skipped: small: over in 1.0 µs",)
    assert {row.mark for row in report.rows} == {"not raced"}
    assert stand.subjects["small"].compilations == [""]


def test_a_program_that_is_wrong_with_all_passes_does_not_end_the_others() -> None:
    report = Stand(bad={"": "wrong"}, good={"jam-for-stores": "slow"}).worth()
    assert report.remarks == ("skipped: bad: wrong: C[0] is 1.0, not 2.0",)
    assert report.rows[0].gains == {"good": 2.0}


def test_what_the_time_was_over_for_is_told() -> None:
    ticks = iter((0, 1, 2, 3, 10, 11))
    report = Stand(one={"jam-for-stores": "slow"}, two={}, three={}).worth(
        seconds=9.0, clock=lambda: next(ticks)
    )
    assert not report.whole
    assert report.remarks == (
        "the time limit was reached",
        "not reached: one without tile-time, jam-for-loads",
        "not reached: two, three",
    )
    assert [row.raced for row in report.rows] == [1, 1, 0, 0]


def test_an_interrupt_leaves_what_was_done() -> None:
    stand = Stand(
        one={"jam-for-stores": "slow"},
        two={"jam-for-stores": "slow", "tile-time": "interrupt"},
        z={},
    )
    report = stand.worth()
    assert report.rows[0].gains == {"one": 2.0, "two": 2.0}
    assert report.unreached == ("z",)
    assert report.remarks == (
        "interrupted at two",
        "not reached: two without tile-time, jam-for-loads",
        "not reached: z",
    )
    assert all(runner.closed for runner in stand.runners)


# -- the table -------------------------------------------------------------------------------------

SHEET = Worth(
    "LARGE",
    1,
    2,
    MACHINE,
    PASSES,
    (
        Timed(
            "gemm",
            "f64",
            tuple((name, 0.001 * k) for k, name in enumerate(PASSES)),
            (
                Race("jam-for-stores", 0.5, 1.0, 0.5, 1.0),
                Race("pack-operands", 1.0, 1.01, 1.0, 1.01),
            ),
        ),
        Timed(
            "lu",
            "f64",
            tuple((name, 0.002) for name in PASSES),
            (
                Race("jam-for-stores", 1.0, 0.5, 1.0, 0.5),
                Race("pack-operands", 1.0, 0.99, 1.0, 0.99),
                Race("jam-for-loads", fault="its process ended with SIGABRT"),
            ),
        ),
        Timed("foreign/no_loops", "f32", skipped="over in 0.4 µs"),
    ),
    ("mvt",),
    ("the time limit was reached",),
)


def test_the_table() -> None:
    assert str(SHEET) == snapshot("""\
pass            changes   mean  least  best  of    worst  of  compile, ms  a program
jam-for-stores        2  1.000  1.000  2.00  gemm   0.50  lu          2.0       1.00  serves gemm alone
pack-operands         2  1.000  1.000  1.01  gemm   0.99  lu          3.0       1.50  < 2 % everywhere
tile-time             0      -      -     -  -         -  -           4.0       2.00  changes nothing here
jam-for-loads         1      -      -     -  -         -  -           5.0       2.50  faults alone

Gains are the time without the pass over that with it, of medians; least: of the fastest runs.
2 programs, LARGE, 1 × 2
A processor, x86_64, 2 cores (4 threads), L1 32 KiB
lu without jam-for-loads: its process ended with SIGABRT
the time limit was reached
skipped: foreign/no_loops: over in 0.4 µs
not reached: mvt\
""")  # noqa: E501


def test_a_pass_for_several_programs_has_no_mark() -> None:
    races = (Race("jam-for-stores", 1.0, 1.5, 1.0, 1.5),)
    both = (Timed("gemm", "f64", races=races), Timed("lu", "f64", races=races))
    assert [row.mark for row in Worth("LARGE", 1, 1, MACHINE, ("jam-for-stores",), both).rows] == [
        ""
    ]


def test_json_round_trip() -> None:
    facts = json.loads(json.dumps(worth_facts(SHEET, {})))
    assert worth_of(facts) == SHEET
    assert (facts["format"], facts["version"]) == ("avial-lab passes", 1)


# -- real programs ---------------------------------------------------------------------------------


def test_foreign_programs_are_there_or_not(tmp_path: Path) -> None:
    assert "foreign/total_of_rows" in foreign_names()
    assert foreign_names(tmp_path) == ()
    assert all("/" not in name for name in subject_names((), foreign=tmp_path))


def test_foreign_programs_have_many_rows_where_they_may() -> None:
    assert subject("foreign/red_and_black", "SMALL", ()).before["arg0"].shape == (1000, 11)
    assert subject("foreign/trip_counts", "SMALL", ()).before["arg0"].max() <= 13


def test_a_foreign_program_is_checked_by_its_reference() -> None:
    of = subject("foreign/affine_parallel", "MINI", ())
    compiled = of.compiled(1)
    after = compiled.reference().data
    arrays = {name: after[name].reshape(array.shape) for name, array in of.before.items()}
    of.check(compiled, arrays)
    arrays["arg1"][0, 0] += 1
    with pytest.raises(CheckError):
        of.check(compiled, arrays)


def test_a_program_that_a_fault_made_plainer_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    plainer = SimpleNamespace(built=SimpleNamespace(fault="a fault in avial_lab (some pass)"))
    monkeypatch.setattr("avial_lab.program.compilation.compile", lambda *_, **__: plainer)
    with pytest.raises(AvialError, match=r"a fault in avial_lab \(some pass\)"):
        subject("gemm", "MINI", ()).compiled(1)


def test_seconds_of_passes_are_those_of_the_compiler() -> None:
    took = compile_seconds(subject("gemm", "MINI", ()).compiled(1), OPTIONAL)
    assert set(took) == set(OPTIONAL)
    assert took["block-contractions"] > 0


def test_a_kernel_without_a_pass_is_other_code_or_the_same() -> None:
    of = subject("gemm", "MEDIUM", ("f64",))
    whole, blocked, same = (
        of.compiled(1, name) for name in ("", "block-contractions", "widen-halos")
    )
    assert code_of(blocked) != code_of(whole)
    assert code_of(same) == code_of(whole)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One race of real programs, from the command line to the file."""
    file = tmp_path / "passes.json"
    told = ["--without", "block-contractions,widen-halos", "--json", str(file)]
    assert main(["bench", "gemm", "--passes", "--size", "MEDIUM", *told]) == 0
    said = capsys.readouterr()
    assert "block-contractions" in said.out
    assert "gemm f32: block-contractions" in said.err
    report = worth_of(json.loads(file.read_text()))
    assert {row.name: row.changed for row in report.rows} == {
        "block-contractions": 1,
        "widen-halos": 0,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gem"], "did you mean gemm?"),
        (["foreign/argmi"], "did you mean foreign/argmin?"),
        (["gemm", "--self"], "bench --passes does not go with --self"),
        (["gemm", "--strict"], "bench --passes does not go with --strict"),
        (["gemm", "--threads", "1,2"], "bench --passes does not go with --threads with several"),
        (["gemm", "--without", "magic"], "there is no optional pass 'magic'"),
        (["--json", "gemm"], "--json gemm would write a file of that name"),
    ],
)
def test_bad_questions_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--passes", *arguments]) == 1
    assert said in capsys.readouterr().err


def test_seconds_are_for_passes_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "gemm", "--seconds", "5"]) == 1
    assert "--seconds is for bench --passes" in capsys.readouterr().err


def test_no_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--passes", "--seconds", "0"])
    assert "0 is not a number of seconds above 0" in capsys.readouterr().err
