"""What the sliders of a predicted run show: the values of each, and the answer to where they stand.

WhatIf, Answer -> JSON for what_if.js.
"""

from __future__ import annotations

from typing import Any

from avial_lab.core.errors import OptionError
from avial_lab.core.words import count, format_seconds
from avial_lab.planning.what_if import Answer, Change, WhatIf
from avial_lab.plot.page.figure import figure_html
from avial_lab.plot.run.timeline import timeline_svg
from avial_lab.trace import run_facts

Json = dict[str, Any]

FACTORS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
LABELS = {
    "bandwidth": "links: bandwidth",
    "latency": "links: latency",
    "speed": "cores and GPUs: speed",
    "memory": "memories: bandwidth",
}


def what_if_data(asked: WhatIf, title: str) -> Json:
    """The sliders, and the answer while nothing is changed."""
    factors = [{"value": value, "shown": f"{value:g} ×"} for value in FACTORS]
    sliders: list[Json] = [
        {"name": name, "label": label, "values": factors, "at": FACTORS.index(1.0)}
        for name, label in LABELS.items()
    ]
    if len(asked.ranks) > 1:
        ranks = [{"value": ranks, "shown": count(ranks, "rank")} for ranks in asked.ranks]
        at = len(ranks) - 1
        sliders.insert(0, {"name": "ranks", "label": "ranks", "values": ranks, "at": at})
    return {"title": title, "sliders": sliders, "answer": answer_data(asked, {})}


def answer_data(asked: WhatIf, values: Json) -> Json:
    """`values` by slider, as they came from the page. Raises OptionError for others than those
    offered.
    """
    change = _change(asked, values)
    after = asked.answer(change) if values else asked.unchanged
    words = [_compared(asked.unchanged, after)]
    if after.moved:
        tasks = count(after.moved, "task")
        was = format_seconds(after.kept_s or 0.0)
        words.append(f"{tasks} placed elsewhere; where they were it would be {was}")
    picture = figure_html(
        timeline_svg(after.trace, after.schedule),
        alt=f"Timeline: {run_facts.trace_summary(after.trace, after.schedule)}",
        tables=(run_facts.rank_table(after.trace, after.schedule),),
    )
    return {"words": words, "picture": picture, "note": after.trace.note}


def _compared(before: Answer, after: Answer) -> str:
    took, was = after.trace.makespan_s, before.trace.makespan_s
    words = f"{format_seconds(took)} predicted"
    if took == was or not was:
        return words
    return f"{words}, {took / was:.2f} × of {format_seconds(was)} on the machine as it is"


def _change(asked: WhatIf, values: Json) -> Change:
    offered = {**dict.fromkeys(LABELS, FACTORS), "ranks": asked.ranks}
    for name, value in values.items():
        if value not in offered.get(name, ()):
            raise OptionError(f"no slider has the value {str(value)[:40]} of {str(name)[:40]}")
    return Change(**{"ranks": asked.ranks[-1], **values})
