"""Workflows in WfFormat, the JSON of WfCommons (1.3 to 1.6).

Members of a file -> Workflow: tasks with their run times, the files between them with their sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from avial_lab.core.errors import AvialError
from avial_lab.planning.imports.workflow import Given, Workflow, workflow


def wfformat_graph(found: dict[str, Any], path: Path) -> Workflow:
    """Raises AvialError for what lacks the members that the format has."""
    try:
        return _graph(found["workflow"], path)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise AvialError(
            f"{path} is not WfFormat: {what}",
            hint="expected workflow.specification.tasks and workflow.execution.tasks (1.5, 1.6), "
            "or workflow.tasks (1.3, 1.4)",
        ) from None


def _graph(found: dict[str, Any], path: Path) -> Workflow:
    if "specification" in found:
        told, files = found["specification"]["tasks"], found["specification"].get("files", [])
        seconds = {
            each["id"]: float(each["runtimeInSeconds"]) for each in found["execution"]["tasks"]
        }
        sizes = {each["id"]: int(each["sizeInBytes"]) for each in files}
        after = _before(told, {each["id"]: each["id"] for each in told})
        tasks = [
            Given(
                each["id"],
                seconds[each["id"]],
                tuple(each.get("inputFiles", ())),
                tuple(each.get("outputFiles", ())),
                after[each["id"]],
            )
            for each in told
        ]
        return workflow(path, tasks, sizes)
    return _older(found["tasks"], path)


def _older(told: list[dict[str, Any]], path: Path) -> Workflow:
    """1.3 and 1.4: files stand with the tasks; parents are named by id or name."""
    names = {key: _name(task) for task in told for key in (_name(task), task["name"])}
    after = _before(told, names)
    sizes: dict[str, int] = {}
    tasks: list[Given] = []
    for task in told:
        files: dict[str, list[str]] = {"input": [], "output": []}
        for file in task.get("files", ()):
            name = str(file.get("id") or file["name"])
            sizes[name] = int(file.get("sizeInBytes", file.get("size", 0)))
            files[file["link"]].append(name)
        seconds = float(task.get("runtimeInSeconds", task.get("runtime", 0)))
        reads, makes = tuple(files["input"]), tuple(files["output"])
        tasks.append(Given(_name(task), seconds, reads, makes, after[_name(task)]))
    return workflow(path, tasks, sizes)


def _before(told: list[dict[str, Any]], names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Whom each task waits for, as it names its parents, and as others name it as their child."""
    found: dict[str, dict[str, None]] = {name: {} for name in names.values()}
    for task in told:
        own = names[_name(task)]
        found[own] |= dict.fromkeys(names.get(each, each) for each in task.get("parents", ()))
        for child in task.get("children", ()):
            if child not in names:
                raise ValueError(f"the task '{own}' has a child '{child}', unknown here")
            found[names[child]][own] = None
    return {name: tuple(before) for name, before in found.items()}


def _name(task: dict[str, Any]) -> str:
    return str(task.get("id") or task["name"])
