"""The task graph in Graphviz's own language, for tools that read it.

TaskGraph -> DOT text.
"""

from __future__ import annotations

from avial_lab.core.words import format_bytes
from avial_lab.planning.task_graph import Dependency, TaskGraph


def dag_dot(graph: TaskGraph) -> str:
    """One node for each task, in rows by level or within its loops; one edge for each dependency,
    with its reason, dashed where it goes to a later iteration of a loop.
    """
    lines = ["digraph tasks {", "  node [shape=box, fontname=Helvetica];"]
    lines += [f"  {_quoted(t.name)} [tooltip={_quoted(t.summary or t.name)}];" for t in graph.tasks]
    if graph.groups:
        lines += _clusters(graph, ())
    else:
        for level in graph.levels:
            lines.append(f"  {{rank=same; {'; '.join(_quoted(task.name) for task in level)}}}")
    lines += [
        f"  {_quoted(e.before)} -> {_quoted(e.after)} [label={_quoted(_reason(e))}];"
        for e in graph.dependencies
    ]
    lines += [
        f"  {_quoted(e.before)} -> {_quoted(e.after)} "
        f"[label={_quoted(_reason(e))}, style=dashed, constraint=false];"
        for e in graph.carried
    ]
    return "\n".join([*lines, "}"])


def _clusters(graph: TaskGraph, around: tuple[str, ...]) -> list[str]:
    """The groups directly in `around`, with what is in them."""
    lines: list[str] = []
    indent = "  " * (len(around) + 1)
    for number, group in enumerate(graph.groups):
        if group.around != around:
            continue
        inside = (*around, group.name)
        names = [_quoted(task.name) for task in graph.tasks if task.group == inside]
        lines.append(f"{indent}subgraph cluster_{number} {{")
        lines.append(
            f"{indent}  label={_quoted(f'{group.name}: {group.words}')}; {'; '.join(names)}"
        )
        lines += _clusters(graph, inside)
        lines.append(f"{indent}}}")
    return lines


def _reason(edge: Dependency) -> str:
    return " ".join(
        [edge.hazard.value, *([edge.buffer, format_bytes(edge.nbytes)] if edge.buffer else [])]
    )


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
