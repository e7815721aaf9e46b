"""The task graph as JSON, for other programs to read and write, and back.

TaskGraph (and Schedule) -> plain dicts and lists -> TaskGraph (and Schedule).

    format        "avial-task-graph"; version 1
    source        {cell, text}: what the program was written as, empty where that is not known
    levels        [[task's name, …], …]: for the reader, who need not compute them
    tasks         [{name, target: {name, arch, node}, reads: [access, …], writes: [access, …],
                    after, kind: "task" | "replicate" | "converge", summary, span, group}, …]
    dependencies  [{before, after, hazard: "RAW" | "WAR" | "WAW" | "after", buffer, region,
                    nbytes}, …]
    carried       the same, to a later iteration of a loop
    buffers, storages, groups
    schedule      {topology, policy, sync, placements, transfers, programs, inputs, results, moves,
                   phases}

    access        {buffer, storage, region, exact, anchor, relative}
    region        [box, …]; a box is [[start, stop], …], one pair a dimension, `stop` exclusive
    span          [line, column] in the source, from 1

Keys are the fields of the dataclasses of those names (`planning/task_graph.py`, `schedule.py`,
`core/buffers.py`, `topology.py`), which say what they mean; a field that has its default value is
left out. A device's `kind` is its family, `cpu` or `gpu`, with `emulated: true` where it is that.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from avial_lab.core.errors import BindError, CellSpan
from avial_lab.core.regions import Box
from avial_lab.machine.devices import DeviceKind, kind_in_file, name_in_file
from avial_lab.machine.platform import Platform
from avial_lab.machine.topology import Device
from avial_lab.planning.schedule import Schedule, Step
from avial_lab.planning.task_graph import TaskGraph

FORMAT, VERSION = "avial-task-graph", 1

_STEP_DEFAULTS = Step._field_defaults  # (there may be a million steps: they are named tuples)


def graph_json(graph: TaskGraph, schedule: Schedule | None = None) -> dict[str, Any]:
    """All that is known of the graph and, with it, of its schedule."""
    spans = [each.span for each in (*graph.tasks, *graph.groups) if each.span is not None]
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "source": {"cell": spans[0].cell, "text": spans[0].text} if spans else {},
        "levels": [[task.name for task in level] for level in graph.levels],
        **_as_json(graph),
    }
    if schedule is not None:
        data["schedule"] = {k: v for k, v in _as_json(schedule).items() if k != "graph"}
    return data


def graph_from_json(data: Mapping[str, Any]) -> tuple[TaskGraph, Schedule | None]:
    """What `graph_json` was given; raises BindError for anything else."""
    if data.get("format") != FORMAT or data.get("version") != VERSION:
        raise BindError(
            f"this is not a task graph of version {VERSION}",
            hint=f'it begins with "format": "{FORMAT}", "version": {VERSION}',
        )
    source: dict[str, str] = data.get("source") or {}
    place = source.get("cell", ""), source.get("text", "")
    try:
        graph: TaskGraph = _restored(TaskGraph, data, place)
        if "schedule" not in data:
            return graph, None
        parts = _parts(Schedule, data["schedule"], place, but="graph")
        return graph, Schedule(graph=graph, **parts)
    except (KeyError, TypeError, ValueError) as error:
        raise BindError(f"this task graph is incomplete: {error}") from error


def _as_json(value: Any) -> Any:  # noqa: ANN401 (any of the dataclasses' fields)
    if isinstance(value, CellSpan):
        return [value.line, value.column]
    if isinstance(value, Box):
        return [list(ends) for ends in zip(value.start, value.stop, strict=True)]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Step):
        return {k: _as_json(v) for k, v in value._asdict().items() if v != _STEP_DEFAULTS.get(k)}
    if isinstance(value, tuple):
        return [_as_json(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, DeviceKind):
        return name_in_file(value)
    if isinstance(value, Platform):
        return None  # how fast the machine is is no part of who runs what
    if is_dataclass(value):
        stored = {field.name: getattr(value, field.name) for field in fields(value)}
        default = {field.name: _default(field) for field in fields(value)}
        plain = {k: _as_json(each) for k, each in stored.items() if each != default[k]}
        return plain | ({"emulated": True} if isinstance(value, Device) and value.emulated else {})
    return value


def _default(field: Field[Any]) -> object:
    return field.default if field.default is not MISSING else MISSING


def _restored(kind: Any, value: Any, place: tuple[str, str]) -> Any:  # noqa: ANN401 (as above)
    """`value` as an object of `kind`: a dataclass, a tuple, an enum, or plain."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
        return None if value is None else _restored(kind, value, place)
    if kind is CellSpan:
        return CellSpan(*place, *value)
    if isinstance(kind, enum.EnumMeta):
        return kind(value)
    if kind is Box:
        return Box(tuple(low for low, _ in value), tuple(high for _, high in value))
    if kind is Device:
        known = kind_in_file(value["kind"], emulated=value.get("emulated", False))
        return Device(kind=known, **_parts(Device, value, place, but="kind"))
    if kind is Step:
        hints = _hints(Step)
        return Step(**{name: _restored(hints[name], each, place) for name, each in value.items()})
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], each, place) for each in value)
    if not is_dataclass(kind):
        return value
    make: Any = cast("object", kind)
    return make(**_parts(make, value, place))


def _parts(
    kind: Any,  # noqa: ANN401 (a dataclass)
    value: Mapping[str, Any],
    place: tuple[str, str],
    *,
    but: str = "",
) -> dict[str, Any]:
    """The fields of `kind` that `value` has."""
    hints = _hints(kind)
    names = [field.name for field in fields(kind) if field.name != but]
    return {name: _restored(hints[name], value[name], place) for name in names if name in value}


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
