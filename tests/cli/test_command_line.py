# ruff: noqa: E501  a line of the table holds a whole mistake
"""`avial-lab run FILE.mlir` as somebody types it who has only the file; and our own kernels by
name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from inline_snapshot import snapshot

from avial_lab.benchmarks import kernel_suite
from avial_lab.cli.arguments import argument_parser
from avial_lab.cli.main import main
from avial_lab.core.errors import BindError, CheckError
from avial_lab.runtime.launch import mpiexec
from avial_lab.trace import EventKind, Trace
from tests.compiler.frontends.mlir.test_functions import HELPERS, POLYGEIST

SUM = """\
func.func @total(%arg0: i32, %arg1: memref<?xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %n = arith.index_cast %arg0 : i32 to index
  %sum = affine.for %i = 0 to %n iter_args(%s = %zero) -> (f32) {
    %x = affine.load %arg1[%i] : memref<?xf32>
    %t = arith.addf %s, %x : f32
    affine.yield %t : f32
  }
  return %sum : f32
}
"""
GATHER = """\
func.func @gather(%index: memref<40xi32>, %from: memref<9xf64>, %to: memref<40xf64>) {
  affine.for %i = 0 to 40 {
    %at_i32 = affine.load %index[%i] : memref<40xi32>
    %at = arith.index_cast %at_i32 : i32 to index
    %x = memref.load %from[%at] : memref<9xf64>
    affine.store %x, %to[%i] : memref<40xf64>
  }
  return
}
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What a command that works prints, and what it says on stderr."""
    code = main(["run", *arguments])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out, err


def fails(*arguments: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["run", *arguments]) == 1
    return capsys.readouterr().err.splitlines()


@pytest.mark.mpi
def test_a_foreign_file_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    Path("scale.mlir").write_text(POLYGEIST)
    out, err = run("scale.mlir", "-n", "3", "--check", capsys=capsys)
    assert "equal to the sequential reference, bit for bit" in out
    assert re.sub(r"arg3 = [\d.]+", "arg3 = …", err) == snapshot("""\
no inputs given: random arg0 = 64, arg1 = 64, arg2 = 64, arg3 = …, arg4 = 64x1000xf32, arg5 = 64x1000xf32, seed 0; set your own with --seed, -D NAME=…, --in NAME=…
""")  # fmt: skip


@pytest.mark.mpi
def test_numbers_arrays_and_results_by_name_and_position(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("sum.mlir").write_text(SUM)
    np.save("x.npy", np.arange(5, dtype=np.float32))
    options = ["--in", "1=x.npy", "-D", "arg0=4", "--check", "--out", "result0=sum.npy", "-n", "2"]
    _, err = run("sum.mlir", *options, capsys=capsys)
    assert err == ""
    assert np.load("sum.npy") == 6


@pytest.mark.mpi
def test_a_sum_says_how_far_it_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sum.mlir").write_text(SUM)
    out, _ = run("sum.mlir", "-n", "3", "--check", "--seed", "5", capsys=capsys)
    assert "equal to the sequential reference" in out


@pytest.mark.mpi
def test_integers_that_are_indices(capsys: pytest.CaptureFixture[str]) -> None:
    Path("gather.mlir").write_text(GATHER)
    _, err = run("gather.mlir", "-n", "2", "--out", "index=i.npy", capsys=capsys)
    assert err.splitlines()[1] == "integers are indices here: drawn again, from 0 to 8"
    assert set(np.load("i.npy")) <= set(range(9))


@pytest.mark.mpi
@pytest.mark.parametrize("n", ["0", "-3"])
def test_a_size_below_one_gives_nothing(n: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sum.mlir").write_text(SUM)
    out, _ = run("sum.mlir", "-n", "2", "-D", f"arg0={n}", "--check", "--out", "result0=s.npy",
                 capsys=capsys)  # fmt: skip
    assert "bit for bit" in out
    assert np.load("s.npy") == 0


@pytest.mark.mpi
def test_one_of_several_functions(capsys: pytest.CaptureFixture[str]) -> None:
    Path("helpers.mlir").write_text(HELPERS)
    _, err = run("helpers.mlir", "--fn", "row", "-D", "i=2", "--in", "x=3xf32", capsys=capsys)
    assert err == ""


def test_a_size_beyond_the_array(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sum.mlir").write_text(SUM)
    err = fails("sum.mlir", "-D", "arg0=6", "--in", "arg1=5xf32", "--check", capsys=capsys)
    assert "dimension 0" in err[0]
    assert "size 5" in err[0]
    assert any("sum.mlir:5:" in line for line in err)


MISTAKES = {
    "number": (["-D", "arg0=x"], snapshot(["BindError: -D arg0: 'x' is not a number", "Hint: for example -D n=100"])),
    "no value": (["-D", "arg0"], snapshot(["BindError: 'arg0' is not NAME=VALUE", "Hint: for example -D n=100"])),
    "twice": (["-D", "arg0=1", "-D", "arg0=2"], snapshot(["BindError: -D arg0 is given twice"])),
    "two ways": (["-D", "arg0=1", "--in", "arg0=2"], snapshot(["BindError: 'arg0' is given by --in and by -D", "Hint: leave one out"])),
    "unknown": (["-D", "arg9=1"], snapshot(["BindError: number 'arg9' is not a buffer of the program", "sum.mlir:1:1", "func.func @total(%arg0: i32, %arg1: memref<?xf32>) -> f32 {", "^", "Hint: did you mean arg1?"])),
    "function": (["--fn", "totl"], snapshot(["VerifyError: the program has no function @totl", "sum.mlir:1:1", "func.func @total(%arg0: i32, %arg1: memref<?xf32>) -> f32 {", "^", "Hint: did you mean total?"])),
    "dtype": (["--in", "arg1=5xf64"], snapshot(["BindError: %arg1 is written memref<?xf32>, but the array 'arg1' holds f64", "sum.mlir:1:30", "func.func @total(%arg0: i32, %arg1: memref<?xf32>) -> f32 {", "                             ^", "Hint: write %arg1: memref<5xf64>, or leave the type out"])),
    "rank": (["--in", "arg1=5x2xf32"], snapshot(["BindError: %arg1 is written memref<?xf32>, but the array 'arg1' has 2 dimensions", "sum.mlir:1:30", "func.func @total(%arg0: i32, %arg1: memref<?xf32>) -> f32 {", "                             ^", "Hint: write %arg1: memref<5x2xf32>, or leave the type out"])),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_before_any_rank_starts(
    mistake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("sum.mlir").write_text(SUM)
    monkeypatch.setattr(mpiexec, "run", None)
    options, expected = MISTAKES[mistake]
    err = fails("sum.mlir", *options, capsys=capsys)
    assert [line for line in err if "inputs given: random" not in line] == expected


# Kernels ------------------------------------------------------------------------------------------


@pytest.mark.quick("gemm")
@pytest.mark.mpi
@pytest.mark.parametrize("program", ["gemm", "kernels/gemm", str(kernel_suite._FOLDER / "gemm")])
def test_a_kernel_by_name(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = run(program, "-n", "3", "--check", "-D", "nk=7", "--size", "mini", capsys=capsys)
    assert err == "gemm: NI = 20, NJ = 25, NK = 7, f32, random inputs, seed 0\n"
    assert out.splitlines()[-1] == "equal to NumPy, within the bound of its roundings (C)"
    assert "equal to the sequential reference" in out.splitlines()[-2]


def test_a_kernel_is_tuned_and_the_result_is_right(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    out, err = run("gemm", "-n", "1", "--tune", "2", "--threads", "1", "--check", capsys=capsys)
    assert re.search(r"tuned on \d+-\d+-\d+: .*alternatives? tried", err)
    assert "bit for bit" in out
    assert main(["run", "gemm", "-n", "1", "--tune", "0"]) == 1
    assert "up to 86,400 s" in capsys.readouterr().err
    assert main(["run", "gemm", "-n", "1", "--sizes", "block-contractions{terms=0}"]) == 1
    assert "from 1 to 65,536" in capsys.readouterr().err


def test_a_kernel_with_numbers_and_arrays_of_ones_own() -> None:
    program = kernel_suite.kernel_program("gemm", size="MINI", element="f64", numbers={"beta": 0})
    assert program.scalars["beta"] == 0
    assert "%A: memref<20x30xf64>" in program.text
    program.replace({"A": np.ones((20, 30))})
    result = {name: value.copy() for name, value in program.arrays.items()}
    result["C"] = program.scalars["alpha"] * (np.ones((20, 30)) @ program.arrays["B"])
    assert program.compare(result) == "equal to NumPy, within the bound of its roundings (C)"
    result["C"][3, 4] += 1e-9
    with pytest.raises(CheckError, match=r"in 1 of 500 elements of 'C', first at \[3, 4\]"):
        program.compare(result)


@pytest.mark.parametrize(
    ("name", "options", "message", "hint"),
    [
        ("gem", {}, "there is no file and no kernel 'gem'", "did you mean gemm?"),
        ("gemm", {"element": "i8"}, "gemm has no i8 version", "there are f32, f64, i32"),
        ("gemm", {"numbers": {"alhpa": 3}}, "gemm has no number alhpa", "did you mean alpha?"),
        ("gemm", {"numbers": {"NI": 0}}, "the sizes of gemm are at least 1", None),
        ("gemm", {"numbers": {"NI": 2.5}}, "NI=2.5 is no size", "sizes are whole numbers"),
    ],
)
def test_a_kernel_that_is_not_there(
    name: str, options: dict[str, object], message: str, hint: str | None
) -> None:
    with pytest.raises(BindError) as caught:
        kernel_suite.kernel_program(name, **options)  # type: ignore[arg-type]
    assert caught.value.message.startswith(message)
    assert caught.value.hint == hint


def test_an_installed_package_has_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_suite, "_FOLDER", Path("site-packages/kernels").absolute())
    with pytest.raises(BindError, match=r"there is no folder .* of kernels") as caught:
        kernel_suite.kernel_program("gemm")
    assert caught.value.hint == "kernels come with the repository, not with the installed package"


def test_an_array_that_does_not_fit_a_kernel() -> None:
    program = kernel_suite.kernel_program("gemm", size="MINI")
    with pytest.raises(BindError, match=r"A of gemm has shape \(20, 30\) and holds float32"):
        program.replace({"A": np.ones((20, 30))})
    with pytest.raises(BindError, match="gemm has no array Z"):
        program.replace({"Z": np.ones(3)})


# Without a run ------------------------------------------------------------------------------------


def test_the_graph_of_a_plain_function(capsys: pytest.CaptureFixture[str]) -> None:
    Path("scale.mlir").write_text(POLYGEIST)
    assert main(["graph", "scale.mlir"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "1 task in 1 level, 0 edges"


def test_a_function_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    Path("none.mlir").write_text("func.func @f() { return }")
    assert main(["lower", "none.mlir", "--to", "llvmir"]) == 0
    out, err = capsys.readouterr()
    assert "define" in out
    assert err == ""


@pytest.mark.mpi
def test_what_happened_when_goes_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run("gemm", "--size=mini", "-n", "2", "--trace=t.json", capsys=capsys)
    trace = Trace.load("t.json")
    assert trace.ranks == 2
    assert {event.rank for event in trace.events if event.kind is EventKind.TASK} == {0, 1}
    assert {event.name for event in trace.around} == {"set up the inputs", "take the results"}
    assert 0 < trace.clock_error_s < 1e-3
    assert "Critical path, as measured" in out


@pytest.mark.mpi
def test_no_times_are_taken_where_none_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = run("gemm", "--size=mini", "-n", "2", "--no-trace", "--check", capsys=capsys)
    assert "measured: no times were recorded" in out
    assert "bit for bit" in out
    with pytest.raises(SystemExit):
        main(["run", "gemm", "--no-trace", "--trace=t.json"])
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("rnu gemm", "run"),
        ("run --chek", "--check"),
        ("run gemm --rnaks=3", "--ranks"),
        ("graph gemm --format=svgg", "svg"),
    ],
)
def test_a_wrong_word_offers_the_neighbour(
    line: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(line.split())
    assert capsys.readouterr().err.endswith(f"did you mean {near}?\n")


def test_what_is_handed_on_is_not_judged() -> None:
    """`avial-lab lab` has options that JupyterLab knows."""
    given = argument_parser().parse_args(["lab", "--", "--no-browser", "--prot=1"])
    assert given.rest[-1] == "--prot=1"


def test_a_terminal_that_has_few_letters(tmp_path: Path) -> None:
    """Of another locale than UTF-8: an answer, or an error without a traceback."""
    program = tmp_path / "wrong.mlir"
    program.write_text("func.func @f(%A: memref<8xf64>) {\n  affine.store %x, %A[0]\n  return\n}\n")
    narrow = {"PYTHONIOENCODING": "iso-8859-1", "PYTHONUTF8": "0", "LC_ALL": "C"}
    environment = {**os.environ, **narrow, "PYTHONCOERCECLOCALE": "0"}
    for arguments in (("passes",), ("run", str(program), "--in", "A=8xf64", "-n", "1")):
        done = subprocess.run(
            [sys.executable, "-m", "avial_lab", *arguments],
            env=environment, capture_output=True, text=True, encoding="latin-1", check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        assert "fault in avial_lab" not in done.stderr
        assert done.returncode == (0 if arguments == ("passes",) else 1)
