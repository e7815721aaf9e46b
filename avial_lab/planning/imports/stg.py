"""Graphs of the Standard Task Graph Set (Tobita, Kasahara 2002).

Path -> Workflow. First the number of tasks without the two dummies, then a line for each: its
number, its time, how many it waits for, and which; comments begin with #. Times are whole and have
no unit: seconds here. Messages have no size.
"""

from __future__ import annotations

import re
from pathlib import Path

from avial_lab.core.errors import AvialError, CellSpan
from avial_lab.core.files import text_of
from avial_lab.planning.imports.workflow import Given, Workflow, workflow


def stg_graph(path: Path) -> Workflow:
    """Raises AvialError with the line of what is wrong."""
    text = text_of(path)
    lines = [
        (number, line.partition("#")[0].split())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.partition("#")[0].strip()
    ]

    def wrong(line: int, message: str) -> AvialError:
        return AvialError(f"{path} is not STG: {message}", span=CellSpan(str(path), text, line, 1))

    if not lines:
        raise AvialError(f"{path} is empty")
    number, head = lines[0]
    if len(head) != 1 or not re.fullmatch(r"[0-9]{1,9}", head[0]):
        raise wrong(number, "the first line is the number of tasks")
    rows = lines[1:]
    if len(rows) not in (int(head[0]), int(head[0]) + 2):
        raise wrong(number, f"{len(rows)} lines follow, not {head[0]} and two dummies")
    tasks: list[Given] = []
    for line, words in rows:
        try:
            name, seconds, before, *which = words
            if int(before) != len(which):
                raise wrong(line, f"{before} predecessors are announced, {len(which)} named")
            after = tuple(f"t{int(each)}" for each in which)
            tasks.append(Given(f"t{int(name)}", float(seconds), after=after))
        except ValueError:
            raise wrong(line, "a line is: number, time, how many before, which") from None
    return workflow(path, tasks, {})
