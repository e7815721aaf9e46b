"""Hypothesis strategies: regions, task programs, topologies."""

from __future__ import annotations

from hypothesis import strategies as st

from avial_lab.core.buffers import Buffer, Storage, row_major
from avial_lab.core.regions import Box, union
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.task_graph import Access, Task, TaskGraph, build_dag

ITEMSIZE = 4


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> Box:
    """A box inside an array of that shape, sometimes empty."""
    ends = [sorted((draw(st.integers(0, n)), draw(st.integers(0, n)))) for n in shape]
    return Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))


@st.composite
def accesses(draw: st.DrawFn, storages: tuple[Storage, ...], *, writes: bool) -> Access:
    storage = draw(st.sampled_from(storages))
    region = union(draw(st.lists(boxes(storage.shape), min_size=1, max_size=2)))
    exact = draw(st.booleans()) if writes else True
    return Access(storage.name, storage.name, region, exact)


@st.composite
def task_graphs(draw: st.DrawFn, *, most_tasks: int = 12) -> TaskGraph:
    """Random tasks on a few small arrays of one to three dimensions; every hazard comes up."""
    shapes = draw(st.lists(st.sampled_from([(6,), (4, 3), (2, 2, 2), ()]), min_size=1, max_size=3))
    storages = tuple(
        Storage(f"b{k}", shape, ITEMSIZE, (f"b{k}",)) for k, shape in enumerate(shapes)
    )
    buffers = tuple(Buffer(s.name, s.shape, "f32", s.name, row_major(s.shape)) for s in storages)
    tasks: list[Task] = []
    for k in range(draw(st.integers(1, most_tasks))):
        after = draw(st.sets(st.sampled_from([t.name for t in tasks]), max_size=1)) if tasks else ()
        tasks.append(
            Task(
                f"t{k}",
                Target("any", draw(st.sampled_from(["cpu", "gpu"]))),
                tuple(draw(st.lists(accesses(storages, writes=False), max_size=2))),
                tuple(draw(st.lists(accesses(storages, writes=True), max_size=2))),
                tuple(sorted(after)),
            )
        )
    return build_dag(tasks, buffers, storages)


def topologies(*, most_ranks: int = 5) -> st.SearchStrategy[Topology]:
    """1 to `most_ranks` ranks, the last one or two of which drive a GPU."""
    return st.integers(1, most_ranks).flatmap(
        lambda ranks: st.integers(1, min(2, ranks)).map(
            lambda gpus: Topology.local(ranks, gpus=gpus, arch="x86_64")
        )
    )
