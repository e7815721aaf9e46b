"""What a schedule writes into the IR, and that it moves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.placement.place_tasks import PlaceTasks
from avial_lab.core.errors import PassError
from tests.compiler.backends import deck


def _function(module: ir.Module) -> ir.Operation:
    return module.body.operations[0].operation


def _tasks(module: ir.Module) -> dict[str, ir.Operation]:
    schedule = _function(module).regions[0].blocks[0].operations[0].operation
    return {
        ir.StringAttr(op.attributes["name"]).value: op.operation
        for op in schedule.regions[0].blocks[0].operations
        if op.operation.name == "avial.task"
    }


def test_every_task_knows_its_place() -> None:
    module = deck.module()
    run_passes(module.operation, (PlaceTasks(deck.schedule()),))
    written = {
        name: tuple(
            str(task.attributes[f"avial.{key}"]) for key in ("rank", "level", "device", "order")
        )
        for name, task in _tasks(module).items()
    }
    assert written == {
        "task1": ("0 : i32", "0 : i32", '"cpu0"', "0 : i64"),
        "task2": ("1 : i32", "0 : i32", '"cpu1"', "1 : i64"),
        "task3": ("2 : i32", "1 : i32", '"cpu2"', "2 : i64"),
    }


def test_the_function_knows_ranks_storages_transfers_and_programs() -> None:
    module = deck.module()
    run_passes(module.operation, (PlaceTasks(deck.schedule()),))
    attributes = _function(module).attributes
    assert str(attributes["avial.ranks"]) == "3 : i32"
    assert [str(ir.DictAttr(s)["name"]) for s in ir.ArrayAttr(attributes["avial.storages"])] == [
        f'"{name}"' for name in "abcd"
    ]
    assert str(ir.ArrayAttr(attributes["avial.transfers"])[1]) == (
        '{consumer = "task3", dest = 2 : i32, producer = "task2", source = 1 : i32, '
        'start = array<i64: 0>, stop = array<i64: 20>, storage = "d"}'
    )
    assert str(ir.ArrayAttr(attributes["avial.programs"])[2]) == (
        '["post 0", "post 1", "received 0", "received 1", "barrier", "run task3"]'
    )
    first = ir.DictAttr(ir.ArrayAttr(attributes["arg_attrs"])[0])
    assert str(first["avial.storage"]) == '"a"'
    assert str(first["avial.offset"]) == "0 : i64"


def test_a_task_that_the_schedule_forgot() -> None:
    schedule = deck.schedule()
    forgetful = replace(schedule, placements=schedule.placements[:2])
    with pytest.raises(PassError, match="the schedule does not place task 'task3'"):
        run_passes(deck.module().operation, (PlaceTasks(forgetful),))


def test_a_module_without_a_schedule() -> None:
    context = ir.Context()
    module = ir.Module.parse("func.func @f() { return }", context)
    with pytest.raises(PassError, match=r"there is no avial\.schedule in this module"):
        run_passes(module.operation, (PlaceTasks(deck.schedule()),))
