"""What a person prints: a few lines, never the whole of it; and what stays as it was."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from inline_snapshot import snapshot

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.explanation import Explanation
from avial_lab.artifact.manifest import DerivedMessages, KnownMessages
from avial_lab.artifact.stages import Stage, Stages
from avial_lab.cli.main import main
from avial_lab.compiler.catalogue import SIZES, WHOLE
from avial_lab.compiler.options import OPTIONS, CompileOptions
from avial_lab.compiler.requests import Analysis
from avial_lab.core.cache import spelled
from avial_lab.core.element_types import ELEMENT_TYPES
from avial_lab.core.regions import Box
from avial_lab.machine.devices import KINDS
from avial_lab.planning.schedule import Sync
from avial_lab.planning.task_graph import Task
from avial_lab.plot import graph_text
from avial_lab.program.compilation import analyse, compile
from avial_lab.trace import Trace
from tests.notebook.conftest import recorded_program
from tests.plot import by_hand
from tests.printing.differing import differences, explained
from tests.printing.large import CELL_TEXT, large

LARGE = large()

HOMES = (
    "artifact.binary", "artifact.explanation", "artifact.manifest", "artifact.plan",
    "artifact.stages", "compiler.options", "compiler.pass_rows", "compiler.requests",
    "core.buffers", "core.element_types", "core.errors", "core.regions", "core.table",
    "machine.devices.kind", "machine.roofline", "machine.topology",
    "compiler.analysis.costs.weights",
    "planning.critical_path", "planning.distribution", "planning.schedule",
    "planning.task_graph", "program.timing", "runtime.native.ownership", "runtime.rank.output",
    "trace.events",
)  # fmt: skip
"""Modules whose types a user comes to from a program."""

KEPT_INSIDE = {"Described", "Manifest", "Option", "Ownership", "Standing", "Underway"}
"""Not to be had from a program."""


def types_of(home: str) -> Iterator[str]:
    """The names of the dataclasses and named tuples that stand in a module."""
    module = importlib.import_module(f"avial_lab.{home}")
    for name, kind in vars(module).items():
        own = isinstance(kind, type) and kind.__module__ == module.__name__
        if own and not name.startswith("_") and (is_dataclass(kind) or hasattr(kind, "_fields")):
            yield name


# Bounded ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", LARGE, ids=lambda thing: type(thing).__name__)
def test_a_repr_is_a_few_lines_and_not_the_cell(thing: object) -> None:
    text = repr(thing)
    assert len(text.splitlines()) <= 12
    assert len(text) <= 1000
    assert CELL_TEXT not in text


def test_every_type_of_a_program_is_tried() -> None:
    known = {name for home in HOMES for name in types_of(home)}
    assert known - KEPT_INSIDE <= {type(thing).__name__ for thing in LARGE}


def test_a_repr_works_nothing_out() -> None:
    """The critical path of 10,000 tasks takes longer than a person waits for a line."""
    graph = by_hand.layers(100, 100)
    assert "… 9,991 more" in repr(graph)
    assert "critical" not in vars(graph)


def test_a_printed_table_is_short_and_says_so() -> None:
    schedule = by_hand.schedule_by_hand(by_hand.layers(100, 100), by_hand.machine(4, gpus=1))
    for text in (str(schedule.graph), str(schedule)):
        assert len(text.splitlines()) < 80
        assert "… and 9,980 more tasks, not listed." in text


# Small ones, whole --------------------------------------------------------------------------------


def test_a_graph() -> None:
    graph = by_hand.deck()
    assert repr(graph) == snapshot("""\
<TaskGraph of 3 tasks in 2 levels, 3 edges
  task1: level 0, x86_64
  task2: level 0, x86_64
  task3: level 1, sm_90, after task1, task2>\
""")
    assert str(graph) == snapshot("""\
3 tasks in 2 levels, 3 edges
critical path: task1 → task3: 480 B of 720 B, parallelism 1.5 (estimated from the bytes each task touches)
Tasks
  level  task   target  reads             writes   body             touches  slack
      0  task1  x86_64  a[0:20], b[0:20]  c[0:20]  scf.parallel 20    240 B    0 B
      0  task2  x86_64  a[0:20], b[0:20]  d[0:20]  scf.parallel 20    240 B    0 B
      1  task3  sm_90   c[0:20], d[0:20]  d[0:20]  gpu.launch 20      240 B    0 B
Edges
  before  after  hazard  buffer  region  bytes
  task1   task3  RAW     c       [0:20]   80 B
  task2   task3  RAW     d       [0:20]   80 B
  task2   task3  WAW     d       [0:20]   80 B\
""")  # noqa: E501


def test_the_parts_of_a_graph() -> None:
    graph = by_hand.deck()
    assert repr(graph.tasks) == snapshot(
        "(<Task task1: for x86_64, reads a[0:20], b[0:20], writes c[0:20]>, <Task task2: for x86_64, reads a[0:20], b[0:20], writes d[0:20]>, <Task task3: for sm_90, reads c[0:20], d[0:20], writes d[0:20]>)"  # noqa: E501
    )
    assert repr(graph.dependencies[0]) == snapshot("<Dependency task1 → task3: RAW c[0:20], 80 B>")
    assert repr((graph.tasks[0].reads, graph.tasks[0].target, graph.buffers[0])) == snapshot(
        "((<Access a[0:20]>, <Access b[0:20]>), <Target %cpu: x86_64>, <Buffer a: 20xi32>)"
    )
    assert repr((graph.storages[0], graph.critical)) == snapshot(
        "(<Storage a of 80 B>, <Critical path task1 → task3: 480 B of 720 B, parallelism 1.5 (estimated from the bytes each task touches)>)"  # noqa: E501
    )
    assert repr(by_hand.heat_graph().groups) == snapshot("(<Group loop1: 5 times>,)")
    assert repr((Box((0, 4), (20, 8)), Box((), ()))) == snapshot("(Box[0:20, 4:8], Box[])")


def test_a_schedule() -> None:
    schedule = by_hand.deck_schedule()
    assert repr(schedule) == snapshot("""\
<Schedule of 3 tasks in 2 levels, 3 edges; 3 ranks, 2 messages, 160 B moved
  cpu0 (rank 0): task1
  cpu1 (rank 1): task2
  cpu2 (rank 2): nothing
  gpu0 (rank 2): task3>\
""")
    assert str(schedule) == snapshot("""\
3 tasks in 2 levels, 3 edges; 3 ranks, 2 messages, 160 B moved
3 CPUs, 1 GPU (emulated) on localhost (x86_64)
critical path: task1 → task3: 480 B of 720 B, parallelism 1.5 (estimated from the bytes each task touches)
Tasks
  level  task   target  device           rank  reads             writes   body             touches  slack  why there
      0  task1  x86_64  cpu0                0  a[0:20], b[0:20]  c[0:20]  scf.parallel 20    240 B    0 B  turn
      0  task2  x86_64  cpu1                1  a[0:20], b[0:20]  d[0:20]  scf.parallel 20    240 B    0 B  turn
      1  task3  sm_90   gpu0 (emulated)     2  c[0:20], d[0:20]  d[0:20]  gpu.launch 20      240 B    0 B  turn
Edges
  before  after  hazard  buffer  region  bytes  between
  task1   task3  RAW     c       [0:20]   80 B  rank 0 → 2
  task2   task3  RAW     d       [0:20]   80 B  rank 1 → 2
  task2   task3  WAW     d       [0:20]   80 B  rank 1 → 2
Messages
  message  storage  box     bytes  from rank  to rank  written by  needed by
        0  c        [0:20]   80 B          0        2  task1       task3
        1  d        [0:20]   80 B          1        2  task2       task3\
""")  # noqa: E501
    assert repr((schedule.placements[0], schedule.transfers[0], schedule.programs[0])) == snapshot(
        "(<Placement of task1 on cpu0 (rank 0), level 0: turn>, <Transfer 0: c[0:20] (80 B) rank 0 → 2; task1 wrote it, task3 needs it>, (<Step run task1>,))"  # noqa: E501
    )


def test_a_topology() -> None:
    topology = by_hand.machine(2, gpus=1)
    assert repr(topology) == snapshot(
        "<Topology of 2 ranks: 2 CPUs, 1 GPU (emulated) on localhost (x86_64)>"
    )
    assert str(topology) == snapshot("""\
2 ranks: 2 CPUs, 1 GPU (emulated) on localhost (x86_64)
  device  architecture   rank  node
  cpu0    x86_64            0  localhost
  cpu1    x86_64            1  localhost
  gpu0    gpu, emulated     1  localhost\
""")


def test_a_trace() -> None:
    trace = by_hand.deck_trace()
    assert repr(trace) == snapshot(
        "<Trace of a run, measured, GPU emulated: 96 µs from first start to last end, 3 tasks on 3 ranks, 160 B sent; 10 events>"  # noqa: E501
    )
    assert repr(trace.events[:2]) == snapshot(
        "(<Event task1 on rank 0 (cpu0): 40 µs from 0 s>, <Event task2 on rank 1 (cpu1): 53 µs from 2 µs>)"  # noqa: E501
    )
    assert repr(Trace(0, (), "reference run, one process: no MPI")) == snapshot(
        "<Trace without times: reference run, one process: no MPI>"
    )
    assert "Where the time went" in str(trace)


def test_a_plan() -> None:
    plan = by_hand.neighbours(3)
    assert repr(plan) == snapshot("""\
<Plan of 3 ranks, 20 messages, 160 B moved, planned before the run
  S1: begun 5 times, 80 B moved
  S2: begun 5 times, 80 B moved>\
""")
    assert str(plan) == snapshot("""\
3 ranks, 20 messages, 160 B moved, planned before the run
the fullest rank holds 162 B; all arrays divided by 3 ranks are 160 B
Phases
  phase  begun  messages  bytes  times not divided
  S1         5        10   80 B                  0
  S2         5        10   80 B                  0
Messages
  phase  from rank  to rank  messages  bytes
  S1             0        1         5   40 B
  S1             1        2         5   40 B
  S2             0        1         5   40 B
  S2             1        2         5   40 B
Memory of each rank
  rank  holds at most  times its share
     0          160 B             1.00
     1          161 B             1.01
     2          162 B             1.01\
""")
    assert repr((plan.moves[0], plan.footprints[0], plan.phases[0])) == snapshot(
        "(<Move for S1: rank 0 → 1, 5 messages, 40 B>, <Footprint in S1: rank 0 reads a[0:10]>, <PhaseCount S1: begun 5 times, 80 B moved>)"  # noqa: E501
    )


def test_loops() -> None:
    explanation = by_hand.heat_explanation()
    assert repr(explanation) == snapshot("""\
<Explanation of 3 parts: 1 divided over the ranks, 1 in order on every rank, 1 on one rank
  loop1 (line 3): in order on every rank, with work inside
  S1 (line 4): divided over the ranks
  S2 (line 8): in order on one rank>\
""")
    assert repr(explanation.reports[0]) == snapshot("""\
<LoopReport on loop1 (line 3): in order on every rank, with work inside
  A[i - 1] is written by the previous iteration of t: line 10, as A[i]>\
""")
    assert repr(Explanation(())) == snapshot(
        "<Explanation of tasks, each on the device its target asks for>"
    )
    assert repr(by_hand.heat_nest()) == snapshot(
        "<Nest loop1: dependences: t carries 1 RAW and 1 WAW; within an iteration 1 RAW>"
    )


def test_a_program_and_its_stages() -> None:
    program = recorded_program()
    assert repr(program) == snapshot(
        "<Program deck: 3 tasks in 2 levels, 3 edges; 3 ranks, 2 messages, 160 B moved; compiled, not run yet>"  # noqa: E501
    )
    assert str(program) == snapshot("""\
deck, from In [1]: compiled, not run yet
3 tasks in 2 levels, 3 edges; 3 ranks, 2 messages, 160 B moved
machine  3 CPUs, 1 GPU (emulated) on localhost (x86_64)
arrays   a: int32[20], b: int32[20], c: int32[20], d: int32[20]
stages   avial, ptx\
""")
    program.trace = by_hand.deck_trace()
    assert str(program).splitlines()[0] == snapshot(
        "deck, from In [1]: ran on 3 ranks in 96 µs (measured, GPU emulated)"
    )
    assert repr(program.stages) == snapshot("""\
<Stages of the lowering, 2 in all
  avial: the program, 1 line
  ptx: for the GPU, 500 lines>\
""")
    assert str(program.stages) == snapshot("""\
Stages
  stage  what it is   lines  time
  avial  the program      1  1 ms
  ptx    for the GPU    500   0 s\
""")
    assert repr(program.stages["ptx"]) == snapshot("<Stage ptx (for the GPU): 500 lines of ptx>")
    assert str(program.stages["avial"]) == snapshot("""\
// avial: the program
avial.schedule %a {}\
""")
    assert repr(program.built) == snapshot(
        "<Built in 1 ms: 3 tasks in 2 levels, 3 edges; 3 ranks, 2 messages, 160 B moved; binary 0, 0 B of machine code>"  # noqa: E501
    )
    assert repr(program.question) == snapshot(
        "<Build for 2 ranks, sync edges, division block, of <Source of In [1]: 2 lines>>"
    )


def test_options_print_as_on_a_command_line() -> None:
    options = CompileOptions.of(ranks=4, division="cyclic(8)", without="tile-time", strict=True)
    assert repr(options) == snapshot(
        "<CompileOptions -n 4 --division cyclic(8) --without tile-time --strict>"
    )
    assert repr(CompileOptions()) == snapshot("<CompileOptions -n 2>")
    assert "policy" in repr(OPTIONS["policy"])


def test_what_there_is_one_of_each() -> None:
    assert repr(ELEMENT_TYPES["i32"]) == snapshot(
        "<ElementType i32: integer, 4 B each, in arrays of int32 or uint32>"
    )
    assert repr(KINDS) == snapshot("(cpu, cuda, emulated-gpu)")
    assert repr(WHOLE) == snapshot("""\
<Pipeline avial (a plain function that cannot be divided): 2 passes
  lift-cf-to-scf: Raises branches between blocks to structured loops and conditio…
  one-task: Wraps the whole function in one task.>\
""")
    assert repr(SIZES["block-contractions"]["terms"]) == snapshot(
        "<Size terms of a sum per block, from 1 to 65,536>"
    )


def test_a_binary() -> None:
    schedule = by_hand.deck_schedule()
    manifest = KnownMessages.of(schedule)
    binary = Binary("3f2a91c0" * 8, b"code" * 999, {"task3": "…"}, manifest)
    assert repr(binary) == snapshot(
        "<Binary 3f2a91c0, 3.9 KiB of machine code, PTX of task3; 3 ranks, arrays a, b, c, d>"
    )
    assert str(binary) == snapshot("""\
binary 3f2a91c0, 3.9 KiB of machine code, PTX of task3
3 ranks, arrays a, b, c, d
  rank  steps  the first
     0      1  run task1
     1      1  run task2
     2      1  run task3
  The number is a message's. send, post: begin to send it, to receive it; sent, received: wait until that is done.\
""")  # noqa: E501
    derived = DerivedMessages(
        entry="main", ranks=3, buffers=manifest.buffers, storages=manifest.storages,
        inputs=(), results=(), phases=("S1", "S2"),
    )  # fmt: skip
    assert str(derived) == snapshot("""\
3 ranks, arrays a, b, c, d
phases: S1, S2; their messages are derived at run time\
""")


def test_an_unbound_size_is_not_printed_as_a_number() -> None:
    (task,) = analyse(UNBOUND).graph.tasks
    assert "4611686018427387904" not in repr((task, analyse(UNBOUND).graph.buffers))


UNBOUND = """avial.schedule %a: memref<?xf64> {
  %cpu = avial.target {arch = "cpu"}
  %t = avial.task %cpu, %a, %a {
    %k = arith.constant 3 : index
    %x = memref.load %a[%k]
    memref.store %x, %a[%k]
  }
}"""


# The same text as elsewhere -----------------------------------------------------------------------


def test_the_command_line_prints_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "unbound.avial"
    path.write_text(UNBOUND.replace("?", "20"))
    assert main(["graph", str(path)]) == 0
    found = analyse(path.read_text())
    assert capsys.readouterr().out == f"{found.graph}\n" == f"{found}\n"


def test_the_picture_says_the_same() -> None:
    schedule = by_hand.deck_schedule(sync=Sync.LEVELS)
    assert str(schedule) == graph_text(schedule.graph, schedule)


# As before ----------------------------------------------------------------------------------------


def without_arrays() -> list[object]:
    return [thing for thing in LARGE if not _has_arrays(thing)]


def _has_arrays(thing: object) -> bool:
    words = ("Film", "Namespace", "Outcome", "Program", "RandomArguments", "Referenced")
    return type(thing).__name__ in (*words, "RunReference", "View")


@pytest.mark.parametrize("thing", without_arrays(), ids=lambda thing: type(thing).__name__)
def test_equal_after_pickling(thing: object) -> None:
    again = pickle.loads(pickle.dumps(thing))
    assert again == thing
    assert repr(again) == repr(thing)


def test_a_task_is_still_a_key() -> None:
    task = by_hand.task("t", by_hand.CPU, "a", "b")
    assert {task: 1}[by_hand.task("t", by_hand.CPU, "a", "b")] == 1
    assert task != replace(task, summary="another")


def test_stages_are_still_a_dictionary() -> None:
    stage = Stage("avial", "the program", "mlir", "module {}")
    assert Stages({"avial": stage}) == {"avial": stage}
    assert list(Stages({"avial": stage})) == ["avial"]


# What a failing test says -------------------------------------------------------------------------


def renamed(task: Task, line: int) -> Task:
    span = by_hand.CellSpan("In [1]", "text", line, 1)
    return replace(task, span=span)


def test_what_differs_is_named_where_both_print_alike() -> None:
    graph = by_hand.deck()
    first = replace(graph, tasks=tuple(renamed(task, 3) for task in graph.tasks))
    other = replace(graph, tasks=tuple(renamed(task, 4) for task in graph.tasks[:2]))
    assert repr(first.tasks[0]) == repr(other.tasks[0])
    assert explained(first, other) == snapshot(
        [
            "TaskGraph == TaskGraph",
            ".tasks: 3 values, not 2",
            ".tasks[0].span.line: 3 != 4",
            ".tasks[1].span.line: 3 != 4",
        ]
    )
    assert explained((graph.tasks[0],), (first.tasks[0],)) == snapshot(
        ["tuple == tuple", "[0].span: None != <CellSpan In [1]:3:1>"]
    )
    assert explained(1, 2) is None
    assert list(differences(graph, graph)) == []


def test_two_that_print_alike_have_other_keys() -> None:
    graph = by_hand.deck()
    first, other = (
        replace(graph, tasks=(renamed(graph.tasks[0], line), *graph.tasks[1:])) for line in (3, 4)
    )
    assert repr(first) == repr(other)
    assert spelled(first) != spelled(other)


def test_programs_that_print_alike_are_built_apart() -> None:
    """What was built before is found by all there is in a question, not by how it prints."""
    text = UNBOUND.replace("?", "20")
    one, other = (compile(text.replace("constant 3", f"constant {k}"), ranks=1) for k in (3, 4))
    assert repr(one.question) == repr(other.question)
    assert one.stages["avial"].text != other.stages["avial"].text
    assert one.binary.key != other.binary.key


def test_nothing_of_numpy_is_printed() -> None:
    program = recorded_program()
    program.arrays["a"] = np.arange(20, dtype=np.int32)
    assert "array(" not in repr(program) + str(program)


def test_an_analysis_is_its_graph() -> None:
    analysis = Analysis(by_hand.deck(), {"parse": 0.001})
    assert str(analysis) == str(by_hand.deck())
    assert repr(analysis) == snapshot("<Analysis in 1 ms: 3 tasks in 2 levels, 3 edges>")
