"""Large random programs: hundreds of tasks over a dozen arrays, views and temporaries.

Wider than `tests/programs.py` and not shrinkable: a seed is a program. Its truth is a loop over
elements in Python, or NumPy where the body is one operation of linalg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random

import numpy as np

from tests.differential.cases import Arrays, Case

Index = tuple[int, ...]
Step = Callable[[Arrays], None]

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda x, y: x + y,
    "subi": lambda x, y: x - y,
    "muli": lambda x, y: x * y,
    "xori": lambda x, y: x ^ y,
    "minsi": min,
    "maxsi": max,
}


def wrapped(value: int) -> int:
    """As a 32-bit integer."""
    return (value + 2**31) % 2**32 - 2**31


@dataclass(frozen=True)
class Place:
    """One dimension of an index: constant + factor × loop variable (of that number)."""

    constant: int
    factor: int = 0
    loop: int = 0

    def at(self, point: Index) -> int:
        return self.constant + (self.factor * point[self.loop] if self.factor else 0)

    def affine(self) -> str:
        if not self.factor:
            return str(self.constant)
        return f"{self.factor} * %i{self.loop} + {self.constant}"

    def lines(self, name: str) -> list[str]:
        if not self.factor:
            return [f"%{name} = arith.constant {self.constant} : index"]
        return [
            f"%{name}c = arith.constant {self.constant} : index",
            f"%{name}f = arith.constant {self.factor} : index",
            f"%{name}m = arith.muli %i{self.loop}, %{name}f",
            f"%{name} = arith.addi %{name}m, %{name}c",
        ]


@dataclass
class Generator:
    """Writes one program. `shown` are the arrays, views and temporaries by name, to look at."""

    random: Random
    arrays: Arrays
    shown: Arrays = field(default_factory=dict)
    views: list[tuple[str, Callable[[Arrays], np.ndarray]]] = field(default_factory=list)
    temporaries: dict[str, Index] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    tasks: int = 0

    def write(self, count: int) -> tuple[str, Step]:
        self.shown.update(self.arrays)
        self.lines += [
            f"avial.schedule {', '.join(f'%{name}' for name in self.arrays)} {{",
            '  %cpu = avial.target {arch = "x86_64"}',
            '  %gpu = avial.target {arch = "sm_90"}',
        ]
        for k in range(2):
            self._add_temporary(f"tmp{k}")
        for k in range(4):
            self._add_view(f"view{k}")
        bodies = (self._loops, self._loops, self._loops, self._linalg, self._reduction, self._swap)
        while self.tasks < count:
            self.random.choice(bodies)()
        self.lines.append("}")
        return "\n".join([*self.lines, ""]), self._meaning

    def _meaning(self, arrays: Arrays) -> None:
        memory = dict(arrays)
        for name, shape in self.temporaries.items():
            memory[name] = np.zeros(shape, np.int32)
        for name, view in self.views:
            memory[name] = view(memory)
        for step in self.steps:
            step(memory)

    # -- names

    def _add_temporary(self, name: str) -> None:
        """A temporary begins undefined: its first task fills it."""
        shape = self.random.choice([(9,), (5, 6)])
        self.temporaries[name] = shape
        self.shown[name] = np.zeros(shape, np.int32)
        kind = "x".join(map(str, shape))
        self.lines.append(f"  %{name} = memref.alloc() : memref<{kind}xi32>")
        self._fill(name)

    def _add_view(self, name: str) -> None:
        root = self._pick(lambda a: a.ndim > 0 and a.size > 4)
        slices = []
        for extent in self.shown[root].shape:
            start = self.random.randrange(extent)
            step = self.random.choice([1, 1, 2])
            size = self.random.randint(1, (extent - start + step - 1) // step)
            slices.append(slice(start, start + (size - 1) * step + 1, step))
        offsets, sizes, strides = (
            ", ".join(str(f(s)) for s in slices)
            for f in (
                lambda s: s.start,
                lambda s: len(range(s.start, s.stop, s.step)),
                lambda s: s.step,
            )
        )
        if self.random.random() < 0.5:  # an offset that has to be computed to be known
            first, _, rest = offsets.partition(", ")
            self.lines += [
                f"  %{name}a = arith.constant {int(first) + 3} : index",
                f"  %{name}b = arith.constant 3 : index",
                f"  %{name}c = arith.subi %{name}a, %{name}b",
            ]
            offsets = f"%{name}c{', ' + rest if rest else ''}"
        self.lines.append(f"  %{name} = memref.subview %{root}[{offsets}] [{sizes}] [{strides}]")
        where = tuple(slices)
        self.views.append((name, lambda memory: memory[root][where]))
        self.shown[name] = self.shown[root][where]

    def _pick(self, fits: Callable[[np.ndarray], bool] = lambda _: True) -> str:
        return self.random.choice([name for name, array in self.shown.items() if fits(array)])

    def _apart(self, one: str, other: str) -> bool:
        return not np.shares_memory(self.shown[one], self.shown[other])

    # -- tasks

    def _task(self, buffers: list[str], body: list[str], step: Step) -> None:
        target = self.random.choice(["%cpu", "%cpu", "%cpu", "%gpu"])
        after = ""
        if self.tasks and self.random.random() < 0.1:
            after = f" after %t{self.random.randrange(self.tasks)}"
        listed = ", ".join(f"%{name}" for name in dict.fromkeys(buffers))
        self.lines.append(f"  %t{self.tasks} = avial.task {target}, {listed}{after} {{")
        self.lines += [f"    {line}" for line in body]
        self.lines.append("  }")
        self.steps.append(step)
        self.tasks += 1

    def _fill(self, name: str) -> None:
        value = self.random.randint(-9, 9)
        body = [f"%k = arith.constant {value} : i32", f"linalg.fill ins(%k) outs(%{name})"]
        self._task([name], body, lambda memory: memory[name].fill(value))

    def _loops(self) -> None:
        """dest[…] = left[…] op right[…] over a box; indices go forwards, backwards and across."""
        dest = self._pick(lambda a: a.size > 0)
        left, right = self._pick(lambda a: a.size > 0), self._pick(lambda a: a.size > 0)
        depth = self.random.randint(1, 2)
        sizes = tuple(self.random.randint(1, 5) for _ in range(depth))
        roles = zip("dlr", (dest, left, right), strict=True)
        at = {role: self._places(name, sizes) for role, name in roles}
        operation = self.random.choice(sorted(OPERATIONS))
        guarded = self.random.random() < 0.3
        points = list(product(*map(range, sizes)))
        written = {tuple(p.at(point) for p in at["d"]) for point in points}
        free = len(written) == len(points) and self._apart(dest, left) and self._apart(dest, right)
        style = self.random.choice(
            ["for", "affine", "parallel", "grid"] if free else ["for", "affine"]
        )
        body = self._nest(style, sizes, at, (dest, left, right), operation, guarded)

        def step(memory: Arrays) -> None:
            for point in points:
                x, y = (
                    int(memory[name][tuple(p.at(point) for p in at[role])])
                    for role, name in (("l", left), ("r", right))
                )
                if not guarded or x > y:
                    value = wrapped(OPERATIONS[operation](x, y))
                    memory[dest][tuple(p.at(point) for p in at["d"])] = value

        self._task([left, right, dest], body, step)

    def _places(self, name: str, sizes: Index) -> tuple[Place, ...]:
        places = []
        for extent in self.shown[name].shape:
            loop = self.random.randrange(len(sizes))
            factor = self.random.choice([1, 1, 1, -1, 2, 0])
            reach = abs(factor) * (sizes[loop] - 1)
            if not factor or reach >= extent:
                places.append(Place(self.random.randrange(extent)))
                continue
            low = self.random.randint(0, extent - 1 - reach)
            places.append(Place(low if factor > 0 else low + reach, factor, loop))
        return tuple(places)

    def _nest(
        self,
        style: str,
        sizes: Index,
        at: dict[str, tuple[Place, ...]],
        names: tuple[str, str, str],
        operation: str,
        guarded: bool,
    ) -> list[str]:
        dest, left, right = names
        if style == "affine":
            load = "affine.load"
            index = {role: ", ".join(p.affine() for p in places) for role, places in at.items()}
            inner: list[str] = []
        else:
            load = "memref.load"
            index, inner = {}, []
            for role, places in at.items():
                for d, place in enumerate(places):
                    inner += place.lines(f"{role}{d}")
                index[role] = ", ".join(f"%{role}{d}" for d in range(len(places)))
        store = f"{load.replace('load', 'store')} %v, %{dest}[{index['d']}]"
        inner += [
            f"%x = {load} %{left}[{index['l']}]",
            f"%y = {load} %{right}[{index['r']}]",
            f"%v = arith.{operation} %x, %y",
        ]
        inner += ["%g = arith.cmpi sgt, %x, %y", f"scf.if %g {{ {store} }}"] if guarded else [store]
        return [*self._head(style, sizes), *inner, *self._foot(style, sizes)]

    def _head(self, style: str, sizes: Index) -> list[str]:
        if style in ("for", "affine"):
            word = "scf.for" if style == "for" else "affine.for"
            return [f"{word} %i{d} = 0 to {size} {{" for d, size in enumerate(sizes)]
        if style == "parallel":
            names = ", ".join(f"%i{d}" for d in range(len(sizes)))
            zeros = ", ".join("0" for _ in sizes)
            return [f"scf.parallel {names} = {zeros} to {', '.join(map(str, sizes))} {{"]
        blocks, threads = (sizes[0], 1, 1), (*sizes[1:], 1, 1, 1)[:3]
        head = [f"%n{k} = arith.constant {n} : index" for k, n in enumerate((*blocks, *threads))]
        second = "%tx" if len(sizes) > 1 else "%zero"
        return [
            *head,
            "%zero = arith.constant 0 : index",
            "gpu.launch blocks(%bx, %by, %bz) in (%gx = %n0, %gy = %n1, %gz = %n2)"
            " threads(%tx, %ty, %tz) in (%sx = %n3, %sy = %n4, %sz = %n5) {",
            "%i0 = arith.addi %bx, %zero",
            f"%i1 = arith.addi {second}, %zero",
        ]

    def _foot(self, style: str, sizes: Index) -> list[str]:
        if style == "grid":
            return ["gpu.terminator", "}"]
        return ["}"] * (1 if style == "parallel" else len(sizes))

    def _linalg(self) -> None:
        """matmul, transpose or copy between arrays that fit and are apart."""
        found = []
        flat = [n for n, a in self.shown.items() if a.ndim == 2 and a.size]
        for a, b in product(flat, flat):
            if not self._apart(a, b):
                continue
            shape, other = self.shown[a].shape, self.shown[b].shape
            if shape == other:
                found.append(("linalg.copy ins(%{}) outs(%{})", (a, b)))
                found.append(("memref.copy %{}, %{}", (a, b)))
            if shape == other[::-1]:
                text = "linalg.transpose ins(%{}) outs(%{}) permutation = [1, 0]"
                found.append((text, (a, b)))
            for c in flat:
                rows, columns = (shape[0], other[1])
                if (
                    shape[1] == other[0]
                    and self.shown[c].shape == (rows, columns)
                    and self._apart(a, c)
                    and self._apart(b, c)
                ):
                    found.append(("linalg.matmul ins(%{}, %{}) outs(%{})", (a, b, c)))
        if not found:
            return
        text, names = self.random.choice(found)

        def step(memory: Arrays) -> None:
            if "matmul" in text:
                a, b, c = (memory[name] for name in names)
                c += (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
            elif "transpose" in text:
                memory[names[1]][:] = memory[names[0]].T
            else:
                memory[names[1]][:] = memory[names[0]]

        self._task(list(names), [text.format(*names)], step)

    def _reduction(self) -> None:
        """One element becomes the sum, least or greatest of all elements of another array."""
        source = self._pick(lambda a: a.ndim in (1, 2) and a.size > 0)
        dest = self._pick(lambda a: a.size > 0)
        where = tuple(self.random.randrange(n) for n in self.shown[dest].shape)
        operation = self.random.choice(["addi", "minsi", "maxsi", "xori"])
        shape = self.shown[source].shape
        body = [f"%w{d} = arith.constant {k} : index" for d, k in enumerate(where)]
        index = ", ".join(f"%w{d}" for d in range(len(where)))
        names = ", ".join(f"%i{d}" for d in range(len(shape)))
        zeros, ends = ", ".join("0" for _ in shape), ", ".join(map(str, shape))
        first = self.random.randint(-5, 5)
        body += [
            f"%first = arith.constant {first} : i32",
            f"%all = scf.parallel {names} = {zeros} to {ends} init (%first) {{",
            f"%x = memref.load %{source}[{names}]",
            "scf.reduce(%x) {",
            f"^bb0(%p, %q): %r = arith.{operation} %p, %q scf.reduce.return %r",
            "}",
            "}",
            f"memref.store %all, %{dest}[{index}]",
        ]

        def step(memory: Arrays) -> None:
            total = first
            for value in memory[source].ravel():
                total = wrapped(OPERATIONS[operation](total, int(value)))
            memory[dest][where] = total

        self._task([source, dest], body, step)

    def _swap(self) -> None:
        """Turn an array around through scratch memory of the body."""
        name = self._pick(lambda a: a.ndim == 1 and a.size > 0)
        n = self.shown[name].shape[0]
        body = [
            f"%t = memref.alloca() : memref<{n}xi32>",
            f"%last = arith.constant {n - 1} : index",
            f"scf.for %i = 0 to {n} {{ %x = memref.load %{name}[%i] memref.store %x, %t[%i] }}",
            f"scf.for %i = 0 to {n} {{",
            "  %j = arith.subi %last, %i",
            "  %x = memref.load %t[%j]",
            f"  memref.store %x, %{name}[%i]",
            "}",
        ]

        def step(memory: Arrays) -> None:
            memory[name][:] = memory[name][::-1].copy()

        self._task([name], body, step)


def arrays_of(random: Random) -> Callable[[np.random.Generator], Arrays]:
    """A handful of arrays, of which some share memory; all are 32-bit integers."""
    kinds = [random.random() < 0.6 for _ in range(4)]

    def make(rng: np.random.Generator) -> Arrays:
        def ints(*shape: int) -> np.ndarray:
            return rng.integers(-20, 20, shape).astype(np.int32)

        arrays = {"A": ints(9), "M": ints(5, 6), "F": np.asfortranarray(ints(6, 5)), "P": ints()}
        if kinds[0]:
            base = ints(16)
            arrays |= {"U": base[0:9], "V": base[5:16:2]}
        if kinds[1]:
            base = ints(6, 8)
            arrays |= {"G": base[:, 0:5], "H": base[::-1, 3:8]}
        if kinds[2]:
            arrays |= {"T": arrays["M"].T, "R": arrays["A"][::-1]}
        if kinds[3]:
            arrays |= {"Q": ints(2, 3, 4), "E": ints(0, 3)}
        return arrays

    return make


def random_case(seed: int, tasks: int) -> Case:
    random = Random(seed)
    arrays = arrays_of(random)
    writer = Generator(random, arrays(np.random.default_rng(0)))
    text, meaning = writer.write(tasks)
    return Case(text, arrays, meaning)


def random_cases(seeds: range, tasks: int) -> Iterator[tuple[int, Case]]:
    for seed in seeds:
        yield seed, random_case(seed, tasks)
