"""The task graph in Graphviz's own language, for tools that read it.

TaskGraph -> DOT text.
"""

from __future__ import annotations

from avial_lab.dag import Dependency, TaskGraph
from avial_lab.plot.facts import format_bytes


def dag_dot(graph: TaskGraph) -> str:
    """One node for each task, in rows by level; one edge for each dependency, with its reason."""
    lines = ["digraph tasks {", "  node [shape=box, fontname=Helvetica];"]
    lines += [f"  {_quoted(t.name)} [tooltip={_quoted(t.summary or t.name)}];" for t in graph.tasks]
    for level in graph.levels:
        lines.append(f"  {{rank=same; {'; '.join(_quoted(task.name) for task in level)}}}")
    lines += [
        f"  {_quoted(e.before)} -> {_quoted(e.after)} [label={_quoted(_reason(e))}];"
        for e in graph.dependencies
    ]
    return "\n".join([*lines, "}"])


def _reason(edge: Dependency) -> str:
    return " ".join(
        [edge.hazard.value, *([edge.buffer, format_bytes(edge.nbytes)] if edge.buffer else [])]
    )


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
