"""Tasks on devices: what a rank copies follows from its steps; nothing travels to where it is."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import avial_lab
from avial_lab.artifact.device_memory import WAY_OUT
from avial_lab.core.buffers import Buffer, Storage, row_major
from avial_lab.core.errors import CheckError
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.placement import schedule_tasks
from avial_lab.planning.schedule import Schedule, StepKind
from avial_lab.planning.task_graph import Access, Task, build_dag
from avial_lab.runtime.native.loader import digest, load_program
from avial_lab.runtime.native.places import Devices, Places, device_failure
from tests.quick import examples

N = 12
NAMES = "abc"


@st.composite
def accesses(draw: st.DrawFn) -> Access:
    name = draw(st.sampled_from(NAMES))
    low = draw(st.integers(0, N - 1))
    return Access(name, name, (Box((low,), (draw(st.integers(low + 1, N)),)),))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    buffers = tuple(
        Buffer(name, (N,), "f64", name, row_major((N,)), temporary=name == "c")
        for name in NAMES
    )  # fmt: skip
    storages = tuple(Storage(name, (N,), 8, (name,)) for name in NAMES)
    tasks = [
        Task(
            f"t{k}", Target(arch, arch),
            tuple(draw(st.lists(accesses(), max_size=3))),
            tuple(draw(st.lists(accesses(), min_size=1, max_size=2))),
        )
        for k, arch in enumerate(draw(st.lists(st.sampled_from(["cpu", "gpu"]), max_size=8)))
    ]  # fmt: skip
    ranks, gpus = draw(st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (3, 5)]))
    graph = build_dag(tasks, buffers, storages)
    return schedule_tasks(graph, Topology.local(ranks, gpus=gpus, arch="x86_64"))


def versions(schedule: Schedule) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Runs the steps on numbers of versions: for each task and result what it finds, and what it
    should (0: the caller's; -1: nothing is there).
    """
    topology, graph = schedule.topology, schedule.graph
    places = topology.ranks + len(topology.accelerators)
    there = {name: np.full((places, N), -1) for name in NAMES}
    for name in NAMES:
        if name != "c":
            there[name][: topology.ranks] = 0
    latest = {name: np.full(N, -1 if name == "c" else 0) for name in NAMES}
    wire: dict[int, np.ndarray] = {}
    order = {placed.task: k for k, placed in enumerate(schedule.placements)}
    waiting = [list(program) for program in schedule.programs]
    done = 0
    while any(waiting):
        before = done
        for rank, steps in enumerate(waiting):
            while steps:
                step = steps[0]
                if step.kind is StepKind.RUN and order[step.task] != done:
                    break  # one after the other, as their versions are
                if step.kind is StepKind.WAIT_RECEIVED and step.transfer not in wire:
                    break
                steps.pop(0)
                if step.kind is StepKind.COPY:
                    copy = schedule.copies[step.copy]
                    array, part = there[copy.storage], copy.box.slices
                    assert not np.array_equal(array[copy.dest][part], array[copy.source][part])
                    array[copy.dest][part] = array[copy.source][part]
                elif step.kind is StepKind.SEND:
                    sent = schedule.transfers[step.transfer]
                    place = sent.places[0] if sent.places else rank
                    wire[step.transfer] = there[sent.storage][place][sent.box.slices].copy()
                elif step.kind is StepKind.WAIT_RECEIVED:
                    got = schedule.transfers[step.transfer]
                    place = got.places[1] if got.places else rank
                    there[got.storage][place][got.box.slices] = wire[step.transfer]
                elif step.kind is StepKind.RUN:
                    task = graph.by_name[step.task]
                    place = topology.place_of(schedule.placement_of[task.name].device)
                    for access in task.reads:
                        for box in access.region:
                            found = there[access.storage][place][box.slices]
                            yield task.name, found.copy(), latest[access.storage][box.slices].copy()
                    done += 1
                    for access in task.writes:
                        for box in access.region:
                            there[access.storage][place][box.slices] = done
                            latest[access.storage][box.slices] = done
        assert done > before or not any(waiting), "a rank waits for ever"
    for piece in schedule.results:
        found = there[piece.storage][piece.rank][piece.box.slices]
        yield "result", found, latest[piece.storage][piece.box.slices]


@settings(max_examples=examples(150), deadline=None)
@given(schedules())
def test_every_task_finds_the_last_version(schedule: Schedule) -> None:
    """And no copy brings what is there."""
    for name, found, wanted in versions(schedule):
        known = wanted >= 0  # of a temporary nobody wrote, anything will do
        np.testing.assert_array_equal(found[known], wanted[known], err_msg=name)


def test_memory_that_a_gpu_has_not_is_told_by_array() -> None:
    """Of two arrays the second is too large; what fails is said, also once all is given back."""
    arrays = {"a": np.arange(40.0), "b": np.zeros(40), "c": np.zeros(40)}
    program = avial_lab.compile(TEXT, arrays=arrays, ranks=1, gpus=1)
    code = program.binary.shared_object
    loaded = load_program(code, digest(code), entry="main")
    places = Places(loaded, 1, 0, (0,))
    storages = [Storage("small", (40,), 8, ("small",)), Storage("large", (1 << 58,), 8, ("large",))]
    room = np.zeros(40)
    addresses = [room.ctypes.data, room.ctypes.data]
    places.begin(storages, addresses, devices=Devices())
    at = loaded.library.avial_at
    at.restype = ctypes.c_void_p
    assert at(ctypes.c_int64(1), ctypes.c_int64(0), ctypes.c_void_p(addresses[0]))
    assert not at(ctypes.c_int64(1), ctypes.c_int64(1), ctypes.c_void_p(addresses[1]))
    why = (
        "the emulated device has no memory for 2305843009213693952 bytes: array 'large' takes "
        "2305843009213693952 bytes on gpu0; there are already array 'small' with 320 bytes"
    )
    assert device_failure(loaded, storages, 1)[:2] == (why, WAY_OUT)
    places.end()
    assert device_failure(loaded, storages, 1)[:2] == (why, WAY_OUT)


TEXT = """avial.schedule %a: memref<40xf64>, %b: memref<40xf64>, %c: memref<40xf64> {
  %cpu = avial.target {arch = "cpu"}
  %gpu = avial.target {arch = "sm_90"}
  %t1 = avial.task %gpu, %a, %b {
    gpu.launch {
      %i = gpu.thread_id x
      %x = memref.load %a[%i]
      %y = arith.addf %x, %x
      memref.store %y, %b[%i]
    }
  }
  %t2 = avial.task %gpu, %b, %c {
    affine.for %i = 0 to 40 {
      %x = affine.load %b[%i]
      %y = arith.mulf %x, %x
      affine.store %y, %c[%i]
    }
  }
  %t3 = avial.task %cpu, %b, %c {
    affine.for %i = 0 to 10 {
      %x = affine.load %c[%i]
      affine.store %x, %b[%i]
    }
  }
}"""


@pytest.mark.parametrize("seed", [0, 9])
def test_a_run_copies_what_was_planned(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    a = np.arange(40.0)
    arrays = {"a": a.copy(), "b": np.zeros(40), "c": np.zeros(40)}
    program = avial_lab.compile(TEXT, arrays=arrays, ranks=1, gpus=1)
    assert [(c.source, c.dest, c.storage, str(c.box)) for c in program.schedule.copies] == [
        (0, 1, "a", "[0:40]"),  # once; b stays there for t2
        (1, 0, "c", "[0:10]"),  # what t3 reads
        (1, 0, "b", "[10:40]"),
        (1, 0, "c", "[10:40]"),
    ]
    trace = program.run(check=True, device_seed=seed)
    assert set(trace.copies) == set(program.schedule.copied)
    avial_lab.check(program, bytes_copied=(40 + 10 + 30 + 30) * 8)
    assert "✓ 880 bytes between hosts and GPUs, planned and counted" in capsys.readouterr().out
    with pytest.raises(CheckError):
        avial_lab.check(program, bytes_copied=879)
    assert "the program copies 880 bytes:\n      320 from cpu0 to gpu0" in capsys.readouterr().out
    np.testing.assert_array_equal(arrays["b"], np.r_[(2 * a[:10]) ** 2, 2 * a[10:]])
    np.testing.assert_array_equal(arrays["c"], (2 * a) ** 2)
    names = [event.name for event in trace.events]
    assert "copy a[0:40] cpu0 → gpu0" in names
    assert "copy c[0:10] gpu0 → cpu0" in names
