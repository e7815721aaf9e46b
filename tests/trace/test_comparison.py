"""A prediction beside runs: medians, ratios, causes."""

from __future__ import annotations

from avial_lab import plot
from avial_lab.trace import Event, EventKind, Trace
from avial_lab.trace.comparison import Comparison


def _trace(label: str, *seconds: float) -> Trace:
    """Task k on rank k, all from 0 on."""
    events = tuple(
        Event(EventKind.TASK, f"t{k}", k, f"cpu{k}", 0.0, each) for k, each in enumerate(seconds)
    )
    return Trace(len(seconds), events, label)


PREDICTED = _trace("simulated on <a test>", 1.0, 2.0, 1e-6)


def _compared(*runs: tuple[float, float, float]) -> Comparison:
    sources = {"t0": "roofline", "t1": "profile", "t2": "guessed"}
    return Comparison(PREDICTED, tuple(_trace("measured", *run) for run in runs), sources)


def test_medians_ratios_and_spread() -> None:
    found = _compared((2.0, 2.0, 1e-6), (2.2, 2.1, 1e-6), (2.1, 9.0, 1e-6))
    by_name = {task.name: task for task in found.tasks}
    assert by_name["t0"].ratio == 1.0 / 2.1
    assert by_name["t1"].measured_s == 2.1
    assert found.measured.makespan_s == 2.2
    assert [task.name for task in found.tasks] == ["t0", "t1", "t2"]
    assert "3 runs" in found.summary


def test_causes_of_the_largest_errors() -> None:
    assert dict(_compared((2.0, 2.0, 1e-6)).errors) == {
        "t0": "contention, or caches: it ran beside t1, t2"
    }
    assert "noise" in dict(_compared((9.0, 2.0, 0), (1.0, 2.0, 0), (1.8, 2.0, 0)).errors)["t0"]
    assert "launch" in dict(_compared((1.0, 2.0, 4e-6)).errors)["t2"]
    assert "operations are not known" in dict(_compared((1.0, 2.0, 1.0)).errors)["t2"]
    assert not _compared((1.1, 2.2, 1e-6)).errors


def test_it_is_drawn_on_one_axis_and_escaped() -> None:
    html = plot.comparison_figure(_compared((4.0, 2.0, 1e-6)))
    assert "<a test>" not in html
    assert html.count("data:image/svg+xml") == 2


def test_a_run_without_ranks_has_nothing_to_compare() -> None:
    """Where MPI could not start, the reference ran in its place."""
    found = Comparison(PREDICTED, (Trace(0, (), "reference run, <why>"),), {})
    assert str(found) == "predicted 2 s; reference run, <why>"
    assert "measured" not in repr(found)
    html = plot.comparison_figure(found)
    assert "<why>" not in html
    assert html.count("data:image/svg+xml") == 1
