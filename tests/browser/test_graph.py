"""The task graph as a person explores it: by pointing, by keyboard, by searching, while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot.palette import contrast
from avial_lab.plot.views.graph import graph_data
from avial_lab.trace import Trace
from tests.browser.pages import serious_faults
from tests.plot import by_hand
from tests.plot.by_hand import CPU, buffers, edge, layers, machine, schedule_by_hand, task

BarePage = Callable[..., Page]


def placed(graph: TaskGraph, ranks: int = 4) -> Schedule:
    return schedule_by_hand(graph, machine(ranks, gpus=1))


def opened(
    bare_page: BarePage, schedule: Schedule, trace: Trace | None = None, **changed: Any
) -> Page:
    page = bare_page("graph", graph_data(schedule.graph, schedule, trace) | changed)
    expect(page.locator(".avial-node, .avial-run").first).to_be_visible()
    return page


def box(page: Page, name: str) -> Locator:
    return page.locator(".avial-node").filter(has=page.get_by_text(name, exact=True))


def panel(page: Page) -> Locator:
    return page.locator(".avial-panel")


def test_shows_every_task_and_why_each_arrow_is_there(bare_page: BarePage) -> None:
    page = opened(bare_page, by_hand.deck_schedule())
    expect(page.locator(".avial-node")).to_have_count(3)
    expect(page.locator(".avial-picture .avial-edge")).to_have_count(2)  # RAW and WAW in one
    page.locator(".avial-edge .avial-reach").nth(1).dispatch_event("pointerover", {"bubbles": True})
    for fact in ("task2", "task3", "RAW: reads what it wrote", "WAW: overwrites", "[0:20]"):
        expect(panel(page)).to_contain_text(fact)
    for fact in ("80 B", "rank 1 → 2", "sent from rank to rank"):
        expect(panel(page)).to_contain_text(fact)


def test_a_task_tells_what_its_row_of_the_table_tells(bare_page: BarePage) -> None:
    page = opened(bare_page, by_hand.deck_schedule(), by_hand.deck_trace())
    box(page, "task2").click()
    for fact in ("x86_64", "cpu1 · rank 1", "turn", "scf.parallel 20", "a[0:20], b[0:20]", "53 µs"):
        expect(panel(page)).to_contain_text(fact)
    expect(panel(page)).to_contain_text("0, on the critical path")
    box(page, "task1").click()
    expect(panel(page)).to_contain_text("slack13 µs")
    expect(page.locator(".avial-node[aria-pressed=true]")).to_have_count(1)


def test_the_table_has_every_task_and_edge(bare_page: BarePage) -> None:
    page = opened(bare_page, by_hand.deck_schedule())
    page.get_by_text("as a table").click()
    expect(page.locator(".avial-rows tbody tr")).to_have_count(6)
    rows = page.locator(".avial-rows tr").all_text_contents()
    assert any(
        "task2task3WAW: overwrites what it wroted[0:20]80 Brank 1 → 2" in row for row in rows
    )
    assert serious_faults(page, "#host") == []


def test_by_keyboard_alone(bare_page: BarePage) -> None:
    page = opened(bare_page, placed(layers(4, 3)))
    page.locator(".avial-area").focus()
    page.keyboard.press("ArrowDown")
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert first.startswith("step0_")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("step1_")
    page.keyboard.press("Enter")
    expect(panel(page).locator("h4")).to_contain_text("step1_")
    page.keyboard.press("f")
    expect(page.locator(".avial-node")).not_to_have_count(12)
    page.keyboard.press("Escape")
    expect(page.locator(".avial-node")).to_have_count(12)
    width = page.locator(".avial-picture").evaluate("e => e.clientWidth")
    page.keyboard.press("+")
    assert page.locator(".avial-picture").evaluate("e => e.clientWidth") > width
    page.keyboard.press("0")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Critical path", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_jupyterlab_leaves_the_keys_to_what_has_the_focus(bare_page: BarePage) -> None:
    """Its command registry goes up from the element that has the focus and stops at this attribute:
    without it `x` on a task would cut the cell.
    """
    page = opened(bare_page, by_hand.heat_schedule())
    box(page, "S1").click()
    reached = ".avial-graph :is(button, select, summary, input, [tabindex])"
    unguarded = page.locator(reached).evaluate_all(
        """all => all.filter(each => !each.hasAttribute('data-lm-suppress-shortcuts'))
            .map(each => each.outerHTML)"""
    )
    assert unguarded == []


def test_what_is_selected_is_said(bare_page: BarePage) -> None:
    page = opened(bare_page, by_hand.deck_schedule())
    box(page, "task3").click()
    assert page.evaluate("window.said") == ["task3"]


def test_search_counts_and_goes_from_one_to_the_next(bare_page: BarePage) -> None:
    page = opened(bare_page, placed(layers(4, 3)))
    search = page.get_by_role("searchbox")
    search.fill("block2")
    expect(page.locator("output")).to_have_text("4 found")
    expect(page.locator(".avial-hit")).to_have_count(4)
    search.press("Enter")
    search.press("Enter")
    expect(page.locator("output")).to_have_text("2 of 4")
    expect(panel(page).locator("h4")).to_have_text("step1_block2")
    search.press("Shift+Enter")
    expect(panel(page).locator("h4")).to_have_text("step0_block2")
    search.press("Shift+Enter")
    expect(panel(page).locator("h4")).to_have_text("step3_block2")
    search.fill("a")  # a buffer that every task reads
    expect(page.locator("output")).to_have_text("12 found")
    search.fill("(no such")
    expect(page.locator("output")).to_have_text("0 found")


@pytest.mark.parametrize(("steps", "tasks"), [("1", 5), ("2", 11), ("1000000000", 19)])
def test_only_what_is_around_a_task(bare_page: BarePage, steps: str, tasks: int) -> None:
    """
    step1     o o o       each task needs two of the row above, and there are seven rows
    step2      o o
    step3       x
    step4      o o
    step5     o o o
    """
    page = opened(bare_page, placed(layers(7, 7)))
    box(page, "step3_block3").click()
    page.get_by_label("steps around a task").select_option(steps)
    page.get_by_role("button", name="Neighbours").click()
    expect(page.locator(".avial-node")).to_have_count(tasks)
    page.get_by_role("button", name="Whole graph").click()
    expect(page.locator(".avial-node")).to_have_count(49)


def test_the_critical_path_is_bold(bare_page: BarePage) -> None:
    schedule = placed(layers(5, 3))
    page = opened(bare_page, schedule)
    page.get_by_role("button", name="Critical path", exact=True).click()
    bold = page.locator(".avial-bold .avial-node.avial-critical .avial-name").all_text_contents()
    assert sorted(bold) == sorted(schedule.graph.critical.path)
    expect(page.locator(".avial-picture .avial-edge.avial-critical")).to_have_count(4)
    expect(page.locator(".avial-legend")).to_contain_text("critical path")


def test_groups_fold_and_the_worst_state_shows_through(bare_page: BarePage) -> None:
    page = opened(bare_page, placed(layers(3, 8)))
    page.get_by_role("button", name="Fold", exact=True).click()
    expect(page.locator(".avial-node")).to_have_count(6)  # of CPUs and of GPUs, by level
    expect(page.locator(".avial-told")).to_contain_text("24 tasks drawn as groups")
    page.evaluate("view.update({status: {step1_block0: 'done', step1_block1: 'running'}})")
    group = page.locator(".avial-node").filter(has_text="step1_block0")
    expect(group.locator(".avial-glyph")).to_have_text("▶ 1")
    page.evaluate("view.update({status: {step1_block2: 'failed'}})")
    expect(group.locator(".avial-glyph")).to_have_text("✗ 1")
    group.dblclick(position={"x": 60, "y": 20})
    expect(page.locator(".avial-node")).to_have_count(11)
    expect(box(page, "step1_block2").locator(".avial-glyph")).to_have_text("✗")


def test_a_live_update_touches_only_what_changed(bare_page: BarePage) -> None:
    page = opened(bare_page, placed(layers(5, 5)))
    page.evaluate(
        """() => {
            window.touched = new Set();
            new MutationObserver(all => all.forEach(one => {
                const element = one.target.closest ? one.target : one.target.parentElement;
                const node = element.closest('.avial-node');
                if (node) window.touched.add(node.querySelector('.avial-name').textContent);
            })).observe(document.querySelector('.avial-picture'), {
                subtree: true, attributes: true, childList: true, characterData: true});
        }"""
    )
    page.evaluate(
        "view.update({status: {step0_block1: 'running', nobody: 'done',"
        " step4_block2: {state: 'running', note: 'round 3'}}})"
    )
    expect(page.locator(".avial-is-running")).to_have_count(2)
    assert sorted(page.evaluate("[...window.touched]")) == ["step0_block1", "step4_block2"]
    expect(page.locator(".avial-progress")).to_have_text(
        "▶ 2 running · ✓ 0 done · ✗ 0 failed of 25 tasks"
    )
    label = box(page, "step4_block2").get_attribute("aria-label")
    assert label is not None
    assert "running, round 3" in label


def test_news_before_a_packed_graph_is_there_are_not_lost(bare_page: BarePage) -> None:
    data = graph_data((schedule := placed(layers(40, 25))).graph, schedule)
    assert "packed" in data
    page = bare_page("graph", by_hand_data())
    text = json.dumps(data)
    page.evaluate(
        f"""() => {{
            const host = document.body.appendChild(document.createElement('div'));
            host.id = 'second';
            window.mounted(host, {text}).update({{status: {{step0_block0: 'failed'}}}});
        }}"""
    )
    expect(page.locator("#second .avial-progress")).to_contain_text("✗ 1 failed of 1,000 tasks")
    expect(page.locator("#second .avial-is-failed")).to_have_count(1)


def by_hand_data() -> dict[str, Any]:
    schedule = by_hand.deck_schedule()
    return graph_data(schedule.graph, schedule)


def test_tasks_stand_in_their_loops_which_fold(bare_page: BarePage) -> None:
    page = opened(bare_page, by_hand.heat_schedule())
    frame, inside, outside = (
        page.locator(".avial-frame rect").bounding_box(),
        box(page, "S1").locator(".avial-front").bounding_box(),
        box(page, "zero").locator(".avial-front").bounding_box(),
    )
    assert frame is not None
    assert inside is not None
    assert outside is not None
    assert frame["x"] < inside["x"]
    assert frame["y"] < inside["y"] < frame["y"] + frame["height"]
    assert outside["y"] < frame["y"]
    expect(page.locator(".avial-picture .avial-later")).to_have_count(1)
    page.locator(".avial-frame").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".avial-frame")).to_have_count(0)
    expect(page.locator(".avial-node").filter(has_text="loop1")).to_contain_text("5 times")


def test_lanes_are_as_long_as_the_tasks_cost(bare_page: BarePage) -> None:
    page = opened(bare_page, by_hand.deck_schedule(), by_hand.deck_trace())
    page.get_by_role("button", name="Lanes").click()
    wide = {
        name: page.locator(f'.avial-node[aria-label^="{name},"] .avial-front').bounding_box()
        for name in ("task1", "task2", "task3")
    }
    one, two, three = (each["width"] for each in wide.values() if each is not None)
    assert one / two == pytest.approx(40 / 53, abs=0.05)
    assert three / two == pytest.approx(35 / 53, abs=0.05)
    expect(page.locator(".avial-told")).to_contain_text("measured times")
    expect(page.locator(".avial-picture .avial-edge.avial-message")).to_have_count(2)


def test_a_thousand_tasks_are_groups_that_unfold(bare_page: BarePage) -> None:
    page = opened(bare_page, placed(layers(40, 25)))
    expect(page.locator(".avial-node")).to_have_count(80)
    expect(page.locator(".avial-told")).to_contain_text("1,000 tasks drawn as groups")
    group = page.locator(".avial-node").filter(has_text="step0_block0 … step0_block24")
    group.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(box(page, "step0_block24")).to_be_visible()
    expect(page.locator(".avial-node")).to_have_count(98)


@pytest.mark.slow
def test_a_hundred_thousand_tasks_are_levels_that_open(bare_page: BarePage) -> None:
    page = opened(bare_page, placed(layers(400, 250), ranks=16))
    expect(page.locator(".avial-run")).to_have_count(40)
    assert page.evaluate("document.querySelectorAll('*').length") < 1000
    expect(page.locator(".avial-told")).to_contain_text("100,000 tasks are too many")
    page.get_by_role("searchbox").fill("step200_block17")
    expect(page.locator("output")).to_have_text("11 found")
    page.get_by_role("searchbox").press("Enter")
    expect(box(page, "step199_block18")).to_be_visible()
    page.get_by_role("button", name="Whole graph").click()
    page.locator(".avial-run").nth(3).dblclick(position={"x": 300, "y": 10})
    expect(page.locator(".avial-node")).to_have_count(20)
    expect(page.locator(".avial-picture")).to_contain_text("level 39")


def test_levels_count_the_tasks_that_are_not_carried(bare_page: BarePage) -> None:
    graph = layers(60, 60)
    page = bare_page("graph", graph_data(graph, most_bytes=500))
    expect(page.locator(".avial-run")).to_have_count(30)
    expect(page.locator(".avial-told")).to_contain_text("3,600 tasks are too many")
    expect(page.locator(".avial-told")).to_contain_text("critical path are carried here")
    expect(page.locator(".avial-run").first).to_contain_text("120 tasks, 2 critical")


def test_the_empty_graph_and_what_is_pressed_too_early(bare_page: BarePage) -> None:
    page = bare_page("graph", graph_data(TaskGraph((), (), (), ())))
    expect(page.locator(".avial-told")).to_have_text("There are no tasks.")
    page.get_by_role("button", name="Critical path", exact=True).click()
    page.get_by_role("searchbox").fill("a")
    page.get_by_role("button", name="Fit").click()


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x>', "a&b", "__proto__"])
def test_names_stay_text(bare_page: BarePage, name: str) -> None:
    others = (task(f"next{k}", CPU, "b", "c") for k in range(3))  # of four there is a toolbar
    tasks = (task(name, CPU, "a", "b"), *others)
    graph = TaskGraph(tasks, (edge(name, "next0", "b"),), *buffers("abc"))
    page = opened(bare_page, placed(graph))
    expect(page.locator("#host img, #host script")).to_have_count(0)
    page.get_by_role("searchbox").fill(name)
    page.get_by_role("searchbox").press("Enter")
    expect(panel(page).locator("h4")).to_have_text(name)
    page.evaluate("name => view.update({status: Object.fromEntries([[name, 'done']])})", name)
    expect(page.locator(".avial-is-done")).to_have_count(1)


def test_twice_on_a_page_no_id_is_used_twice(bare_page: BarePage) -> None:
    page = opened(bare_page, by_hand.deck_schedule())
    page.evaluate(
        f"""() => {{
            const host = document.body.appendChild(document.createElement('div'));
            host.id = 'second';
            window.other = window.mounted(host, {json.dumps(by_hand_data())});
        }}"""
    )
    expect(page.locator("#second .avial-node")).to_have_count(3)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))
    page.evaluate("window.other.dispose()")
    expect(page.locator("#second > *")).to_have_count(0)
    expect(page.locator("#host .avial-node")).to_have_count(3)


def test_what_cannot_be_read_is_said(bare_page: BarePage) -> None:
    page = bare_page("graph", by_hand_data() | {"columns": None, "packed": "AAAA"})
    expect(page.locator(".avial-told")).to_contain_text("cannot be drawn here")


DARK = "--jp-layout-color0: #111111; --jp-ui-font-color0: #ffffff; background: #111111"
THEMES = {"light": "", "dark": DARK}
INKS = """() => {
    const rgb = text => {
        const numbers = text.match(/[\\d.]+/g).map(Number);
        const unit = text.startsWith('color(');
        const three = numbers.slice(0, 3).map(each => Math.round(unit ? each * 255 : each));
        return '#' + three.map(each => each.toString(16).padStart(2, '0')).join('');
    };
    const paint = (element, name) => rgb(getComputedStyle(element)[name]);
    const paper = paint(document.querySelector('.avial-graph'), 'backgroundColor');
    return [...document.querySelectorAll('.avial-graph svg text')].filter(e => e.textContent).map(
        text => {
            const within = text.parentElement;
            const strip = text.matches('.avial-letter:not(.avial-ink)');
            const ground = within.querySelector(strip ? '.avial-strip' : '.avial-front, .avial-shape, rect');
            const on = ground && !text.matches('.avial-label, .avial-start')
                && getComputedStyle(ground).fill !== 'rgba(0, 0, 0, 0)';
            return [text.textContent, paint(text, 'fill'), on ? paint(ground, 'fill') : paper];
        });
}"""  # noqa: E501


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("critical", [False, True])
def test_everything_can_be_read_and_reached(
    bare_page: BarePage, theme: str, *, critical: bool
) -> None:
    page = opened(bare_page, placed(layers(4, 4)))
    page.evaluate("style => document.body.setAttribute('style', style)", THEMES[theme])
    page.evaluate(
        "view.update({status: {step0_block0: 'done', step0_block1: 'running',"
        " step0_block3: 'failed', step1_block3: 'running', step2_block3: 'done'}})"
    )
    if critical:
        page.get_by_role("button", name="Critical path", exact=True).click()
    box(page, "step1_block1").click()
    assert serious_faults(page, "#host") == []
    inks = page.evaluate(INKS)
    assert len(inks) > 40
    unreadable = [each for each in inks if contrast(*each[1:]) < 4.5]
    assert unreadable == []


@pytest.mark.parametrize("theme", THEMES)
def test_bars_and_lanes_can_be_read(bare_page: BarePage, theme: str) -> None:
    page = opened(bare_page, placed(layers(200, 20)))
    page.evaluate("style => document.body.setAttribute('style', style)", THEMES[theme])
    assert [each for each in page.evaluate(INKS) if contrast(*each[1:]) < 4.5] == []
    assert serious_faults(page, "#host") == []
    page.get_by_role("button", name="Lanes").click()
    assert [each for each in page.evaluate(INKS) if contrast(*each[1:]) < 4.5] == []
