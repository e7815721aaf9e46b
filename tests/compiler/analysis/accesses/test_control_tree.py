"""Tasks in loops: what depends on what within a round, and from a round to a later one."""

from __future__ import annotations

from inline_snapshot import snapshot

from avial_lab.planning.task_graph import Group, Hazard, Task, TaskGraph, build_dag
from avial_lab.program.compilation import analyse
from tests.planning.test_task_graph import program


def looped(flat: TaskGraph, groups: list[Group], **around: tuple[str, ...]) -> TaskGraph:
    """The tasks of `flat` in groups, by their names."""
    tasks = [
        Task(t.name, t.target, t.reads, t.writes, group=around.get(t.name, ())) for t in flat.tasks
    ]
    return build_dag(tasks, flat.buffers, flat.storages, groups)


def carried(graph: TaskGraph) -> list[tuple[str, str, str, str]]:
    return [(e.before, e.after, e.hazard.value, e.buffer) for e in graph.carried]


def test_a_round_and_the_next() -> None:
    """
    loop:  S1: b = a ─► S2: a = b        the next S1 reads what S2 has written
    """
    flat = program(("S1", {"a": (0, 10)}, {"b": (0, 10)}), ("S2", {"b": (0, 10)}, {"a": (0, 10)}))
    graph = looped(flat, [Group("loop", "5 times")], S1=("loop",), S2=("loop",))
    assert graph.dependencies == flat.dependencies
    assert carried(graph) == [
        ("S1", "S1", "WAW", "b"),
        ("S2", "S1", "RAW", "a"),
        ("S2", "S1", "WAR", "b"),
        ("S2", "S2", "WAW", "a"),
    ]


def test_parts_that_do_not_meet_carry_nothing() -> None:
    flat = program(("S1", {"a": (0, 5)}, {"b": (0, 5)}), ("S2", {"a": (5, 9)}, {"b": (5, 9)}))
    graph = looped(flat, [Group("loop", "")], S1=("loop",), S2=("loop",))
    assert carried(graph) == [("S1", "S1", "WAW", "b"), ("S2", "S2", "WAW", "b")]


def test_a_condition_carries_nothing() -> None:
    flat = program(("S1", {"a": (0, 5)}, {"a": (0, 5)}))
    assert carried(looped(flat, [Group("if", "", loop=False)], S1=("if",))) == []
    assert len(carried(looped(flat, [Group("loop", "")], S1=("loop",)))) == 3


def test_the_innermost_loop_around_both_carries() -> None:
    """
    outer { S1  inner { S2: a += … } }      S2 to S2 is inner's, S2 to S1 is outer's
    """
    groups = [Group("outer", ""), Group("inner", "", around=("outer",))]
    flat = program(("S1", {"a": (0, 5)}, {"b": (0, 5)}), ("S2", {"a": (0, 5)}, {"a": (0, 5)}))
    graph = looped(flat, groups, S1=("outer",), S2=("outer", "inner"))
    assert [pair[:3] for pair in carried(graph)] == [
        ("S1", "S1", "WAW"),
        ("S2", "S1", "RAW"),
        ("S2", "S2", "RAW"),
        ("S2", "S2", "WAR"),
        ("S2", "S2", "WAW"),
    ]


BY_HAND = """
avial.schedule %a: memref<8xf64>, %b: memref<8xf64>, %e: memref<f64> {
  %cpu = avial.target {arch = "cpu"}
  %first = avial.task %cpu, %a { affine.for %i = 0 to 8 {
    %z = arith.constant 1.0 : f64
    affine.store %z, %a[%i]
  } }
  %loop = avial.converge until %e lt 1.0e-3 max 200 after %first {
    %s = avial.replicate %cpu, %a, %b { affine.for %i = 0 to 8 {
      %x = affine.load %a[%i]
      affine.store %x, %b[%i]
    } }
    %t = avial.replicate %cpu, %a, %b { affine.for %i = 0 to 8 {
      %x = affine.load %b[%i]
      affine.store %x, %a[%i]
    } }
  }
  %last = avial.task %cpu, %b after %loop { affine.for %i = 0 to 8 {
    %z = arith.constant 2.0 : f64
    affine.store %z, %b[%i]
  } }
}
"""


def test_a_program_written_by_hand_keeps_its_loops() -> None:
    graph = analyse(BY_HAND).graph
    assert [(task.name, task.group) for task in graph.tasks] == [
        ("first", ()),
        ("s", ("loop",)),
        ("t", ("loop",)),
        ("last", ()),
    ]
    (group,) = graph.groups
    assert (group.name, group.loop, group.around) == ("loop", True, ())
    assert group.words == snapshot("until e < 0.001, at most 200 times")
    assert group.span is not None
    assert group.span.line == 8


LU = """
func.func @lu(%A: memref<8x8xf64>) {
  affine.for %k = 0 to 8 {
    affine.for %i = affine_map<(d0) -> (d0 + 1)>(%k) to 8 {
      %p = affine.load %A[%k, %k] : memref<8x8xf64>
      %x = affine.load %A[%i, %k] : memref<8x8xf64>
      %q = arith.divf %x, %p : f64
      affine.store %q, %A[%i, %k] : memref<8x8xf64>
    }
    affine.for %i = affine_map<(d0) -> (d0 + 1)>(%k) to 8 {
      affine.for %j = affine_map<(d0) -> (d0 + 1)>(%k) to 8 {
        %l = affine.load %A[%i, %k] : memref<8x8xf64>
        %u = affine.load %A[%k, %j] : memref<8x8xf64>
        %m = arith.mulf %l, %u : f64
        %x = affine.load %A[%i, %j] : memref<8x8xf64>
        %d = arith.subf %x, %m : f64
        affine.store %d, %A[%i, %j] : memref<8x8xf64>
      }
    }
  }
  return
}
"""


def test_a_plain_functions_loops_are_groups_that_say_how_often_they_run() -> None:
    graph = analyse(LU).graph
    assert [(task.name, task.group) for task in graph.tasks] == [
        ("S1", ("loop1",)),
        ("S2", ("loop1",)),
    ]
    assert graph.groups[0].words == "8 times"
    flow = [(e.before, e.after) for e in graph.carried if e.hazard is Hazard.READ_AFTER_WRITE]
    assert ("S2", "S1") in flow


def test_what_waits_for_a_loop_waits_for_its_tasks() -> None:
    explicit = [(e.before, e.after) for e in analyse(BY_HAND).graph.dependencies if not e.buffer]
    assert explicit == [("first", "s"), ("first", "t"), ("s", "last"), ("t", "last")]
