"""What the task graph says, drawn by hand: edges, levels, what moves between ranks and how much.

The random programs hold that no edge is missing; here that none is needless.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from avial_lab.program.compilation import compile as compile_program

ARRAYS = {
    "a": np.zeros(100, np.int32),
    "b": np.zeros(100, np.int32),
    "c": np.zeros(100, np.int32),
    "m": np.zeros((8, 10), np.float64),
    "s": np.zeros((), np.int64),
}


@dataclass(frozen=True)
class Drawn:
    """`edges`: "before-after HAZARD buffer bytes, …"; `moves`: "buffer[box] source>dest; …"."""

    tasks: str
    edges: str
    levels: str
    moves: str = ""
    ranks: int = 2
    arrays: dict[str, np.ndarray] = field(default_factory=lambda: ARRAYS)


def fill(name: str, start: int, stop: int, *, step: int = 1) -> str:
    return f"""
      %k = arith.constant 1 : i32
      scf.for %i = {start} to {stop} step {step} {{ memref.store %k, %{name}[%i] }}"""


def move(source: str, dest: str, start: int, stop: int, *, shift: int = 0) -> str:
    return f"""
      affine.for %i = {start} to {stop} {{
        %v = affine.load %{source}[%i + {shift}]
        affine.store %v, %{dest}[%i]
      }}"""


def task(name: str, buffers: str, body: str, *, more: str = "", target: str = "%cpu") -> str:
    listed = "".join(f", %{buffer}" for buffer in buffers.split())
    return f"  %{name} = avial.task {target}{listed}{more} {{{body}\n  }}\n"


def column(name: str, low: int, high: int, *, store: bool) -> str:
    write = f"%k = arith.constant 2.0 : f64\n memref.store %k, %{name}[%i, %j]"
    read = f"%v = memref.load %{name}[%i, %j]\n %k = arith.fptosi %v : f64 to i64"
    inner = write if store else f"{read}\n memref.store %k, %s[]"
    return f"\n scf.for %i = 0 to 8 {{ scf.for %j = {low} to {high} {{ {inner} }} }}"


def block(name: str, top: int, bottom: int, left: int, right: int) -> str:
    return f"""
      %k = arith.constant 1 : i32
      scf.parallel %i, %j = {top}, {left} to {bottom}, {right} {{
        memref.store %k, %{name}[%i, %j]
      }}"""


_base = np.zeros(100, np.int32)

DRAWN = {
    # t0 ─► t1 ─► t2
    "a chain": Drawn(
        task("t0", "a", fill("a", 0, 100))
        + task("t1", "a b", move("a", "b", 0, 100))
        + task("t2", "b c", move("b", "c", 0, 100)),
        "t0-t1 RAW a 400, t1-t2 RAW b 400",
        "t0 | t1 | t2",
        "",
    ),
    # Readers do not wait for each other.
    "two readers": Drawn(
        task("t0", "a b", move("a", "b", 0, 100)) + task("t1", "a c", move("a", "c", 0, 100)),
        "",
        "t0 t1",
    ),
    "halves that touch": Drawn(
        task("t0", "a", fill("a", 0, 50)) + task("t1", "a", fill("a", 50, 100)), "", "t0 t1"
    ),
    "halves that overlap by one": Drawn(
        task("t0", "a", fill("a", 0, 51)) + task("t1", "a", fill("a", 50, 100)),
        "t0-t1 WAW a 4",
        "t0 | t1",
    ),
    # t2 reads half from either: each half moves once, from its writer.
    "halves meet in a reader": Drawn(
        task("t0", "a", fill("a", 0, 50))
        + task("t1", "a", fill("a", 50, 100))
        + task("t2", "a b", move("a", "b", 0, 100)),
        "t0-t2 RAW a 200, t1-t2 RAW a 200",
        "t0 t1 | t2",
        "a[50:100] 1>0",
    ),
    "write after read": Drawn(
        task("t0", "a b", move("a", "b", 0, 100)) + task("t1", "a", fill("a", 10, 20)),
        "t0-t1 WAR a 40",
        "t0 | t1",
    ),
    # t2 reads what t1 wrote, not what t0 wrote below it.
    "the last writer only": Drawn(
        task("t0", "a", fill("a", 0, 100))
        + task("t1", "a", fill("a", 0, 100))
        + task("t2", "a b", move("a", "b", 0, 100)),
        "t0-t1 WAW a 400, t1-t2 RAW a 400",
        "t0 | t1 | t2",
    ),
    "a part of it shines through": Drawn(
        task("t0", "a", fill("a", 0, 100))
        + task("t1", "a", fill("a", 20, 60))
        + task("t2", "a b", move("a", "b", 10, 30)),
        "t0-t1 WAW a 160, t0-t2 RAW a 40, t1-t2 RAW a 40",
        "t0 | t1 | t2",
    ),
    # Odd and even elements, but a region is a box: the edge stays. Nothing is written for sure.
    "strides are boxes": Drawn(
        task("t0", "a", fill("a", 0, 100, step=2)) + task("t1", "a", fill("a", 1, 100, step=2)),
        "t0-t1 WAW a 392",
        "t0 | t1",
    ),
    "subviews apart": Drawn(
        "  %u = memref.subview %a[0] [50] [1]\n  %w = memref.subview %a[50] [50] [1]\n"
        + task("t0", "u", fill("u", 0, 50))
        + task("t1", "w", fill("w", 0, 50)),
        "",
        "t0 t1",
    ),
    "subviews by arithmetic": Drawn(
        "  %q = arith.constant 25 : index\n  %h = arith.addi %q, %q\n"
        "  %u = memref.subview %a[%q] [25] [1]\n  %w = memref.subview %a[%h] [%q] [1]\n"
        + task("t0", "u", fill("u", 0, 25))
        + task("t1", "w", fill("w", 0, 25))
        + task("t2", "a b", move("a", "b", 40, 60)),
        "t0-t2 RAW a 40, t1-t2 RAW a 40",
        "t0 t1 | t2",
        "a[50:60] 1>0",
    ),
    "columns": Drawn(
        task("t0", "m", column("m", 0, 5, store=True))
        + task("t1", "m", column("m", 5, 10, store=True))
        + task("t2", "m s", column("m", 4, 6, store=False)),
        "t0-t2 RAW m 64, t1-t2 RAW m 64",
        "t0 t1 | t2",
        "m[0:8, 5:6] 1>0",
    ),
    # What two tasks of a rank read there comes once; what a third rank reads goes there once.
    "a region moves once": Drawn(
        task("t0", "a", fill("a", 0, 100))
        + task("t1", "a b", move("a", "b", 0, 40))
        + task("t2", "a c", move("a", "c", 0, 40))
        + task("t3", "a b", move("a", "b", 40, 80), more=" after %t1")
        + task("t4", "a c", move("a", "c", 20, 60), more=" after %t1"),
        "t0-t1 RAW a 160, t0-t2 RAW a 160, t0-t3 RAW a 160, t0-t4 RAW a 160,"
        " t1-t3 after, t1-t4 after, t2-t4 WAW c 80",
        "t0 | t1 t2 | t3 t4",
        "a[0:40] 0>1; a[40:60] 0>1",
    ),
    "overlapping views of the caller": Drawn(
        task("t0", "x", fill("x", 0, 60)) + task("t1", "y b", move("y", "b", 0, 50)),
        "t0-t1 RAW y 40",
        "t0 | t1",
        arrays={"x": _base[0:60], "y": _base[50:100], "b": ARRAYS["b"]},
    ),
    "views of the caller that only touch": Drawn(
        task("t0", "x", fill("x", 0, 50)) + task("t1", "y b", move("y", "b", 0, 50)),
        "",
        "t0 t1",
        arrays={"x": _base[0:50], "y": _base[50:100], "b": ARRAYS["b"]},
    ),
    "the other half of a shared view": Drawn(
        task("t0", "x", fill("x", 0, 50)) + task("t1", "y b", move("y", "b", 0, 50, shift=0)),
        "",
        "t0 t1",
        arrays={"x": _base[0:60], "y": _base[50:100], "b": ARRAYS["b"]},
    ),
    "rows of a transposed view": Drawn(
        task("t0", "p", block("p", 0, 10, 0, 5))
        + task("t1", "q", block("q", 0, 5, 0, 10))
        + task("t2", "q", block("q", 5, 10, 0, 10)),
        "t0-t1 WAW q 200",
        "t0 t2 | t1",
        arrays={"p": _base.reshape(10, 10), "q": _base.reshape(10, 10).T},
    ),
    "guards on the index": Drawn(
        task(
            "t0",
            "a",
            """
      %n = arith.constant 50 : index
      %k = arith.constant 1 : i32
      scf.for %i = 0 to 100 {
        %low = arith.cmpi slt, %i, %n
        scf.if %low { memref.store %k, %a[%i] }
      }""",
        )
        + task("t1", "a", fill("a", 50, 100)),
        "",
        "t0 t1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_the_graph_is_as_drawn(name: str) -> None:
    drawn = DRAWN[name]
    used = {n: a for n, a in drawn.arrays.items() if f"%{n}" in drawn.tasks}
    listed = ", ".join(f"%{n}" for n in used)
    text = f'avial.schedule {listed} {{\n  %cpu = avial.target {{arch = "cpu"}}\n{drawn.tasks}}}\n'
    program = compile_program(text, arrays=used, ranks=drawn.ranks)
    edges = [
        f"{e.before}-{e.after} {e.hazard.value}" + (f" {e.buffer} {e.nbytes}" if e.buffer else "")
        for e in program.graph.dependencies
    ]
    levels = " | ".join(" ".join(t.name for t in level) for level in program.graph.levels)
    moves = [f"{t.storage}{t.box} {t.source}>{t.dest}" for t in program.schedule.transfers]
    assert (sorted(edges), levels, moves) == (
        sorted(x.strip() for x in drawn.edges.split(",") if x.strip()),
        drawn.levels,
        [x.strip() for x in drawn.moves.split(";") if x.strip()],
    )
