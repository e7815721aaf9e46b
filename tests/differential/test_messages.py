"""Messages of every size, in both directions at once, between all ranks, and in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.runtime.launch.cluster import Cluster
from tests.differential.cases import Arrays, Case, try_case

KIB, MIB = 1 << 10, 1 << 20


def _swap(m: Arrays) -> None:
    m["a"][:], m["b"][:] = m["x"], m["y"]
    m["c"][:], m["d"][:] = m["b"], m["a"]


def swap(count: int) -> Case:
    """rank 0: a ─┐┌─► c        Both send before either receives: blocking sends would wait for
    rank 1: b ─┘└─► d        each other for ever, as soon as MPI does not buffer them.
    """
    pairs = (("x", "a"), ("y", "b"), ("b", "c"), ("a", "d"))
    tasks = "".join(
        f"  %t{k} = avial.task %cpu, %{source}, %{dest} {{ memref.copy %{source}, %{dest} }}\n"
        for k, (source, dest) in enumerate(pairs)
    )
    names = ", ".join(f"%{name}" for name in "xyabcd")
    return Case(
        f'avial.schedule {names} {{\n  %cpu = avial.target {{arch = "cpu"}}\n{tasks}}}\n',
        lambda rng: {name: rng.integers(-128, 128, count, dtype=np.int8) for name in "xyabcd"},
        _swap,
    )


@pytest.mark.quick("1-levels", "65536-levels", "65537-edges", "16777216-edges")
@pytest.mark.mpi
@pytest.mark.parametrize("sync", ["edges", "levels"])
@pytest.mark.parametrize("count", [1, 64 * KIB, 64 * KIB + 1, 16 * MIB])
def test_both_directions_at_once(count: int, sync: str, cluster: Cluster) -> None:
    program = try_case(swap(count), cluster, ranks=2, sync=sync)
    assert [(t.source, t.dest, t.nbytes) for t in program.schedule.transfers] == [
        (1, 0, count),
        (0, 1, count),
    ]


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("sync", ["edges", "levels"])
def test_two_hundred_mebibytes_each_way(sync: str, cluster: Cluster) -> None:
    try_case(swap(200 * MIB), cluster, ranks=2, sync=sync)


def _rounds(m: Arrays, rounds: int, ranks: int) -> None:
    for _ in range(rounds):
        for k in range(ranks):
            m["m"][k] += k
        total = m["m"].sum(axis=0, dtype="int32")
        for k in range(ranks):
            m["s"][k] = total * (k + 1)
        for k in range(ranks):
            m["m"][k] = m["s"].min(axis=0)


def all_to_all(rounds: int, ranks: int, width: int) -> Case:
    """Each round every rank changes its row, reads all rows, and again all rows of the result."""
    tasks: list[str] = []
    for r in range(rounds):
        tasks += [
            f"""
  %own{r}_{k} = avial.task %cpu, %m {{
    %k = arith.constant {k} : i32
    affine.for %j = 0 to {width} {{
      %x = affine.load %m[{k}, %j]
      %y = arith.addi %x, %k
      affine.store %y, %m[{k}, %j]
    }}
  }}"""
            for k in range(ranks)
        ]
        for name, source, dest, operation, first in (
            ("sum", "m", "s", "addi", 0),
            ("min", "s", "m", "minsi", 2**31 - 1),
        ):
            tasks += [
                f"""
  %{name}{r}_{k} = avial.task %cpu, %{source}, %{dest} {{
    %first = arith.constant {first} : i32
    %factor = arith.constant {k + 1 if name == "sum" else 1} : i32
    affine.for %j = 0 to {width} {{
      %t = affine.for %i = 0 to {ranks} iter_args(%u = %first) -> (i32) {{
        %x = affine.load %{source}[%i, %j]
        %v = arith.{operation} %u, %x
        affine.yield %v
      }}
      %w = arith.muli %t, %factor
      affine.store %w, %{dest}[{k}, %j]
    }}
  }}"""
                for k in range(ranks)
            ]
    text = f'avial.schedule %m, %s {{\n  %cpu = avial.target {{arch = "cpu"}}{"".join(tasks)}\n}}\n'
    return Case(
        text,
        lambda rng: {
            name: rng.integers(-50, 50, (ranks, width)).astype("int32") for name in ("m", "s")
        },
        lambda m: _rounds(m, rounds, ranks),
    )


@pytest.mark.quick("7-edges")
@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "sync"), [(2, "edges"), (5, "levels"), (7, "edges")])
def test_every_rank_to_every_rank(ranks: int, sync: str, cluster: Cluster) -> None:
    program = try_case(all_to_all(3, ranks, 3), cluster, ranks=ranks, sync=sync)
    assert len(program.schedule.transfers) >= 2 * ranks * (ranks - 1)


def _columns(m: Arrays) -> None:
    for k in range(4):
        m["b"][:, :, 3 * k : 3 * k + 3] = m["a"][:, :, 3 * k : 3 * k + 3] * (k + 1)
    for k in range(4):
        m["a"][k] = m["b"][k]


def columns_to_rows(rows: int) -> Case:
    """Four ranks write columns of b, then read planes of it: every message is in pieces."""
    tasks = "".join(
        f"""
  %column{k} = avial.task %cpu, %a, %b {{
    %f = arith.constant {k + 1} : i16
    affine.parallel (%p, %i, %j) = (0, 0, {3 * k}) to (4, {rows}, {3 * k + 3}) {{
      %x = affine.load %a[%p, %i, %j]
      %y = arith.muli %x, %f
      affine.store %y, %b[%p, %i, %j]
    }}
  }}"""
        for k in range(4)
    ) + "".join(
        f"""
  %plane{k} = avial.task %cpu, %a, %b {{
    affine.parallel (%i, %j) = (0, 0) to ({rows}, 12) {{
      %x = affine.load %b[{k}, %i, %j]
      affine.store %x, %a[{k}, %i, %j]
    }}
  }}"""
        for k in range(4)
    )
    return Case(
        f'avial.schedule %a, %b {{\n  %cpu = avial.target {{arch = "cpu"}}{tasks}\n}}\n',
        lambda rng: {name: rng.integers(-999, 999, (4, rows, 12)).astype("int16") for name in "ab"},
        _columns,
    )


@pytest.mark.quick("1", "50")
@pytest.mark.mpi
@pytest.mark.parametrize("rows", [1, 50, 100_000])
def test_messages_in_pieces(rows: int, cluster: Cluster) -> None:
    program = try_case(columns_to_rows(rows), cluster, ranks=4)
    assert {t.nbytes for t in program.schedule.transfers} == {rows * 3 * 2}
    assert len(program.schedule.transfers) == 4 * 3
