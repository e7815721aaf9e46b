"""Pictures as files: what each format holds, and that JSON comes back as it was."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from avial_lab import plot
from avial_lab.core.errors import BindError, CellSpan
from avial_lab.lessons.demo import deck_text
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot.page.export import png
from avial_lab.plot.page.fonts import _LIKED, family_of, font_folders, sans_serif
from tests.notebook.conftest import recorded_program
from tests.plot import by_hand
from tests.plot.by_hand import layers, machine, schedule_by_hand

SIZE = re.compile(r' (?:width|height)="([\d.]+)"')


def with_places(graph: TaskGraph) -> TaskGraph:
    """Every task on a line of a cell."""
    text = "\n".join(task.name for task in graph.tasks)
    tasks = tuple(
        replace(task, span=CellSpan("In [3]", text, k + 1, 1)) for k, task in enumerate(graph.tasks)
    )
    return replace(graph, tasks=tasks)


@pytest.mark.parametrize(
    "schedule",
    [
        by_hand.deck_schedule(),
        by_hand.heat_schedule(),
        schedule_by_hand(with_places(layers(5, 7)), machine(3, gpus=2)),
    ],
    ids=["deck", "heat", "layers"],
)
def test_json_comes_back_as_it_was(schedule: Schedule) -> None:
    text = plot.exported("json", schedule.graph, schedule).decode()
    assert plot.graph_from_json(json.loads(text)) == (schedule.graph, schedule)
    alone = json.loads(plot.exported("json", schedule.graph))
    assert plot.graph_from_json(alone) == (schedule.graph, None)


def test_json_is_what_its_docstring_says() -> None:
    schedule = by_hand.heat_schedule()
    data = plot.graph_json(schedule.graph, schedule)
    told = plot.graph_json.__module__
    docstring = sys.modules[told].__doc__
    assert docstring is not None
    keys = {*data, *data["schedule"], *data["tasks"][0], *data["dependencies"][0]}
    assert [key for key in sorted(keys) if key not in docstring] == []
    assert data["dependencies"][0]["region"] == [[[0, 20]]]


@pytest.mark.parametrize("broken", [{}, {"format": "avial-task-graph", "version": 2}])
def test_what_is_no_graph_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(BindError, match="not a task graph of version 1"):
        plot.graph_from_json(broken)


def test_a_graph_with_a_hole_is_refused(deck: TaskGraph) -> None:
    data = plot.graph_json(deck)
    del data["tasks"][1]["target"]
    with pytest.raises(BindError, match=r"incomplete.*target"):
        plot.graph_from_json(data)


def test_a_png_has_the_pictures_size_and_its_words(deck_schedule: Schedule) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py (extra `png`) is not installed")
    picture = plot.dag_svg(deck_schedule.graph, deck_schedule)
    try:
        pixels = plot.exported("png", deck_schedule.graph, deck_schedule)
    except BindError as error:
        if "this machine has no fonts" not in error.message:
            raise
        pytest.skip(error.message)
    assert pixels.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", pixels[16:24])
    for pixels_there, points in zip((width, height), SIZE.findall(picture)[:2], strict=True):
        assert abs(pixels_there - 2 * float(points)) <= 1
    mute = picture.replace("task1", "").replace("RAW c", "")
    assert png(mute) != pixels


def test_without_resvg_the_error_says_what_to_install(
    deck: TaskGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(BindError, match=r"resvg-py[\s\S]*pip install 'avial-lab\[png\]'"):
        plot.exported("png", deck)


def test_without_a_font_the_error_says_so(deck: TaskGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py (extra `png`) is not installed")
    monkeypatch.setattr("avial_lab.plot.page.fonts.font_folders", list)
    sans_serif.cache_clear()
    try:
        with pytest.raises(BindError, match="no fonts"):
            plot.exported("png", deck)
    finally:
        sans_serif.cache_clear()


def test_any_font_will_do(deck: TaskGraph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also one that no picture names: of all there are here, a family that is none of ours."""
    resvg = pytest.importorskip("resvg_py", reason="resvg-py (extra `png`) is not installed")
    fonts = [f for folder in font_folders() for f in folder.rglob("*.[to]tf")]
    other = next((f for f in fonts if family_of(f) not in (*_LIKED, "")), None)
    if other is None:
        pytest.skip("this machine has no such font")
    shutil.copy(other, tmp_path)
    monkeypatch.setattr("avial_lab.plot.page.fonts.font_folders", lambda: [tmp_path])
    drawn = resvg.svg_to_bytes
    monkeypatch.setattr(
        resvg, "svg_to_bytes", lambda **given: drawn(**given, skip_system_fonts=True)
    )
    sans_serif.cache_clear()
    try:
        assert sans_serif()[0] == family_of(other)
        assert plot.exported("png", deck) != png(plot.dag_svg(deck).replace("task1", ""))
    finally:
        sans_serif.cache_clear()


def test_what_is_no_font_has_no_family(tmp_path: Path) -> None:
    for k, junk in enumerate((b"", b"\x00\x01\x00\x00\x00\xff", b"ttcf" + b"\xff" * 40)):
        (tmp_path / f"{k}.ttf").write_bytes(junk)
        assert family_of(tmp_path / f"{k}.ttf") == ""


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.svg", "<svg"), ("a.dot", "digraph"), ("a.json", "{"), ("a.txt", "3 tasks in 2 levels")],
)
def test_a_program_saves_its_picture(tmp_path: Path, name: str, begins: str) -> None:
    saved = recorded_program().save_picture(tmp_path / name)
    assert saved.read_text(encoding="utf-8").startswith(begins)


def test_lanes_need_a_machine(deck: TaskGraph) -> None:
    with pytest.raises(BindError, match="placed"):
        plot.exported("svg", deck, lanes=True)


def test_an_unknown_format_names_those_there_are(deck: TaskGraph) -> None:
    with pytest.raises(BindError, match="there is no format 'gif'\nHint: there are: text, json"):
        plot.exported("gif", deck)


def graph_command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "deck.avial").write_text(deck_text())
    arrays = [f"--in={name}=20xi32" for name in "abcd"]
    command = [sys.executable, "-m", "avial_lab", "graph", "deck.avial", *arrays, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_writes_what_the_files_ending_says(tmp_path: Path) -> None:
    done = graph_command("-n", "3", "-o", "deck.json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    graph, schedule = plot.graph_from_json(json.loads((tmp_path / "deck.json").read_text()))
    assert [task.name for task in graph.tasks] == ["task1", "task2", "task3"]
    assert schedule is not None
    assert schedule.topology.ranks == 3


def test_the_command_draws_lanes(tmp_path: Path) -> None:
    done = graph_command("--lanes", "--format", "svg", folder=tmp_path)
    assert "policy levels" in done.stdout
    assert done.returncode == 0


def test_a_png_needs_a_file(tmp_path: Path) -> None:
    done = graph_command("--format", "png", folder=tmp_path)
    assert done.returncode == 1
    assert "give -o FILE.png" in done.stderr
