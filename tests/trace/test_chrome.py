"""The file for Perfetto: held against the description of Chrome's trace event format.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import resource
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from avial_lab.core.errors import AvialError
from avial_lab.trace import Event, EventKind, Move, Total, Trace
from avial_lab.trace.analysis import links
from avial_lab.trace.chrome import save_trace
from tests.trace.runs import runs

KEYS = {
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": float, "dur": float, "args": dict},
    "M": {"name": str, "pid": int, "tid": int, "ts": int, "args": dict},
    "s": {"name": str, "cat": str, "pid": int, "tid": int, "ts": float, "id": int},
    "f": {"name": str, "cat": str, "pid": int, "tid": int, "ts": float, "id": int, "bp": str},
}
"""What an event of each phase must have, and nothing else."""

SLOW_DISK = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def checked(path: Path) -> dict[str, Any]:
    """The document in the file, after everything that the format asks for."""
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    rows = document["traceEvents"]
    for row in rows:
        assert row["ph"] in KEYS, "only complete events, names and flows: no B that lacks its E"
        wanted = KEYS[row["ph"]]
        assert set(row) == {"ph", *wanted}
        for key, kind in wanted.items():
            assert type(row[key]) is kind, (key, row)
    timed = [row for row in rows if row["ph"] != "M"]
    assert rows[: len(rows) - len(timed)] == [row for row in rows if row["ph"] == "M"]
    assert [row["ts"] for row in timed] == sorted(row["ts"] for row in timed)
    _check_names(rows)
    _check_slices([row for row in timed if row["ph"] == "X"])
    _check_flows(timed)
    return document


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def _check_names(rows: list[dict[str, Any]]) -> None:
    """Every process and thread in use has one name; numbers are positive, as the kernel's are."""
    processes = [row["pid"] for row in rows if row["name"] == "process_name"]
    threads = [(row["pid"], row["tid"]) for row in rows if row["name"] == "thread_name"]
    assert len(processes) == len(set(processes))
    assert len(threads) == len(set(threads))
    for row in rows:
        if row["ph"] == "M":
            assert row["name"] in ("process_name", "process_sort_index", "thread_name")
            continue
        assert row["pid"] in processes
        assert (row["pid"], row["tid"]) in threads
        assert row["pid"] > 0
        assert row["tid"] > 0


def _check_slices(slices: list[dict[str, Any]]) -> None:
    """Those of one thread stand beside one another, or one within the other."""
    open_until: dict[tuple[int, int], int] = defaultdict(int)
    for row in slices:
        assert row["dur"] >= 0
        assert row["ts"] >= 0
        start, end = round(row["ts"] * 1000), round((row["ts"] + row["dur"]) * 1000)
        thread = row["pid"], row["tid"]
        assert start >= open_until[thread] or end <= open_until[thread]
        open_until[thread] = max(open_until[thread], end)


def _check_flows(timed: list[dict[str, Any]]) -> None:
    """Each begins and ends once, forward in time, and within a slice of its thread."""
    ends: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in timed:
        if row["ph"] in "sf":
            assert row["ph"] not in ends[row["id"]]
            ends[row["id"]][row["ph"]] = row
    for pair in ends.values():
        assert set(pair) == {"s", "f"}
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        assert pair["f"]["bp"] == "e"
        assert (pair["s"]["name"], pair["s"]["cat"]) == (pair["f"]["name"], pair["f"]["cat"])
        for end in pair.values():
            assert any(
                (row["pid"], row["tid"]) == (end["pid"], end["tid"])
                and row["ts"] <= end["ts"] <= row["ts"] + row["dur"]
                for row in timed
                if row["ph"] == "X"
            )


@given(trace=runs())
@SLOW_DISK
def test_any_run_is_a_file_that_perfetto_opens_and_can_be_loaded_again(
    tmp_path: Path, trace: Trace
) -> None:
    path = trace.save(tmp_path / "t.json")
    document = checked(path)
    slices = [row for row in document["traceEvents"] if row["ph"] == "X"]
    assert len(slices) == len(trace.events) + len(trace.around)
    flows = [row for row in document["traceEvents"] if row["ph"] == "s"]
    forward = [
        (sent, received)
        for sent, received in links(trace.events)
        if sent.start_s < received.end_s or sent.start_s <= received.start_s
    ]
    assert len(flows) == len(forward)
    loaded = Trace.load(path)
    assert loaded.save(tmp_path / "again.json").read_bytes() == path.read_bytes()
    for was, now in zip(trace.events, loaded.events, strict=True):
        assert now.start_s == pytest.approx(was.start_s, abs=1e-9)
        assert now.duration_s == pytest.approx(was.duration_s, abs=1.1e-9)
    times = {"start_s": 0.0, "end_s": 0.0}
    assert sorted(map(repr, (replace(event, **times) for event in trace.events))) == sorted(
        map(repr, (replace(event, **times) for event in loaded.events))
    )
    assert replace(loaded, events=(), around=()) == replace(trace, events=(), around=())


def test_everything_of_a_program_of_loops_is_kept(tmp_path: Path) -> None:
    trace = Trace(
        2,
        (Event(EventKind.TASK, "S1", 0, "cpu0", 0.0, 1e-6, turn=3),),
        moves=(Move("S1", 0, 1, 7, 800),),
        totals=(Total(0, "S1", EventKind.TASK, 9, 0.5, 0),),
        dropped=(8, 0),
        turns=(("S1", 4),),
        ends_s=(0.5, 0.25),
    )
    document = checked(trace.save(tmp_path / "t.json"))
    assert Trace.load(tmp_path / "t.json") == trace
    assert document["otherData"]["events_dropped"] == [8, 0]
    assert document["traceEvents"][-1]["args"]["turn"] == 3


def test_a_run_without_times_is_a_file_as_well(tmp_path: Path) -> None:
    path = Trace(2, ()).save(tmp_path / "t.json")
    checked(path)
    assert Trace.load(path) == Trace(2, ())


def test_a_message_that_clocks_see_arrive_too_early_is_no_flow_backwards(tmp_path: Path) -> None:
    events = (
        Event(EventKind.WAIT, "wait", 1, "", 0.0, 1e-6, message=0),
        Event(EventKind.SEND, "send", 0, "", 2e-6, 3e-6, message=0),
    )
    document = checked(Trace(2, events, clock_error_s=5e-6).save(tmp_path / "t.json"))
    assert [row["ph"] for row in document["traceEvents"] if row["ph"] in "sf"] == []
    assert document["otherData"]["clock_error_us"] == 5.0


def test_too_large_a_trace_is_cut_and_says_so(tmp_path: Path) -> None:
    events = tuple(
        Event(EventKind.TASK, "t", 0, "cpu0", k * 1e-6, (k + 1) * 1e-6) for k in range(9)
    )
    path = save_trace(Trace(1, events), tmp_path / "t.json", most=5)
    document = checked(path)
    assert sum(row["ph"] == "X" for row in document["traceEvents"]) == 5
    assert document["otherData"]["events_left_out"] == 4


def test_on_a_full_disk_nothing_is_half_written(tmp_path: Path) -> None:
    """A limit of the kernel on the size of files stands for a disk that is full."""
    path = tmp_path / "t.json"
    path.write_text("what was here before")
    events = tuple(Event(EventKind.TASK, "t", 0, "cpu0", k, k + 1) for k in range(2000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(AvialError, match=r"cannot write .*t\.json"):
            Trace(1, events).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "what was here before"
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": []}', "not JSON"])
def test_what_is_no_trace_of_ours_is_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(AvialError, match="is not a trace of avial_lab"):
        Trace.load(path)
    with pytest.raises(AvialError, match="cannot read"):
        Trace.load(tmp_path / "nowhere.json")
