"""Our types in a cell's output: HTML that lives untrusted, and text with the same facts."""

from __future__ import annotations

import re
from dataclasses import replace

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter

import avial_lab
from avial_lab.artifact.explanation import Choice
from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.requests import Analysis
from avial_lab.machine.roofline import Ceilings
from avial_lab.machine.topology import Topology
from avial_lab.notebook.display import PARTS, RENDERERS, View, show_view
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.scaling import Point as SpeedPoint
from avial_lab.planning.scaling import Scaling
from avial_lab.plot import Film, Point, Roofline
from avial_lab.program.program import Program
from avial_lab.program.reference_run import OneProcess
from avial_lab.program.timing import Timing
from avial_lab.trace import Move
from avial_lab.trace.comparison import Comparison
from tests.notebook.conftest import Page, recorded_loops, recorded_program
from tests.plot import by_hand


def everything() -> list[object]:
    """One of every type that has a renderer."""
    program = recorded_program()
    program.trace = by_hand.deck_trace()
    schedule = program.schedule
    named = {
        "Table": program_table_of(program),
        "Note": __import__("avial_lab.notebook.display", fromlist=["Note"]).Note(
            "said", "and more"
        ),
        "View": View(program, ("dag",)),
        "Comparison": Comparison(by_hand.deck_trace(), (by_hand.deck_trace(),), {}),
        "Film": Film([np.zeros((2, 3)), np.ones((2, 3))]),
        "Roofline": Roofline([Point("product", "fast", 80, 8, 1e-6)], Ceilings(1, "f64", 1e9, 1e9)),
    }
    loops = [by_hand.heat_explanation(), by_hand.heat_nest(), by_hand.neighbours(3)]
    rest = [program, program.graph, schedule, program.stages["avial"], program.trace, *loops]
    choice = Choice("2026-11-22", 1, 1.0)
    derived = DerivedMessages(
        entry="main", ranks=3, buffers=program.graph.buffers, storages=program.graph.storages,
        inputs=(), results=(), phases=("S1", "S2"),
    )  # fmt: skip
    graph = program.graph
    named["PlannedSchedule"] = avial_lab.plan(graph, Topology.local(2, gpus=1))
    points = tuple(SpeedPoint(n, 1 / n, 0, 0, 1.0, 0.0, 1.0) for n in (1, 2))
    named["Foreseen"] = Foreseen(schedule, program.trace)
    named["Scaling"] = Scaling(points, "a test")
    printed = [
        Analysis(program.graph, {}), program.stages, schedule.topology, program.binary,
        program.binary.manifest, derived, choice, loops[0].reports[0],
        Ceilings(1, "f64", 1e9, 1e9), Timing((1e-3,)), OneProcess("no MPI", schedule.topology),
    ]  # fmt: skip
    return [*rest, *printed, *named.values()]


def program_table_of(program: Program) -> object:
    from avial_lab.notebook.display import program_table

    return program_table((program,))


@pytest.mark.parametrize("thing", everything(), ids=lambda thing: type(thing).__name__)
def test_every_type_has_html_and_text(page: Page, thing: object) -> None:
    formatter = page.shell.display_formatter
    assert formatter is not None
    bundle, _ = formatter.format(thing)
    assert set(bundle) >= {"text/html", "text/plain"}
    assert "<avial_lab" not in bundle["text/plain"]
    assert not re.search(r"<(script|style|svg)\b|\b(class|onclick|id)=", bundle["text/html"])


def test_every_renderer_is_tried() -> None:
    assert {type(thing) for thing in everything()} == set(RENDERERS)


def test_text_and_html_state_the_same_facts(program: Program) -> None:
    program.trace = by_hand.deck_trace()
    bundle = show_view(View(program))
    for fact in ("task3", "gpu0 (emulated)", "RAW", "80 B", "rank 0 → 2", "turn", "96 µs"):
        assert fact in bundle["text/plain"], fact
        assert fact in bundle["text/html"], fact


PICTURES = {"dependences": 1, "dag": 1, "lanes": 1, "split": 1, "messages": 2, "timeline": 1}
OF_LOOPS = {"loops", "dependences", "split", "messages"}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone(part: str) -> None:
    program = recorded_loops()
    program.trace = by_hand.deck_trace()
    html = show_view(View(program, (part,)))["text/html"]
    assert html.count("<figure") == PICTURES.get(part, 0)
    assert ("<pre" in html) == (part == "stages")
    assert ("divided over" in html) == (part == "loops")


@pytest.mark.parametrize("part", sorted(OF_LOOPS))
def test_a_program_of_tasks_leaves_out_what_loops_have(program: Program, part: str) -> None:
    bundle = show_view(View(program, (part,)))
    assert bundle["text/plain"] == "deck: compiled, not run yet"
    assert "<figure" not in bundle["text/html"]


def test_loops_and_their_messages_are_in_the_text_too() -> None:
    program = recorded_loops()
    bundle = show_view(View(program))
    for fact in ("divided over the ranks", "line 10, as A[i]", "40 B", "planned before the run"):
        assert fact in bundle["text/plain"], fact
        assert fact in bundle["text/html"], fact


def test_a_program_that_has_not_run_shows_no_times(program: Program) -> None:
    bundle = show_view(View(program))
    assert "not run yet" in bundle["text/html"]
    assert bundle["text/html"].count("<figure") == 2


def exported(program: Program, *, sanitize: bool) -> str:
    """The notebook of one cell that shows `program`, as nbconvert's page."""
    output = nbformat.v4.new_output("display_data", data=dict(show_view(View(program))))
    cell = nbformat.v4.new_code_cell("%%avial", outputs=[output])
    exporter = HTMLExporter(sanitize_html=sanitize, embed_images=True)
    page, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    return page


def test_nbconvert_keeps_pictures_tables_and_colours(program: Program) -> None:
    program.trace = by_hand.deck_trace()
    page = exported(program, sanitize=False)
    pictures = re.findall(r'<img[^>]*src="data:image/svg\+xml;base64,[^"]+"[^>]*>', page)
    alts = [re.findall(r'alt="([^":]*)', picture) for picture in pictures]
    assert alts == [["Task graph"], ["Schedule"], ["Timeline"]]
    assert page.count("<details>") >= 4
    assert page.count("<table>") >= 4
    assert "#0b5394" in page.lower()


def test_nbconverts_sanitizer_keeps_the_facts(program: Program) -> None:
    """It drops every image of every HTML output (bleach knows no <img>), and keeps the tables."""
    page = exported(program, sanitize=True)
    assert "<figure" not in page.split("<main>")[-1]
    for fact in ("task3", "gpu0 (emulated)", "RAW", "rank 0 → 2"):
        assert f"<td>{fact}</td>" in page, fact


def test_10000_tasks_stay_below_jupyters_limit(program: Program) -> None:
    graph = by_hand.layers(100, 100)
    schedule = by_hand.schedule_by_hand(graph, by_hand.machine(6, gpus=2))
    program.built = replace(program.built, schedule=schedule)
    bundle = show_view(View(program))
    assert sum(map(len, bundle.values())) < 1_000_000
    assert "9,800 more tasks, not listed" in bundle["text/plain"]


def test_16_ranks_and_30_phases_stay_below_jupyters_limit() -> None:
    program = recorded_loops()
    plan = by_hand.neighbours(16, phases=30)
    everybody = tuple(
        Move(f"S{k + 1}", source, dest, 20, 4480)
        for k in range(30)
        for source in range(16)
        for dest in range(16)
        if source != dest
    )
    stages = tuple(Stage(f"s{k}", "a stage", "mlir", STAGE_LINE * 20_000) for k in range(9))
    built = replace(program.built, plan=replace(plan, moves=everybody), stages=stages)
    program.built = replace(built, schedule=by_hand.heat_schedule(16))
    program.__dict__["_nests"] = tuple(
        replace(by_hand.heat_nest(), name=f"loop{k}") for k in range(9)
    )
    bundle = show_view(View(program))
    assert sum(map(len, bundle.values())) < 1_000_000


STAGE_LINE = "  %1234 = llvm.load %1233 {alignment = 4 : i64} : !llvm.ptr -> i32\n"


def test_long_stages_stay_below_jupyters_limit(program: Program) -> None:
    stages = tuple(Stage(f"s{k}", "a stage", "mlir", STAGE_LINE * 20_000) for k in range(9))
    program.built = replace(program.built, stages=stages)
    bundle = show_view(View(program))
    assert sum(map(len, bundle.values())) < 1_000_000
    assert bundle["text/html"].count("of 20,000 lines left out") == 9
