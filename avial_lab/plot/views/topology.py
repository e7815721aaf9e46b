"""What the page of a machine shows: its picture, and the fields in which it can be changed.

Topology -> JSON for topology.js.
"""

from __future__ import annotations

from typing import Any

from avial_lab.machine.alike import groups_of
from avial_lab.machine.topology import Topology
from avial_lab.plot.graph.machine import topology_svg
from avial_lab.plot.page.figure import figure_html

Json = dict[str, Any]


def topology_data(topology: Topology) -> Json:
    """The picture is made and escaped here, the rest is text."""
    groups = [
        {
            "title": group.title,
            "fields": [
                {
                    "key": each.key,
                    "label": each.label,
                    "value": each.value,
                    "hint": "a whole number" if each.quantity is None else each.quantity.value,
                }
                for each in group.fields
            ],
        }
        for group in groups_of(topology)
    ]
    return {
        "words": f"{topology.speeds.label}: {topology.summary}",
        "groups": groups,
        "picture": topology_figure(topology),
    }


def topology_figure(topology: Topology) -> str:
    """The machine, and its devices as a table."""
    return figure_html(
        topology_svg(topology),
        alt=f"Machine: {topology.speeds.label}, {topology.summary}",
        tables=(topology.table,),
    )
