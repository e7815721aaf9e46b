"""Blocked algorithms of linear algebra as tasks that call functions on blocks.

Each with the pairs of tasks that the textbook's graph has (Buttari, Langou, Kurzak, Dongarra 2009,
"A class of parallel tiled linear algebra algorithms for multicore architectures", section 3), and
what it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

Pairs = set[tuple[str, str]]


@dataclass(frozen=True)
class Blocked:
    """The program on `blocks`² blocks of side²; `meaning` does it to arrays in place.

    `pairs` are the textbook's, `beside` those of elements that a task between leaves as they are:
    in the textbook it counts as their writer.
    """

    text: str
    pairs: Pairs
    beside: Pairs
    arrays: Callable[[np.random.Generator], dict[str, np.ndarray]]
    meaning: Callable[[dict[str, np.ndarray]], None]


def _tile(side: int, size: int) -> str:
    return f"memref<{side}x{side}xf64, strided<[{size}, 1], offset: ?>>"


class _Program:
    def __init__(self, names: str, blocks: int, side: int) -> None:
        self.names, self.side, self.size = names, side, blocks * side
        self.tile = _tile(side, self.size)
        self.whole = f"memref<{self.size}x{self.size}xf64>"
        self.tasks: list[str] = []

    def task(self, name: str, function: str, *tiles: tuple[str, int, int]) -> None:
        """A task that calls `function` on those blocks: (array, row, column)."""
        lines, values = [], []
        for number, (array, row, column) in enumerate(tiles):
            i, j = row * self.side, column * self.side
            window = self.tile.replace("?", str(i * self.size + j)) if i + j else None
            window = window or self.tile.replace(", offset: ?", "")
            view, value = f"%v{number}", f"%w{number}"
            lines.append(
                f"      {view} = memref.subview %{array}[{i}, {j}] [{self.side}, {self.side}] "
                f"[1, 1] : {self.whole} to {window}"
            )
            lines.append(f"      {value} = memref.cast {view} : {window} to {self.tile}")
            values.append(value)
        listed = ", ".join(f"%{a}" for a in dict.fromkeys(array for array, _, _ in tiles))
        types = ", ".join([self.tile] * len(tiles))
        lines.append(f"      func.call @{function}({', '.join(values)}) : ({types}) -> ()")
        head = f"    %{name} = avial.task %cpu, {listed} {{"
        self.tasks.append("\n".join([head, *lines, "    }"]))

    def text(self, functions: str) -> str:
        arguments = ", ".join(f"%{name}: {self.whole}" for name in self.names)
        listed = ", ".join(f"%{name}" for name in self.names)
        functions = functions.replace("$T", self.tile).replace("$S", str(self.side))
        return "\n".join([
            functions,
            f"func.func @blocked({arguments}) {{",
            f"  avial.schedule {listed} {{",
            '    %cpu = avial.target {arch = "cpu"}',
            *self.tasks,
            "  }",
            "  return",
            "}",
        ])  # fmt: skip


_PRODUCT = """
func.func private @gemm(%a: $T, %b: $T, %c: $T) {
  affine.for %i = 0 to $S { affine.for %j = 0 to $S { affine.for %k = 0 to $S {
    %x = affine.load %a[%i, %k] : $T
    %y = affine.load %b[%k, %j] : $T
    %z = affine.load %c[%i, %j] : $T
    %p = arith.mulf %x, %y : f64
    %q = arith.SIGN %z, %p : f64
    affine.store %q, %c[%i, %j] : $T
  } } }
  return
}
"""


def gemm(blocks: int, side: int) -> Blocked:
    """C += A B."""
    program = _Program("ABC", blocks, side)
    for i, j, k in np.ndindex(blocks, blocks, blocks):
        program.task(f"g{i}_{j}_{k}", "gemm", ("A", i, k), ("B", k, j), ("C", i, j))
    pairs = {
        (f"g{i}_{j}_{k - 1}", f"g{i}_{j}_{k}")
        for i, j, k in np.ndindex(blocks, blocks, blocks)
        if k
    }

    def meaning(m: dict[str, np.ndarray]) -> None:
        m["C"] += m["A"] @ m["B"]

    size = blocks * side
    return Blocked(
        program.text(_PRODUCT.replace("SIGN", "addf")),
        pairs,
        set(),
        lambda rng: {name: rng.standard_normal((size, size)) for name in "ABC"},
        meaning,
    )


_CHOLESKY = """
func.func private @potrf(%a: $T) {
  affine.for %j = 0 to $S {
    affine.for %k = 0 to affine_map<(d0) -> (d0)>(%j) {
      %x = affine.load %a[%j, %k] : $T
      affine.for %i = affine_map<(d0) -> (d0)>(%j) to $S {
        %y = affine.load %a[%i, %k] : $T
        %z = affine.load %a[%i, %j] : $T
        %p = arith.mulf %x, %y : f64
        %q = arith.subf %z, %p : f64
        affine.store %q, %a[%i, %j] : $T
      }
    }
    %d = affine.load %a[%j, %j] : $T
    %r = math.sqrt %d : f64
    affine.for %i = affine_map<(d0) -> (d0)>(%j) to $S {
      %y = affine.load %a[%i, %j] : $T
      %q = arith.divf %y, %r : f64
      affine.store %q, %a[%i, %j] : $T
    }
  }
  return
}
func.func private @trsm(%l: $T, %a: $T) {
  affine.for %i = 0 to $S { affine.for %j = 0 to $S {
    affine.for %k = 0 to affine_map<(d0) -> (d0)>(%j) {
      %x = affine.load %a[%i, %k] : $T
      %y = affine.load %l[%j, %k] : $T
      %z = affine.load %a[%i, %j] : $T
      %p = arith.mulf %x, %y : f64
      %q = arith.subf %z, %p : f64
      affine.store %q, %a[%i, %j] : $T
    }
    %d = affine.load %l[%j, %j] : $T
    %y = affine.load %a[%i, %j] : $T
    %q = arith.divf %y, %d : f64
    affine.store %q, %a[%i, %j] : $T
  } }
  return
}
func.func private @syrk(%a: $T, %c: $T) {
  affine.for %i = 0 to $S { affine.for %j = 0 to affine_map<(d0) -> (d0 + 1)>(%i) {
    affine.for %k = 0 to $S {
      %x = affine.load %a[%i, %k] : $T
      %y = affine.load %a[%j, %k] : $T
      %z = affine.load %c[%i, %j] : $T
      %p = arith.mulf %x, %y : f64
      %q = arith.subf %z, %p : f64
      affine.store %q, %c[%i, %j] : $T
    }
  } }
  return
}
""" + _PRODUCT.replace("%b[%k, %j]", "%b[%j, %k]").replace("SIGN", "subf")


def cholesky(blocks: int, side: int) -> Blocked:
    """The lower half of A becomes L with L Lᵀ = A."""
    program = _Program("A", blocks, side)
    pairs: Pairs = set()
    for k in range(blocks):
        program.task(f"potrf{k}", "potrf", ("A", k, k))
        if k:
            pairs.add((f"syrk{k}_{k - 1}", f"potrf{k}"))
        for i in range(k + 1, blocks):
            program.task(f"trsm{i}_{k}", "trsm", ("A", k, k), ("A", i, k))
            pairs.add((f"potrf{k}", f"trsm{i}_{k}"))
            if k:
                pairs.add((f"gemm{i}_{k}_{k - 1}", f"trsm{i}_{k}"))
        for i in range(k + 1, blocks):
            for j in range(k + 1, i):
                program.task(f"gemm{i}_{j}_{k}", "gemm", ("A", i, k), ("A", j, k), ("A", i, j))
                pairs |= {(f"trsm{row}_{k}", f"gemm{i}_{j}_{k}") for row in (i, j)}
                if k:
                    pairs.add((f"gemm{i}_{j}_{k - 1}", f"gemm{i}_{j}_{k}"))
            program.task(f"syrk{i}_{k}", "syrk", ("A", i, k), ("A", i, i))
            pairs.add((f"trsm{i}_{k}", f"syrk{i}_{k}"))
            if k:
                pairs.add((f"syrk{i}_{k - 1}", f"syrk{i}_{k}"))

    def meaning(m: dict[str, np.ndarray]) -> None:
        a = m["A"]
        a[:] = np.tril(np.linalg.cholesky(a)) + np.triu(a, 1)

    size = blocks * side

    def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
        half = rng.standard_normal((size, size))
        return {"A": half @ half.T + size * np.eye(size)}

    return Blocked(program.text(_CHOLESKY), pairs, set(), arrays, meaning)


_LU = """
func.func private @getrf(%a: $T) {
  affine.for %k = 0 to $S {
    %d = affine.load %a[%k, %k] : $T
    affine.for %i = affine_map<(d0) -> (d0 + 1)>(%k) to $S {
      %x = affine.load %a[%i, %k] : $T
      %f = arith.divf %x, %d : f64
      affine.store %f, %a[%i, %k] : $T
      affine.for %j = affine_map<(d0) -> (d0 + 1)>(%k) to $S {
        %y = affine.load %a[%k, %j] : $T
        %z = affine.load %a[%i, %j] : $T
        %p = arith.mulf %f, %y : f64
        %q = arith.subf %z, %p : f64
        affine.store %q, %a[%i, %j] : $T
      }
    }
  }
  return
}
func.func private @lower(%l: $T, %a: $T) {
  affine.for %k = 0 to $S { affine.for %i = affine_map<(d0) -> (d0 + 1)>(%k) to $S {
    %x = affine.load %l[%i, %k] : $T
    affine.for %j = 0 to $S {
      %y = affine.load %a[%k, %j] : $T
      %z = affine.load %a[%i, %j] : $T
      %p = arith.mulf %x, %y : f64
      %q = arith.subf %z, %p : f64
      affine.store %q, %a[%i, %j] : $T
    }
  } }
  return
}
func.func private @upper(%u: $T, %a: $T) {
  affine.for %i = 0 to $S { affine.for %k = 0 to $S {
    %d = affine.load %u[%k, %k] : $T
    %x = affine.load %a[%i, %k] : $T
    %f = arith.divf %x, %d : f64
    affine.store %f, %a[%i, %k] : $T
    affine.for %j = affine_map<(d0) -> (d0 + 1)>(%k) to $S {
      %y = affine.load %u[%k, %j] : $T
      %z = affine.load %a[%i, %j] : $T
      %p = arith.mulf %f, %y : f64
      %q = arith.subf %z, %p : f64
      affine.store %q, %a[%i, %j] : $T
    }
  } }
  return
}
""" + _PRODUCT.replace("SIGN", "subf")


def lu(blocks: int, side: int) -> Blocked:
    """A becomes L (below the diagonal, which is 1) and U with L U = A; no rows change places."""
    program = _Program("A", blocks, side)
    pairs: Pairs = set()
    beside: Pairs = set()  # the first row of U in each block is as the update before left it

    def after(name: str, k: int, i: int, j: int, *others: str) -> None:
        pairs.update((other, name) for other in others)
        if k:
            pairs.add((f"gemm{i}_{j}_{k - 1}", name))

    for k in range(blocks):
        program.task(f"getrf{k}", "getrf", ("A", k, k))
        after(f"getrf{k}", k, k, k)
        for j in range(k + 1, blocks):
            program.task(f"row{k}_{j}", "lower", ("A", k, k), ("A", k, j))
            after(f"row{k}_{j}", k, k, j, f"getrf{k}")
            program.task(f"column{j}_{k}", "upper", ("A", k, k), ("A", j, k))
            after(f"column{j}_{k}", k, j, k, f"getrf{k}")
            if k:
                beside.add((f"gemm{k}_{k}_{k - 1}", f"column{j}_{k}"))
        for i, j in _below(k, blocks):
            program.task(f"gemm{i}_{j}_{k}", "gemm", ("A", i, k), ("A", k, j), ("A", i, j))
            after(f"gemm{i}_{j}_{k}", k, i, j, f"column{i}_{k}", f"row{k}_{j}")
            if k:
                beside.add((f"gemm{k}_{j}_{k - 1}", f"gemm{i}_{j}_{k}"))

    def meaning(m: dict[str, np.ndarray]) -> None:
        a = m["A"]
        for k in range(len(a)):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])

    size = blocks * side

    def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"A": rng.standard_normal((size, size)) + size * np.eye(size)}

    return Blocked(program.text(_LU), pairs, beside, arrays, meaning)


def _below(k: int, blocks: int) -> Iterator[tuple[int, int]]:
    return ((i, j) for i in range(k + 1, blocks) for j in range(k + 1, blocks))


ALGORITHMS = {"gemm": gemm, "cholesky": cholesky, "lu": lu}
