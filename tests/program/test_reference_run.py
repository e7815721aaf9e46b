"""Where MPI does not start: the same program as its reference, without anything like a rank."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab import plot
from avial_lab.core.errors import ClusterError
from avial_lab.lessons.demo import deck_text
from avial_lab.notebook.display import show_program, show_trace
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.reference_run import OneProcess, start_or_reference
from avial_lab.program.session import use_cluster


@pytest.fixture(params=["no such launcher", "one that fails"])
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OneProcess:
    """What there is where mpiexec is missing, or fails."""
    missing = request.param == "no such launcher"
    monkeypatch.setenv("MPIEXEC", "no-such-mpiexec" if missing else "false")
    place = start_or_reference(cpu=2, gpu=1)
    assert isinstance(place, OneProcess)
    assert ("'mpiexec' was not found" if missing else "the engines stopped") in place.reason
    return place


@pytest.mark.quick("no such launcher")
def test_the_same_values_and_no_timeline(alone: OneProcess, tmp_path: Path) -> None:
    arrays = {name: np.arange(20, dtype=np.int32) for name in "abcd"}
    a, b = arrays["a"], arrays["b"]
    program = avial_lab.compile(deck_text(), arrays=arrays, topology=alone.topology)
    trace = program.run(alone, check=True)
    assert (arrays["d"] == (a + b) + a * b).all()
    assert (trace.ranks, trace.events, trace.counted) == (0, (), None)
    assert program.check_report is None
    for shown in (show_program(program), show_trace(trace)):
        for text in (shown["text/html"], shown["text/plain"]):
            assert "reference run, one process: MPI could not start" in text
            assert "so nothing is compared" in text
            assert "measured" not in text
            assert "Timeline" not in text
    page = program.report(tmp_path / "page.html").read_text()
    assert "reference run, one process" in page
    assert "from first start to last end" not in page


def test_only_what_is_written_changes(alone: OneProcess) -> None:
    """An array may be read-only, and one dimension a view with gaps."""
    rod, wide = np.arange(12.0), np.zeros((12, 3))
    rod.flags.writeable = False
    text = """func.func @double(%rod: memref<12xf64>, %out: memref<12xf64>) {
      affine.for %i = 2 to 10 {
        %x = affine.load %rod[%i] : memref<12xf64>
        %y = arith.addf %x, %x : f64
        affine.store %y, %out[%i] : memref<12xf64>
      }
      return
    }"""
    out = wide[:, 1]
    out[:] = -1
    program = avial_lab.compile(text, arrays={"rod": rod, "out": out}, ranks=3)
    program.run(alone)
    assert list(out[2:10]) == [2 * k for k in range(2, 10)]
    assert list(out[[0, 1, 10, 11]]) == [-1] * 4
    assert not wide[:, [0, 2]].any()
    assert program.plan is not None
    assert "planned" in plot.plan_text(program.plan, program.trace and program.trace.counted)


@avial_lab.program(ranks=1)
def pick(a, places):
    total = 0.0
    for k in places:
        total += a[k]
    return total


def test_what_python_raises_where_no_rank_is(alone: OneProcess) -> None:
    """An index outside is an assertion; the compiler's process outlives it."""
    a = np.arange(8.0)
    use_cluster(alone)
    try:
        assert pick(a, np.array([1, -1])) == 8.0
        process = shared_compiler().pid
        with pytest.raises(IndexError, match="index is out of bounds, size 8") as caught:
            pick(a, np.array([1, -1, 11]))
    finally:
        use_cluster(None)
    assert "total += a[k]" in str(caught.value)
    assert shared_compiler().pid == process


def test_what_can_never_be_is_still_an_error() -> None:
    with pytest.raises(ClusterError, match="is not possible"):
        start_or_reference(cpu=0, gpu=0)
