"""The deck's program and a schedule of it by hand, on one rank or three."""

from __future__ import annotations

from mlir import ir

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.lower import scheduled_binary
from avial_lab.compiler.lowering.stages import in_reading_order
from avial_lab.compiler.options import CompileOptions
from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import (
    DeviceCopy,
    Piece,
    Placement,
    Schedule,
    Step,
    StepKind,
    Sync,
    Transfer,
)
from avial_lab.planning.task_graph import Access, Task, build_dag

_CPU_TASK = """
    %{name} = "avial.task"(%cpu) ({{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c20 = arith.constant 20 : index
      scf.parallel (%i) = (%c0) to (%c20) step (%c1) {{
        %x = memref.load %a[%i] : memref<20xi32>
        %y = memref.load %b[%i] : memref<20xi32>
        %z = arith.{operation} %x, %y : i32
        memref.store %z, %{target}[%i] : memref<20xi32>
      }}
      omp.terminator
    }}) {{name = "{name}", operandSegmentSizes = array<i32: 1, 0, 0, 0>}}
      : (!avial.target_ref) -> !avial.task_ref
"""

TEXT = f"""
func.func @main(%a: memref<20xi32> {{avial.name = "a"}}, %b: memref<20xi32> {{avial.name = "b"}},
                %c: memref<20xi32> {{avial.name = "c"}}, %d: memref<20xi32> {{avial.name = "d"}}) {{
  "avial.schedule"() ({{
    %cpu = "avial.target"() {{arch = "cpu", name = "cpu"}} : () -> !avial.target_ref
    %gpu = "avial.target"() {{arch = "sm_90", name = "gpu"}} : () -> !avial.target_ref
    {_CPU_TASK.format(name="task1", operation="addi", target="c")}
    {_CPU_TASK.format(name="task2", operation="muli", target="d")}
    %task3 = "avial.task"(%gpu) ({{
      %c1 = arith.constant 1 : index
      %c20 = arith.constant 20 : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c20, %sy = %c1, %sz = %c1) {{
        %tid = gpu.thread_id x
        %x = memref.load %c[%tid] : memref<20xi32>
        %y = memref.load %d[%tid] : memref<20xi32>
        %z = arith.addi %x, %y : i32
        memref.store %z, %d[%tid] : memref<20xi32>
        gpu.terminator
      }}
      omp.terminator
    }}) {{name = "task3", operandSegmentSizes = array<i32: 1, 0, 0, 0>}}
      : (!avial.target_ref) -> !avial.task_ref
    omp.terminator
  }}) : () -> ()
  return
}}
"""

WHOLE = Box((0,), (20,))


def module() -> ir.Module:
    context = ir.Context()
    register(context)
    return ir.Module.parse(TEXT, context)


def schedule(*, ranks: int = 3, gpus: int = 0) -> Schedule:
    """On three ranks c goes from 0 to 2 and d from 1 to 2, with a barrier after level 0; the last
    rank has a GPU, or none.
    """
    buffers = tuple(Buffer(name, (20,), "i32", name, (1,)) for name in "abcd")
    storages = tuple(Storage(name, (20,), 4, (name,)) for name in "abcd")
    places = (0, 0, 0) if ranks == 1 else (0, 1, 2)
    placements = (
        Placement("task1", f"cpu{places[0]}", places[0], 0, "by hand"),
        Placement("task2", f"cpu{places[1]}", places[1], 0, "by hand"),
        Placement("task3", "gpu0" if gpus else f"cpu{places[2]}", places[2], 1, "by hand"),
    )
    inputs = tuple(Piece(rank, name, WHOLE) for rank in sorted(set(places[:2])) for name in "ab")
    results = (Piece(places[0], "c", WHOLE), Piece(places[2], "d", WHOLE))
    graph = build_dag(_tasks(), buffers, storages)
    topology = Topology.local(ranks, gpus=gpus)
    host, gpu = places[2], ranks
    copies = (
        DeviceCopy(0, "c", WHOLE, host, gpu, "task3", 80),
        DeviceCopy(1, "d", WHOLE, host, gpu, "task3", 80),
        DeviceCopy(2, "d", WHOLE, gpu, host, "", 80),
    )
    copies = copies if gpus else ()
    on_gpu = (_copy(0), _copy(1), _run("task3"), _copy(2)) if gpus else (_run("task3"),)
    if ranks == 1:
        programs = ((_run("task1"), _run("task2"), *on_gpu),)
        return Schedule(
            graph, topology, Policy.LEVELS, Sync.EDGES, placements, (), programs, inputs, results,
            copies=copies,
        )  # fmt: skip
    transfers = (
        Transfer(0, "c", WHOLE, 0, 2, "task1", "task3", 80),
        Transfer(1, "d", WHOLE, 1, 2, "task2", "task3", 80),
    )
    barrier = Step(StepKind.BARRIER)
    programs = (
        (_run("task1"), _move(StepKind.SEND, 0), _move(StepKind.WAIT_SENT, 0), barrier),
        (_run("task2"), _move(StepKind.SEND, 1), _move(StepKind.WAIT_SENT, 1), barrier),
        (
            _move(StepKind.POST, 0),
            _move(StepKind.POST, 1),
            _move(StepKind.WAIT_RECEIVED, 0),
            _move(StepKind.WAIT_RECEIVED, 1),
            barrier,
            *on_gpu,
        ),
    )
    return Schedule(
        graph,
        topology,
        Policy.LEVELS,
        Sync.LEVELS,
        placements,
        transfers,
        programs,
        inputs,
        results,
        copies=copies,
    )


def _tasks() -> list[Task]:
    cpu, gpu = Target("cpu", "cpu"), Target("gpu", "sm_90")
    whole = {name: Access(name, name, (WHOLE,)) for name in "abcd"}
    return [
        Task("task1", cpu, (whole["a"], whole["b"]), (whole["c"],)),
        Task("task2", cpu, (whole["a"], whole["b"]), (whole["d"],)),
        Task("task3", gpu, (whole["c"], whole["d"]), (whole["d"],)),
    ]


def _copy(number: int) -> Step:
    return Step(StepKind.COPY, copy=number)


def _run(task: str) -> Step:
    return Step(StepKind.RUN, task)


def _move(kind: StepKind, transfer: int) -> Step:
    return Step(kind, transfer=transfer)


def build(module: ir.Module, schedule: Schedule) -> tuple[tuple[Stage, ...], Binary]:
    """All stages in reading order, and what engines run."""
    done, binary = scheduled_binary(module, schedule, CompileOptions())
    return in_reading_order(done.stages), binary
