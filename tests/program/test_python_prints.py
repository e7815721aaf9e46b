"""`print` in Python functions: what Python prints, once and in order; annotations."""

# ruff: noqa: B007, T201 - as people write functions
# pyright: reportUndefinedVariable=false, reportInvalidTypeForm=false
from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.frontends.python.prints import MOST_WORDS
from avial_lab.core.errors import AvialError
from avial_lab.program import functions
from tests.compiler.frontends.python.comparing import interpreted


def talks(u, k, flag):
    print("begin", k, u.shape, 1.5, None, -7 // 2)
    s = 0.0
    for i in range(u.shape[0]):
        s += u[i, 0]
        if i % 2:
            print(i, s, sep=": ", end=";\n")
    print(f"{s:.3f} and {k!r:>5}", u[0, 1], flag)
    print(u)
    print(u[0] * 2 > 1, (k, s), u.astype(np.float32)[0, 0], u.astype(np.uint8))
    print()
    large = np.zeros((60, 50)) + k
    large[0, 2] = 0.125
    print(large, flush=True)


def test_what_python_prints(capsys: pytest.CaptureFixture[str]) -> None:
    u = np.random.default_rng(1).random((5, 4))
    talks(u, 7, True)
    wanted = capsys.readouterr().out
    interpreted(talks, u, 7, True)
    assert capsys.readouterr().out == wanted


def complex_numbers(c, n):
    for t in range(n):
        print(t, c[t], c)
    assert n < 4, "so many"


def test_calls_of_every_kind_print(capsys: pytest.CaptureFixture[str]) -> None:
    program = avial_lab.program(complex_numbers)
    c = np.array([1 + 2j, 3 - 1j, 0.5j])
    complex_numbers(c, 3)
    wanted = capsys.readouterr().out
    for _ in range(3):  # in a process of its own, then in this one
        program(c, 3)
        assert capsys.readouterr().out == wanted


def endless(a):
    for t in range(20_000):
        print(t)
    a[0] = 1


def test_what_has_no_room_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    interpreted(endless, np.zeros(3))
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [str(t) for t in range(len(lines))]
    assert len(lines) > MOST_WORDS // 3
    assert last == f"… {20_000 - len(lines):,} more prints"


def steps(u, v, n):
    for t in range(n):
        for i in range(1, u.shape[0] - 1):
            v[i] = 0.5 * (u[i - 1] + u[i + 1])
        for i in range(1, u.shape[0] - 1):
            u[i] = v[i]
        if t % 2 == 0:
            print("step", t, f"{u[5]:.4f}")


@pytest.mark.mpi
def test_on_ranks_once_and_loops_stay_divided(capsys: pytest.CaptureFixture[str]) -> None:
    program = avial_lab.program(steps, ranks=2)
    u = np.arange(20.0) ** 2
    steps(u.copy(), np.zeros(20), 5)
    wanted = capsys.readouterr().out
    program(u, np.zeros(20), 5)
    assert capsys.readouterr().out == wanted
    titles = [report.title for report in program.explain().reports if report.depth]
    assert titles == ["divided over the ranks"] * 2


def test_what_was_printed_before_a_failure_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    @avial_lab.program
    def until_big(a):
        for i in range(3):
            print(i, a[i])
            assert a[i] < 2.0, "big"

    for _ in range(2):
        with pytest.raises(AssertionError):
            until_big(np.array([1.0, 3.0, 1.0]))
        assert capsys.readouterr().out == "0 1.0\n1 3.0\n"
    assert "printed" in str(until_big.explain())


def test_what_cannot_be_printed_is_told() -> None:
    with pytest.raises(AvialError, match="print takes sep= and end="):
        interpreted(to_a_file, np.zeros(3))


def to_a_file(a):
    print(a, file=None)


def test_annotations_compile_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    @avial_lab.program
    def halves(a: "f64[n]", b: "f64[n]", k: int):  # noqa: F821, UP037
        for t in range(k):
            for i in range(a.shape[0] // 2):
                b[2 * i] += a[i]
        return b[1:]

    assert len(halves.versions) == 1
    monkeypatch.setattr(functions, "compile_program", None)
    for n in (20, 33):
        a, b = np.arange(float(n)), np.zeros(n)
        wanted = b.copy()
        part = halves.py_func(a, wanted, 3)
        np.testing.assert_array_equal(halves(a, b, 3), part)
        np.testing.assert_array_equal(b, wanted)
