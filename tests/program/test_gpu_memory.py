"""The memory of GPUs: what a program takes there is known before it runs, is no more than that in
the run, and what does not fit is told by array and device with nothing written.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

import avial_lab
from avial_lab.artifact import device_memory
from avial_lab.artifact.device_memory import WAY_OUT, Stay, fullest, most_bytes
from avial_lab.core.buffers import Storage
from avial_lab.core.errors import OptionError, RunError
from avial_lab.core.regions import Box
from avial_lab.core.runtime_constants import GRANULE
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.native.loader import LoadedProgram, digest
from avial_lab.runtime.rank import engine
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal

N = 100
BYTES = N * 8


def doubled(source: str, dest: str) -> str:
    return f"""
      affine.for %i = 0 to {N} {{
        %x = affine.load %{source}[%i] : memref<{N}xf64>
        %y = arith.addf %x, %x : f64
        affine.store %y, %{dest}[%i] : memref<{N}xf64>
      }}"""


CHAIN = f"""
    func.func @f(%A: memref<{N}xf64>, %B: memref<{N}xf64>) {{
      %t = memref.alloc() : memref<{N}xf64>
      %u = memref.alloc() : memref<{N}xf64>
      {doubled("A", "t")}
      {doubled("t", "u")}
      {doubled("u", "B")}
      return
    }}"""
"""Three arrays are in use at no time: A and t, t and u, u and B."""

UNTIL = f"""
    func.func @f(%A: memref<{N}xf64>, %B: memref<{N}xf64>) {{
      %zero = arith.constant 0 : index
      %most = arith.constant 100.0 : f64
      scf.while : () -> () {{
        %x = memref.load %A[%zero] : memref<{N}xf64>
        %more = arith.cmpf olt, %x, %most : f64
        scf.condition(%more)
      }} do {{
        {doubled("A", "B")}
        {doubled("B", "A")}
        scf.yield
      }}
      return
    }}"""
"""How often depends on data: the plan is a sample."""

TASKS = f"""avial.schedule %A: memref<{N}xf64>, %B: memref<{N}xf64> {{
      %gpu = avial.target {{arch = "gpu"}}
      %t = memref.alloc() : memref<{N}xf64>
      %first = avial.task %gpu, %A, %t {{ {doubled("A", "t")} }}
      %second = avial.task %gpu, %t, %B {{ {doubled("t", "B")} }}
    }}"""


def arrays() -> dict[str, np.ndarray]:
    return {"A": np.arange(1.0, N + 1), "B": np.zeros(N)}


def compiled(text: str, given: dict[str, np.ndarray], **how: Any) -> avial_lab.Program:
    how = {"ranks": 1, "on": "gpu", "driver": "apart"} | how
    return avial_lab.compile(text, arrays=given, **how)


def test_the_fullest_moment() -> None:
    """Sizes that differ: the largest sum is neither the first nor that of most arrays."""
    stays = (
        Stay(2, "a", 10, 0, 3), Stay(2, "b", 100, 3, 5), Stay(2, "c", 20, 4, 9),
        Stay(2, "d", 30, 6, 9), Stay(3, "a", 10, 0, 3),
    )  # fmt: skip
    assert [stay.storage for stay in fullest(stays)[2]] == ["b", "c"]
    assert most_bytes(stays, 2) == (("gpu0", 120), ("gpu1", 10))


@pytest.mark.parametrize("text", [CHAIN, TASKS], ids=["loops", "tasks"])
def test_as_much_is_taken_as_is_planned(text: str) -> None:
    """With no more memory than that, in any order of the queues."""
    given = arrays()
    program = compiled(text, given, gpu_memory=f"{2 * BYTES} B")
    assert program.plan.taken_bytes == (("gpu0", 2 * BYTES),)
    assert "gpu0 takes at most 1.56 KiB: " in str(program.plan)
    for seed in (0, 1):
        assert program.run(check=True, device_seed=seed).taken_bytes == program.plan.taken_bytes


@pytest.mark.parametrize("text", [CHAIN, TASKS], ids=["loops", "tasks"])
def test_what_cannot_fit_is_told_before_the_run(text: str) -> None:
    given = arrays()
    program = compiled(text, given, gpu_memory=2 * BYTES - 1)
    words = (
        "gpu0 has 1,599 bytes of memory free of 1,599, and the program needs 1,600 there at once: "
    )
    with pytest.raises(RunError, match=words) as told:
        program.run()
    names = {stay.storage for stay in fullest(program.plan.stays)[1]}
    assert all(f"{name} 800 B" in told.value.message for name in names)
    assert told.value.hint == WAY_OUT
    assert not given["B"].any()


def test_ranks_see_it_before_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where others than the caller know how much is free."""
    given = arrays()
    program = compiled(CHAIN, given)
    monkeypatch.setattr(program, "_gpu_memory", lambda: 2 * BYTES - 1)
    words = "before its first task: gpu0 has 1,599 bytes of memory free of 1,599, and the program "
    with pytest.raises(RunError, match=words):
        program.run()
    assert not given["B"].any()


@pytest.mark.mpi
def test_what_does_not_fit_in_the_run_is_named(cluster: Cluster) -> None:
    """Where the plan is a sample. The cluster goes on, and the program without the limit."""
    given = arrays()
    program = compiled(UNTIL, given, ranks=2, gpus=2, gpu_memory=2 * BYTES - 1)
    assert not program.plan.complete
    with pytest.raises(RunError) as told:
        program.run(cluster)
    message = told.value.message
    assert "failed in task 'S1' on gpu" in message or "failed in task 'S1' on cpu" in message
    for words in (
        "rank", "of 2", "array 'B' takes 800 bytes on gpu0", "and 799 of 1599 are free",
        "there are already array 'A' with 800 bytes",
    ):  # fmt: skip
        assert words in message
    assert told.value.hint == WAY_OUT
    assert told.value.span is not None
    np.testing.assert_array_equal(given["A"], arrays()["A"])
    compiled(UNTIL, given, ranks=2, gpus=2).run(cluster, check=True)


def test_a_task_that_does_not_fit_is_named() -> None:
    given = arrays()
    program = compiled(TASKS, given, gpu_memory=BYTES)
    manifest = replace(program.binary.manifest, stays=())  # as if nobody had known
    built = replace(program.built, binary=replace(program.binary, manifest=manifest))
    with pytest.raises(RunError, match=r"in task 'first' on gpu0 .*array 't' takes") as told:
        replace(program, built=built).run()
    assert told.value.hint == WAY_OUT
    assert not given["B"].any()


def test_only_the_last_program_keeps_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dropped: list[LoadedProgram] = []
    monkeypatch.setattr(LoadedProgram, "drop_memory", lambda one: dropped.append(one))
    monkeypatch.setattr(engine, "_here", engine._Here())
    journal = Journal(tmp_path, 0, pid=os.getpid(), faults=False)
    programs: list[LoadedProgram] = []
    for text in (CHAIN, TASKS):
        given = arrays()
        binary = compiled(text, given).binary
        code, manifest = binary.shared_object, binary.manifest
        programs.append(engine.load(code, digest(code), manifest))
        inputs = caller_arrays(manifest, given).inputs_of(0)
        for _ in range(2):
            done = engine.run(programs[-1], manifest, 0, inputs, journal=journal, options=Options())
            assert done.taken_bytes == (("gpu0", 2 * BYTES),)
            assert dropped == programs[:-1]


LARGE = 1 << 22
STENCIL = f"""
    func.func @f(%A: memref<{LARGE}xf32>, %B: memref<{LARGE}xf32>) {{
      affine.for %i = 1 to {LARGE - 1} {{
        %x = affine.load %A[%i - 1] : memref<{LARGE}xf32>
        %y = affine.load %A[%i + 1] : memref<{LARGE}xf32>
        %z = arith.addf %x, %y : f32
        affine.store %z, %B[%i] : memref<{LARGE}xf32>
      }}
      return
    }}"""
PART = f"""avial.schedule %A: memref<{LARGE}xf32>, %B: memref<{LARGE}xf32> {{
      %gpu = avial.target {{arch = "gpu"}}
      %some = avial.task %gpu, %A, %B {{
        affine.for %i = 0 to 10 {{
          %x = affine.load %A[%i + {2 * GRANULE // 4 - 5}] : memref<{LARGE}xf32>
          affine.store %x, %B[%i] : memref<{LARGE}xf32>
        }}
      }}
    }}"""


def large() -> dict[str, np.ndarray]:
    return {"A": np.arange(LARGE, dtype=np.float32), "B": np.zeros(LARGE, np.float32)}


def test_a_gpu_has_memory_for_its_share_alone() -> None:
    """Of arrays of eight granules: two and one of its neighbours', or two, of what it reads; two of
    what it writes. What the last element of a granule needs lies in the next one.
    """
    program = compiled(STENCIL, large(), gpus=4)
    taken = [("gpu0", 5), ("gpu1", 6), ("gpu2", 6), ("gpu3", 5)]
    assert program.plan.taken_bytes == tuple((gpu, n * GRANULE) for gpu, n in taken)
    for seed in (0, 1):
        assert program.run(check=True, device_seed=seed).taken_bytes == program.plan.taken_bytes


def test_a_task_has_memory_for_its_boxes_alone() -> None:
    given = large()
    program = compiled(PART, given, gpu_memory=3 * GRANULE)
    assert [stay.granules for stay in program.plan.stays] == [((1, 3),), ((0, 1),)]
    trace = program.run(check=True)
    assert trace.taken_bytes == program.plan.taken_bytes == (("gpu0", 3 * GRANULE),)
    np.testing.assert_array_equal(given["B"][:10], np.arange(10) + 2 * GRANULE // 4 - 5)


@pytest.mark.parametrize("name", ["A", "B"])
def test_what_is_not_mapped_is_not_touched(name: str) -> None:
    """A copy is refused, and a kernel ends its process; nothing is written."""
    given = large()
    program = compiled(PART, given)
    stays = (
        replace(stay, granules=((4, 5),)) if stay.storage == name else stay
        for stay in program.plan.stays
    )
    manifest = replace(program.binary.manifest, stays=tuple(stays))
    built = replace(program.built, binary=replace(program.binary, manifest=manifest))
    said = "a copy leaves the memory" if name == "A" else "rank 0 of 1 died of SIGSEGV"
    with pytest.raises(RunError, match=said):
        replace(program, built=built).run()
    assert not given["B"].any()


@drawn(st.data())
def test_granules_of_boxes(data: st.DataObject) -> None:
    """Against a count of the bytes that each box has."""
    shape = tuple(data.draw(st.lists(st.integers(1, 9), max_size=4)))
    storage = Storage("a", shape, data.draw(st.sampled_from([1, 2, 8])), ("a",))
    boxes: list[Box] = []
    used = np.zeros((*shape, storage.itemsize), bool)
    for _ in range(data.draw(st.integers(0, 3))):
        ends = [sorted(data.draw(st.tuples(*[st.integers(0, n)] * 2))) for n in shape]
        boxes.append(Box(tuple(low for low, _ in ends), tuple(high for _, high in ends)))
        used[boxes[-1].slices] = True
    granule = data.draw(st.sampled_from([1, 4, 8, 32]))
    bits = np.resize(np.append(used, np.zeros(granule, bool)), (used.size // granule + 1, granule))
    bits.reshape(-1)[used.size :] = False
    wanted = set(np.flatnonzero(bits.any(axis=1)).tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_memory, "GRANULE", granule)
        patch.setattr(device_memory, "LEAST_MAPPED", 0)
        runs = device_memory.granules_of(storage, boxes)
    assert {g for start, stop in runs for g in range(start, stop)} == wanted
    assert all(stop < start for (_, stop), (start, _) in itertools.pairwise(runs))


def test_what_is_no_limit() -> None:
    for wrong in ("much", "0", 0, -1, "8 XB", True, "1e9"):
        with pytest.raises(OptionError, match="gpu_memory must be bytes"):
            compiled(CHAIN, arrays(), gpu_memory=wrong)
