"""Other people's graphs: read, planned, and refused with the reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import avial_lab
from avial_lab.cli.main import main
from avial_lab.core.errors import AvialError
from avial_lab.machine.platform import Node, Platform
from avial_lab.machine.presets import topology_on
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Schedule

ONE_CORE = topology_on(Platform((Node("n", 1, 1e9, 1e9, 1e9, 0),), (), "one core"))

STG = """4
0 0 0
1 2 1 0
2 3 1 0
3 4 2 1 2
4 1 1 3
5 0 1 4
# a comment
"""


def _wfformat() -> dict[str, Any]:
    """split makes a and b; work reads a; join reads b and what work made."""

    def task(name: str, reads: list[str], makes: list[str], *parents: str) -> dict[str, Any]:
        return {"id": name, "inputFiles": reads, "outputFiles": makes, "parents": list(parents)}

    tasks = [
        task("join", ["b", "c"], [], "split", "work"),  # before what it waits for
        task("split", ["in"], ["a", "b"]),
        task("work", ["a"], ["c"], "split"),
    ]
    sizes = {"in": 5, "a": 1000, "b": 2000, "c": 0}
    seconds = {"join": 1.0, "split": 2.0, "work": 4.0}
    return {
        "workflow": {
            "specification": {
                "tasks": tasks,
                "files": [{"id": k, "sizeInBytes": n} for k, n in sizes.items()],
            },
            "execution": {"tasks": [{"id": k, "runtimeInSeconds": s} for k, s in seconds.items()]},
        }
    }


def _written(tmp_path: Path, what: object, name: str = "w.json") -> Path:
    path = tmp_path / name
    path.write_text(what if isinstance(what, str) else json.dumps(what))
    return path


def test_a_workflow_is_read_in_an_order_that_respects_it(tmp_path: Path) -> None:
    found = avial_lab.load_graph(_written(tmp_path, _wfformat()))
    assert [task.name for task in found.graph.tasks] == ["split", "work", "join"]
    edges = {(e.before, e.after): e.nbytes for e in found.graph.dependencies}
    assert edges == {("split", "work"): 1000, ("split", "join"): 2000, ("work", "join"): 1}
    planned = avial_lab.plan(found, ONE_CORE)
    assert isinstance(planned, Schedule)
    assert planned.makespan_s == 7.0
    assert planned.simulate().label == "simulated on one core"


def test_who_is_named_as_a_child_waits_too(tmp_path: Path) -> None:
    made = _wfformat()
    tasks = made["workflow"]["specification"]["tasks"]
    for task in tasks:
        task["inputFiles"], task["parents"] = [], []
    tasks[1]["children"] = ["work", "join"]
    found = avial_lab.load_graph(_written(tmp_path, made))
    assert {(e.before, e.after) for e in found.graph.dependencies} == {
        ("split", "work"), ("split", "join"),
    }  # fmt: skip
    tasks[2]["children"] = ["split"]
    with pytest.raises(AvialError, match="wait for each other in a circle"):
        avial_lab.load_graph(_written(tmp_path, made))
    tasks[2]["children"] = ["nobody"]
    with pytest.raises(AvialError, match="'work' has a child 'nobody', unknown here"):
        avial_lab.load_graph(_written(tmp_path, made))


def test_a_graph_in_another_form_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(AvialError, match="known are WfFormat"):
        avial_lab.load_graph(_written(tmp_path, "digraph { a -> b }", "g.dot"))


def test_files_with_the_tasks_as_older_versions_have_them(tmp_path: Path) -> None:
    tasks = [
        {"name": "a", "runtime": 1.0, "files": [{"name": "f", "size": 8, "link": "output"}]},
        {"name": "b", "runtime": 2.0, "parents": ["a"],
         "files": [{"name": "f", "size": 8, "link": "input"}]},
    ]  # fmt: skip
    found = avial_lab.load_graph(_written(tmp_path, {"workflow": {"tasks": tasks}}))
    assert avial_lab.plan(found, ONE_CORE).makespan_s == 3.0
    assert [e.nbytes for e in found.graph.dependencies] == [8]


def test_a_standard_task_graph(tmp_path: Path) -> None:
    found = avial_lab.load_graph(_written(tmp_path, STG, "g.stg"))
    assert len(found.graph.tasks) == 6
    assert avial_lab.plan(found, ONE_CORE).makespan_s == 10.0
    assert avial_lab.plan(found, "preset:laptop", policy="levels").makespan_s < 10.0


def test_a_chrome_trace_is_run_again(tmp_path: Path) -> None:
    """Two threads; a flow from the first slice of one into the second of the other."""
    events = [
        {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 2e6, "name": "a"},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 1, "name": "inside a"},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 0, "dur": 1e6, "name": "b"},
        {"ph": "B", "pid": 1, "tid": 2, "ts": 3e6, "name": "b"},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 4e6},
        {"ph": "s", "pid": 1, "tid": 1, "ts": 1e6, "id": 1},
        {"ph": "f", "pid": 1, "tid": 2, "ts": 3.5e6, "id": 1},
    ]
    for form in ({"traceEvents": events}, events):
        found = avial_lab.load_graph(_written(tmp_path, form))
        edges = {(e.before, e.after) for e in found.graph.dependencies}
        assert edges == {("b", "b #2"), ("a", "b #2")}
        assert avial_lab.plan(found, ONE_CORE).makespan_s == 4.0


def test_a_trace_of_ours_is_a_graph(tmp_path: Path) -> None:
    found = avial_lab.load_graph(_written(tmp_path, _wfformat()))
    saved = avial_lab.plan(found, ONE_CORE).simulate().save(tmp_path / "trace.json")
    assert avial_lab.plan(avial_lab.load_graph(saved), ONE_CORE).makespan_s == pytest.approx(7.0)


# Refused ------------------------------------------------------------------------------------------


def _changed(change: str) -> dict[str, Any]:
    made = _wfformat()
    told = made["workflow"]["specification"]["tasks"]
    if change == "twice":
        told[2]["outputFiles"] = ["b"]
    elif change == "circle":
        told[1]["parents"] = ["join"]
    elif change == "nan":
        made["workflow"]["execution"]["tasks"][0]["runtimeInSeconds"] = float("nan")
    elif change == "negative":
        made["workflow"]["execution"]["tasks"][0]["runtimeInSeconds"] = -1.0
    elif change == "unknown":
        told[1]["parents"] = ["nobody"]
    elif change == "same":
        told[2]["id"] = "split"
    elif change == "half":
        del made["workflow"]["execution"]
    return made


@pytest.mark.parametrize(
    ("change", "words", "line"),
    [
        ("twice", "the file 'b' is made twice, by 'split' and 'work'", '"b"'),
        ("circle", "2 tasks wait for each other in a circle: split → join → split", '"join"'),
        ("nan", "takes nan s", '"runtimeInSeconds": NaN'),
        ("negative", "takes -1.0 s", '"runtimeInSeconds": -1.0'),
        ("unknown", "waits for 'nobody'", '"nobody"'),
        ("same", "stands twice", '"id": "split"'),
        ("half", "is not WfFormat: no 'execution'", ""),
    ],
)
def test_a_workflow_that_is_none(tmp_path: Path, change: str, words: str, line: str) -> None:
    """The place is told, in whatever way the text is broken into lines."""
    for indent in (2, None):
        path = tmp_path / "w.json"
        path.write_text(json.dumps(_changed(change), indent=indent))
        with pytest.raises(AvialError, match=words) as refused:
            avial_lab.load_graph(path)
        span = refused.value.span
        assert (span is not None) == bool(line)
        if span is not None and indent:
            assert span.text.splitlines()[span.line - 1].strip().startswith(line)
            assert str(span).startswith(f"{path}:{span.line}:")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("w.json", '{"workflow": ', "is not JSON"),
        ("w.json", "{}", "no task graph that is known"),
        ("w.json", '{"traceEvents": [{"ph": "X"}]}', "is no Chrome trace"),
        ("w.json", '[{"ph": "X", "name": "a", "ts": 9, "dur": -4e6}]', "'a' takes -4.0 s, not 0"),
        ("g.stg", "two\n", "the first line is the number of tasks"),
        ("g.stg", "3\n0 1 0\n", "1 lines follow, not 3"),
        ("g.stg", "1\n0 1 2 5\n", "2 predecessors are announced, 1 named"),
        ("g.stg", "1\n0 x 0\n", "a line is: number, time"),
        ("g.stg", "2\n0 1 1 1\n1 1 1 0\n", "in a circle: t1 → t0 → t1"),
        ("g.stg", "2\n0 1 0\n1 -1 0\n", r"takes -1.0 s, not 0 or more\n.*g.stg:3:1"),
        ("g.stg", "", "is empty"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = _written(tmp_path, text, name)
    with pytest.raises(AvialError) as refused:
        avial_lab.load_graph(path)
    assert re.search(words, str(refused.value))


# The command line ---------------------------------------------------------------------------------


def test_policies_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace = _written(tmp_path, _wfformat()), tmp_path / "t.json"
    assert main(["plan", str(path), "--budget", "1", "--trace", str(trace)]) == 0
    told = capsys.readouterr().out
    assert all(policy.value in told for policy in Policy if policy is not Policy.EXACT)
    assert trace.exists()
    assert main(["plan", str(path), "--policy", "peft", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert facts["policy"] == "peft"
    assert len(facts["placements"]) == 3


def test_a_program_of_loops_by_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, trace = tmp_path / "p.html", tmp_path / "t.json"
    line = ["plan", "kernels/jacobi-1d", "--topology", "preset:fat-tree-1024", "--size", "mini"]
    files = ["--report", str(page), "--trace", str(trace)]
    assert main([*line, "-n", "16", *files]) == 0
    told = capsys.readouterr().out
    assert "By ranks on a fat tree of 1,024 nodes, simulated" in told
    assert "Where the time went (simulated on a fat tree of 1,024 nodes)" in told
    assert "Speed-up by ranks" in page.read_text()
    assert trace.exists()
    assert main([*line, "-n", "4", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["ranks"] for each in facts["ranks"]] == [1, 4]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan"], "nothing to plan"),
        (["plan", "kernels/gemm", "-n", "99"], "99 ranks asked for of a machine of 4"),
        (["plan", "kernels/gemm", "-n", "0"], "0 ranks asked for"),
        (["plan", "kernels/gemm", "--on", "gpu"], "a laptop has no GPUs"),
        (["plan", "kernels/gemm", "--policy", "heft"], "--policy is for programs of tasks"),
        (["plan", "kernels/gemm", "--place", "a=b"], "--place is for programs of tasks"),
        (["plan", "w.json", "-n", "2"], "--ranks is for programs of loops"),
        (["plan", "w.json", "--place", "a"], "--place takes TASK=DEVICE"),
        (["plan", "w.json", "--topology", "preset:latop"], "did you mean 'laptop'"),
        (["plan", "w.json", "--topology", "nothing"], "is no topology"),
    ],
)
def test_what_cannot_be_planned(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(_written(tmp_path, _wfformat()))
    assert main([path if each == "w.json" else each for each in arguments]) == 1
    assert re.search(words, capsys.readouterr().err)
