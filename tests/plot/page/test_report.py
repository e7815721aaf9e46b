"""The report: one file, nothing from outside, everything in it."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from avial_lab import plot
from avial_lab.artifact.explanation import Explanation, Nest
from avial_lab.artifact.plan import Plan, plan_of_tasks
from avial_lab.artifact.stages import Inside, Stage
from avial_lab.core.errors import CompilerCrash, RenamedWarning
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot import report_html
from avial_lab.plot.page import report
from avial_lab.trace import Trace
from tests.plot.by_hand import (
    deck_schedule,
    deck_trace,
    heat_explanation,
    heat_nest,
    layers,
    machine,
    neighbours,
    schedule_by_hand,
)

STAGES = {
    "avial": Stage("avial", "the program", "mlir", "avial.schedule {}"),
    "ptx": Stage("ptx", "for the GPU", "ptx", ".target sm_90", command="llc -march=nvptx64"),
}


@dataclass(frozen=True)
class Recorded:
    """What a report asks of a program."""

    name: str = "deck"
    text: str = "\navial.schedule %a {\n}\n"
    cell: str = "In [1]"
    command: str = "avial-lab run deck.avial -n 3"
    schedule: Schedule = field(default_factory=deck_schedule)
    stages: dict[str, Stage] = field(default_factory=lambda: STAGES)
    seconds: dict[str, float] = field(default_factory=lambda: {"parse": 0.01})
    trace: Trace | None = field(default_factory=deck_trace)
    check_report: str | None = "equal to the reference"
    plan: Plan = field(default_factory=lambda: plan_of_tasks(deck_schedule()))
    of_loops: bool = False
    explanation: Explanation = field(default_factory=lambda: Explanation(()))
    nests: tuple[Nest, ...] = ()

    @property
    def graph(self) -> TaskGraph:
        return self.schedule.graph

    @property
    def inside(self) -> Inside:
        raise CompilerCrash("the compiler's process died", hint="")

    def explain(self) -> Explanation:
        return self.explanation


def of_loops() -> Recorded:
    """What a report asks of a program of loops."""
    plan = neighbours(3)
    trace = replace(deck_trace(), moves=plan.moves)
    nests = (heat_nest(),)
    return Recorded(
        plan=plan, of_loops=True, explanation=heat_explanation(), nests=nests, trace=trace
    )


SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)


class Balance(html.parser.HTMLParser):
    """Every element that is opened is closed, in order."""

    VOID = frozenset({"meta", "br", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_tells_the_whole_story() -> None:
    page = report_html(Recorded())
    text = re.sub(r"<[^>]*>", "", page)
    program = ("deck", "avial.schedule", "Task graph", "RAW", "why there", "llc -march=nvptx64")
    run = ("equal to the reference", "measured, GPU emulated", "parse", "Python")
    made = ("avial-lab run deck.avial -n 3", "processor", "cores")
    for words in program + run + made:
        assert words in text, words
    drawn = re.sub(r"<script.*?</script>", "", page, flags=re.S)  # (which writes SVG files, too)
    assert drawn.count("<svg") == 3


OF_LOOPS = ("loops", "dependences", "graph", "split", "messages")


def test_a_program_of_loops_tells_of_its_loops_and_its_messages() -> None:
    page = report_html(of_loops())
    text = re.sub(r"<[^>]*>", "", page)
    told = ("A program of loops", "divided over the ranks", "all phases", "× its share")
    for words in (*told, "is written by the previous iteration of t: line 10"):
        assert words in text, words
    places = [page.index(f'id="{section}"') for section in OF_LOOPS]
    assert places == sorted(places)
    for section in set(OF_LOOPS) - {"graph"}:
        assert f'id="{section}"' not in report_html(Recorded())


@pytest.mark.parametrize("recorded", [Recorded(), of_loops()], ids=["tasks", "loops"])
def test_needs_nothing_from_outside(recorded: Recorded) -> None:
    page = report_html(recorded)
    assert set(re.findall(r"https?://[^\"' )]+", page)) == {"http://www.w3.org/2000/svg"}
    markup = SCRIPT.sub("", page)
    assert not re.search(r"<script|<link|src=|@import|url\(", markup)
    assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', page))


@pytest.mark.parametrize("recorded", [Recorded(), of_loops()], ids=["tasks", "loops"])
def test_is_well_formed_and_ids_are_unique(recorded: Recorded) -> None:
    page = report_html(recorded)
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)


def test_same_program_same_bytes() -> None:
    assert report_html(Recorded()) == report_html(Recorded())


class Elements(html.parser.HTMLParser):
    """How often each element is there; the colours of a text are its own."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "span":
            self.found[tag] += 1


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '"><b>', "</style>", "<!--"])
def test_hostile_names_stay_text(hostile: str) -> None:
    def page(words: str) -> str:
        graph = deck_schedule().graph
        first, *others = graph.tasks
        tasks = (replace(first, target=replace(first.target, arch=words)), *others)
        stages = {"x": Stage(words, words, "mlir", words, command=words)}
        schedule = replace(deck_schedule(), graph=replace(graph, tasks=tasks))
        told = Recorded(words, words, words, words, schedule, stages, check_report=words)
        return report_html(told, versions={words: words})

    assert Elements(page(hostile)).found == Elements(page("harmless")).found
    data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page(hostile))
    assert [hostile in repr(json.loads(each)) for each in data] == [True, True, False]
    assert "<!--" not in "".join(data)


def test_only_our_own_scripts_may_run() -> None:
    page = report_html(Recorded())
    policy = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    scripts = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert "default-src 'none'" in policy[0]
    allowed = re.findall(r"'sha256-([^']*)'", policy[0])
    assert allowed == [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    # Before anything that it is about.
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<script")


def test_what_did_not_happen_is_said() -> None:
    page = report_html(replace(Recorded(), trace=None, check_report=None, stages={}))
    assert "not checked" in page
    assert 'id="run"' not in page
    assert 'id="stages"' not in page


def test_10000_tasks_make_a_page_one_can_open() -> None:
    graph = layers(100, 100)
    schedule = schedule_by_hand(graph, machine(6, gpus=2))
    page = report_html(replace(Recorded(), schedule=schedule))
    assert len(page.encode()) < 2_000_000
    assert "9,800 more tasks, not listed" in page


def test_long_stages_leave_room_for_the_rest() -> None:
    text = "\n".join(f"%{k} = arith.addi %a{k}, %b{k} : vector<4xi{k}>" for k in range(20_000))
    stages = {f"s{k}": Stage(f"s{k}", "long", "mlir", text) for k in range(8)}
    page = report_html(Recorded(stages=stages))
    assert len(page.encode()) < 2_000_000
    assert "of 20,000 lines left out" in page


def test_views_that_do_not_fit_are_left_out_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = report_html(Recorded())
    assert everything.count('class="view"') == 3
    assert "does not fit into this page" not in everything
    monkeypatch.setattr(report, "BUDGET", len(everything.encode()) - 30_000)
    page = report_html(Recorded())
    assert len(page.encode()) < len(everything.encode())
    assert page.count('class="view"') == 2
    assert page.count("The interactive view does not fit into this page") == 1


def test_the_protocol_answers_to_its_old_name_with_a_warning() -> None:
    with pytest.warns(RenamedWarning, match="plot.Told is called Reported now"):
        assert plot.Told is plot.Reported
