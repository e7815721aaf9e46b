"""What the view of a run that goes on draws: how far each task and each rank is.

RunState -> JSON for `live.js`, and a figure of the same that stays when the run has ended.

    live_data   {title, graph, state}; graph is what graph.js draws, null where it is too large
    live_state  {line, ended, failed, share, status, ranks}, for `update({state})`

    status      {task: state | {state, note}}, as graph.js takes it
    ranks       [{rank, words, share, finished}]; a share is null where nobody knows of how much
"""

from __future__ import annotations

from typing import Any

from avial_lab.core.table import Table
from avial_lab.core.words import format_bytes
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot import palette, svg
from avial_lab.plot.page.figure import figure_html
from avial_lab.plot.views.graph import graph_data
from avial_lab.runtime.launch.progress import RankNow, RunState, TaskNow, TaskState

MOST_TASKS = 1500
"""Of a graph that is drawn and updated task by task while it runs."""

_MOST_RANKS = 64
_MOST_ROWS = 200
_ROW, _LEFT, _BAR, _WIDTH = 26.0, 84.0, 180.0, 620.0


def live_data(
    graph: TaskGraph, schedule: Schedule, state: RunState, *, title: str
) -> dict[str, Any]:
    """All that the view needs to begin with."""
    drawn = len(graph.tasks) <= MOST_TASKS
    return {
        "title": title,
        "graph": graph_data(graph, schedule, title=title) if drawn else None,
        "state": live_state(state),
    }


def live_state(state: RunState) -> dict[str, Any]:
    told = state.tasks if len(state.tasks) <= MOST_TASKS else ()
    return {
        "line": str(state),
        "ended": state.ended,
        "failed": state.failed,
        "share": _share(state),
        "status": {
            task.name: _task_status(task) for task in told if task.state is not TaskState.WAITING
        },
        "ranks": [
            {
                "rank": rank.rank,
                "words": _rank_words(rank),
                "share": _rank_share(rank),
                "finished": rank.finished,
            }
            for rank in state.ranks[:_MOST_RANKS]
        ],
    }


def live_figure(state: RunState, *, title: str) -> str:
    """How a run stood when it ended: a bar for each rank, and every task in a table."""
    picture = live_svg(state, title=title)
    return figure_html(picture, alt=f"{title}: {state}", tables=(live_table(state),))


def live_svg(state: RunState, *, title: str) -> str:
    ranks = state.ranks[:_MOST_RANKS]
    colour = palette.VERMILION if state.failed else palette.GREEN
    body = [svg.text(16, 26, svg.shorten(title, _WIDTH - 32, 13, bold=True), size=13, bold=True)]
    for k, rank in enumerate(ranks):
        y = 42 + k * _ROW
        filled = _BAR * (_rank_share(rank) or 0.0)
        stopped = state.failed and not rank.finished
        mark = "✓" if rank.finished else "✗" if stopped else "▶"
        body += [
            svg.text(16, y + 14, f"rank {rank.rank} {mark}", size=12),
            svg.rectangle(_LEFT, y + 3, _BAR, 14, fill=svg.BAND, stroke=svg.LINE),
            svg.rectangle(_LEFT, y + 3, filled, 14, fill=colour if stopped else palette.GREEN),
            svg.text(
                _LEFT + _BAR + 10,
                y + 14,
                svg.shorten(_rank_words(rank), _WIDTH - _LEFT - _BAR - 26, 12),
                size=12,
            ),
        ]
    height = 42 + len(ranks) * _ROW + 8
    return svg.card(_WIDTH, height, "".join(body), title=title, description=str(state))


def live_table(state: RunState) -> Table:
    """The tasks, those first that say why a run ended."""
    worst = (TaskState.FAILED, TaskState.STOPPED, TaskState.RUNNING)
    order = sorted(state.tasks, key=lambda task: task.state not in worst)
    rows = tuple((task.name, task.state.value, _rounds(task)) for task in order[:_MOST_ROWS])
    left = len(order) - len(rows)
    return Table(
        "Tasks", ("task", "state", "iterations"), rows, frozenset({"iterations"}),
        f"{left:,} more tasks are not listed" if left else "",
    )  # fmt: skip


def _share(state: RunState) -> float | None:
    """How far it is, of what is planned; None where that is not known."""
    if state.ranks and all(rank.finished for rank in state.ranks):
        return 1.0
    return None if state.share is None else round(state.share, 3)


def _rank_share(rank: RankNow) -> float | None:
    if rank.finished:
        return 1.0
    return round(rank.step / rank.steps, 3) if rank.steps else None


def _rank_words(rank: RankNow) -> str:
    """`in task 'S1' on cpu0, 3 of 12 steps done, 1.2 KiB sent`."""
    of = f" of {rank.steps:,}" if rank.steps else ""
    steps = "" if rank.finished or rank.steps == 1 else f", {rank.step:,}{of} steps done"
    return f"{rank.doing}{steps}, {format_bytes(rank.sent_bytes)} sent"


def _task_status(task: TaskNow) -> str | dict[str, str]:
    """For graph.js, which knows nothing of tasks that were stopped: they did not get done."""
    state = TaskState.FAILED if task.state is TaskState.STOPPED else task.state
    if task.planned == 1 and task.state is not TaskState.STOPPED:
        return state.value
    note = "stopped" if task.state is TaskState.STOPPED else ""
    return {"state": state.value, "note": note or f"iteration {_rounds(task)}"}


def _rounds(task: TaskNow) -> str:
    return f"{task.begun:,} of {task.planned:,}" if task.planned > 1 else f"{task.begun:,}"
