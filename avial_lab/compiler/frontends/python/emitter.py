"""Lines of MLIR, each with the place in the Python source that it is of."""

from __future__ import annotations

import ast
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from avial_lab.compiler.frontends.notation.source import quote
from avial_lab.compiler.frontends.python.linear import Linear, Range, term


@dataclass
class Emitter:
    """`node` is what the next lines are of. `ranges` are those of the loop variables in sight, of
    which `dims` are those of affine loops, and `symbols` the values that are affine symbols; of
    these `sizes` are the sizes of arguments.
    """

    file: str
    lines: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)
    """What has to be done before everything else: memory of the program's own."""
    depth: int = 1
    count: int = 0
    node: ast.AST | None = None
    ranges: dict[str, Range] = field(default_factory=dict)
    dims: frozenset[str] = frozenset()
    symbols: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()
    counts: dict[str, str] = field(default_factory=dict[str, str])
    """Symbols that are integers which the caller hands over, and the names of these."""
    taken: frozenset[str] = frozenset()
    """Names that no loop's variable may have; in a text that is not `plain` none has its own."""
    plain: bool = True
    pinned: bool = False
    """Whether all lines are of the node at hand, whatever they are made for."""
    guards: int = 0
    """Blocks around the line at hand that may not be entered, other than loops over ranges."""
    asides: int = 0
    apart: str = ""
    """Why it has to run in a process of its own; empty where no access hangs on data unchecked."""
    unless: list[Linear] | None = field(default_factory=list[Linear])
    """Where none of these, of the arguments' sizes and integers, is negative, it need not. None:
    it has to.
    """
    positive: set[str] = field(default_factory=set[str])
    """Floats without a sign, whatever the data: squares, their sums; or nan."""
    endless: str = ""
    """Why it may run for any time; empty where that does not hang on data."""

    @property
    def place(self) -> str:
        line = getattr(self.node, "lineno", None)
        if line is None:
            return ""
        column = getattr(self.node, "col_offset", 0) + 1
        return f" loc({quote(self.file)}:{line}:{column})"

    @property
    def given(self) -> frozenset[str]:
        """What the caller knows before a run."""
        return self.sizes | self.counts.keys()

    def keep_apart(self, why: str, *ends: Linear | None) -> None:
        """For that reason, in the line at hand, unless there was one before, where one of `ends` is
        negative.
        """
        self.apart = self.apart or self._told(why)
        if self.unless is None or None in ends or not ends:
            self.unless = None
        else:
            self.unless += [end for end in ends if end is not None and end not in self.unless]

    def may_not_end(self, why: str) -> None:
        self.endless = self.endless or self._told(why)

    def _told(self, why: str) -> str:
        return f"line {getattr(self.node, 'lineno', 0)}: {why}"

    def line(self, text: str) -> None:
        """A whole operation."""
        self.lines.append(f"{'  ' * self.depth}{text}{self.place}")

    def bare(self, text: str) -> None:
        """A part of one."""
        self.lines.append(f"{'  ' * self.depth}{text}")

    def fresh(self, word: str = "") -> str:
        """The name of a new value."""
        self.count += 1
        name = f"%{word}{self.count}" if not word else f"%{word}_{self.count}"
        return self.fresh(word) if name in self.taken else name

    def value(self, text: str, word: str = "") -> str:
        name = self.fresh(word)
        self.line(f"{name} = {text}")
        return name

    @contextmanager
    def block(self, head: str, end: str = "}") -> Generator[None]:
        """An operation with a region; what is defined in there is not seen outside."""
        node, ranges, dims = self.node, dict(self.ranges), self.dims
        self.bare(head)
        self.depth += 1
        guarded = not head.startswith("affine.for")
        self.guards += guarded
        try:
            yield
        finally:
            self.depth -= 1
            self.guards -= guarded
            self.node, self.ranges, self.dims = node, ranges, dims
            if end:
                self.line(end)

    @contextmanager
    def aside(self) -> Generator[list[str]]:
        """Lines that are not written yet."""
        kept, self.lines = self.lines, []
        self.asides += 1
        try:
            yield self.lines
        finally:
            self.asides -= 1
            self.lines = kept

    @property
    def is_certain(self) -> bool:
        """Whether each run comes here, and nothing before can have raised anything."""
        return (
            not (self.asides or self.apart or self.endless)
            and self.depth == 1
            and not any("cf.assert" in line for line in self.lines)
        )

    @contextmanager
    def at(self, node: ast.AST) -> Generator[None]:
        before = self.node
        if not self.pinned:
            self.node = node
        try:
            yield
        finally:
            self.node = before

    @contextmanager
    def loop(self, low: Linear, high: Linear, step: int = 1, word: str = "i") -> Generator[Linear]:
        """affine.for from `low` to before `high`."""
        name = f"%{word}"
        if name in self.ranges or name in self.taken or not self.plain:
            name = self.fresh(word)
        by = f" step {step}" if step != 1 else ""
        head = f"affine.for {name} = {self.bound(low)} to {self.bound(high)}{by} {{"
        with self.block(head):
            self.ranges[name] = Range(low, high - Linear({}, 1))
            self.dims |= {name}
            yield term(name)

    def bound(self, end: Linear) -> str:
        """As the end of an affine loop.

        >>> Emitter("f.py").bound(term("%i") + Linear({}, 1))
        'affine_map<(d0) -> (d0 + 1)>(%i)'
        """
        if end.known is not None:
            return str(end.known)
        dims = [name for name in end.terms if name not in self.symbols]
        symbols = [name for name in end.terms if name in self.symbols]
        short = {name: f"d{k}" for k, name in enumerate(dims)}
        short |= {name: f"s{k}" for k, name in enumerate(symbols)}
        inner = Linear({short[name]: f for name, f in end.terms.items()}, end.constant).text()
        given = ", ".join(f"d{k}" for k in range(len(dims)))
        sizes = ", ".join(f"s{k}" for k in range(len(symbols)))
        by = f"[{', '.join(symbols)}]" if symbols else ""
        sizes = f"[{sizes}]" if symbols else ""
        return f"affine_map<({given}){sizes} -> ({inner})>({', '.join(dims)}){by}"

    def is_affine(self, value: Linear) -> bool:
        return all(name in self.symbols or name in self.dims for name in value.terms)

    def index(self, value: Linear) -> str:
        """The value, of type index."""
        if not value.terms:
            return self.value(f"arith.constant {value.constant} : index")
        if len(value.terms) == 1 and not value.constant and [*value.terms.values()] == [1]:
            return next(iter(value.terms))
        if self.is_affine(value):
            return self.value(f"affine.apply {self.bound(value)}")
        total: str | None = None
        for name, factor in value.terms.items():
            part = name
            if factor != 1:
                by = self.value(f"arith.constant {factor} : index")
                part = self.value(f"arith.muli {name}, {by} : index")
            total = part if total is None else self.value(f"arith.addi {total}, {part} : index")
        assert total is not None
        if value.constant:
            by = self.value(f"arith.constant {value.constant} : index")
            total = self.value(f"arith.addi {total}, {by} : index")
        return total
