"""What a piece of code is to the polyhedral model: loops, arrays, statements and their accesses.

The types that analysis hands on. isl objects in them are documented fields (`islpy.Set`,
`islpy.Map`); all of them live in islpy's default context, so they may be combined freely.

    for i = 1 to N                   Loop i
      A[i] = A[i - 1] + B[2 * i]     S0: read A[i - 1]   { S0[i] -> A[i - 1] : 1 <= i < N }
                                     S1: read B[2 * i]   { S1[i] -> B[2i]    : 1 <= i < N }
                                     S2: write A[i]      { S2[i] -> A[i]     : 1 <= i < N }

Source: P. Feautrier, Dataflow analysis of array and scalar references, IJPP 20 (1991);
S. Verdoolaege, isl: An integer set library for the polyhedral model, ICMS 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import count

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.core.errors import CellSpan


class LoopKind(Enum):
    FOR = "for"  # affine.for, scf.for
    PARALLEL = "parallel"  # one dimension of affine.parallel, scf.parallel
    WHILE = "while"  # scf.while, avial.converge: iterations counted 0, 1, 2, …


@dataclass(frozen=True)
class Loop:
    """One loop variable: `dimension` of `op` (0 but for a parallel loop of several dimensions).

    `name` is its dimension in isl's sets, and what people read; `step` is None where it is not a
    constant. Program order is that of ascending values, for parallel loops too.
    """

    op: ir.Operation
    dimension: int
    name: str
    kind: LoopKind
    step: int | None
    depth: int
    span: CellSpan | None = None

    @property
    def variable(self) -> ir.Value:
        """The block argument that holds it."""
        return self.op.regions[0].blocks[0].arguments[self.dimension]

    def __str__(self) -> str:
        return self.name


class ArrayKind(Enum):
    MEMORY = "memory"
    VALUE = "value"  # what a loop hands to its next iteration (iter_args), one element an iteration
    EFFECT = "effect"  # whatever an operation may touch that we do not understand


@dataclass(frozen=True)
class Array:
    """A root memref (function argument, allocation, global), or what stands in for other state.

    `name` is its tuple in isl's relations. `shape` has None for a size known only at run time;
    `sizes` are the same as text (a number, a parameter's name), None where not even that is known.
    `loops` are those around its allocation: each of their iterations has an array of its own.
    """

    name: str
    value: ir.Value | None
    kind: ArrayKind
    shape: tuple[int | None, ...]
    sizes: tuple[str | None, ...]
    element_type: str
    loops: tuple[Loop, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Access:
    """Which elements one execution of a statement reads or writes.

    `relation`: `{ S0[i, j] -> A[i - 1, j] : … }`, its domain that of the statement. Where `exact`
    is false it may hold more pairs than there are (an indirect index, a memref that may be one of
    several), but only elements the array has; it never holds fewer. `subscripts` are as written,
    None for a whole array; `forms` are those of the array itself, through views, where known.
    """

    array: Array
    writes: bool
    relation: isl.Map
    exact: bool
    subscripts: tuple[str, ...] | None
    forms: tuple[Affine | None, ...] | None = None

    def __str__(self) -> str:
        """`A[i - 1, j]`; `A[…]` for what has no subscripts."""
        if self.array.kind is not ArrayKind.MEMORY:
            return self.array.name
        inner = "…" if self.subscripts is None else ", ".join(self.subscripts)
        return f"{self.array.name}[{inner}]"


@dataclass(frozen=True)
class Statement:
    """One operation that touches memory, with all its executions.

    `domain` is the set of its iterations, `{ S0[i, j] : 0 <= i < N and 0 <= j <= i }`: one
    dimension for each of `loops`, outermost first; everything else is a parameter. Where `exact` is
    false it is a superset (a condition on data, a bound from memory), and `note` says why.
    `position` holds the textual places before, between and after the loops:

        position (b0, b1, b2) of loops (i, j)  ->  schedule { S0[i, j] -> [b0, i, b1, j, b2] }
    """

    name: str
    op: ir.Operation
    loops: tuple[Loop, ...]
    domain: isl.Set
    exact: bool
    position: tuple[int, ...]
    accesses: tuple[Access, ...]
    span: CellSpan | None = None
    note: str | None = None

    @property
    def schedule(self) -> isl.Map:
        """Iterations to points in time, compared lexicographically (the 2d + 1 form).

        Source: A. Cohen, S. Girbal, O. Temam, A polyhedral approach to ease the composition of
        program transformations, Euro-Par 2004.
        """
        times = [str(self.position[0])]
        for loop, place in zip(self.loops, self.position[1:], strict=True):
            times += [loop.name, str(place)]
        dims = ", ".join(loop.name for loop in self.loops)
        text = f"{{ {self.name}[{dims}] -> [{', '.join(times)}] }}"
        return isl.Map(text).intersect_domain(self.domain)

    def must_write(self, access: Access) -> bool:
        """Whether each iteration of the domain writes each element of that write for sure."""
        return access.writes and access.exact and self.exact

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(map(str, self.accesses))}"


@dataclass(frozen=True)
class Scop:
    """A piece of code as statements in textual order.

    `parameters` are the names that domains and relations may hold, each with the MLIR value it
    stands for (None: the size of an array, `A_0` for dimension 0 of A, or a fixed loop around);
    `sizes` are those that are sizes, each with the memref and the dimension. `iterations` of a loop
    are the values of its variable and of those around, where they are known for sure.
    A scop ("static control part") in the strict sense has every statement and access exact.
    """

    op: ir.Operation
    loops: tuple[Loop, ...]
    arrays: tuple[Array, ...]
    statements: tuple[Statement, ...]
    parameters: dict[str, ir.Value | None] = field(compare=False)
    context: isl.Set = field(compare=False)
    updates: tuple[Update, ...] = ()
    notes: tuple[str, ...] = ()
    sizes: dict[str, tuple[ir.Value, int]] = field(compare=False, default_factory=dict)
    iterations: dict[Loop, isl.Set] = field(compare=False, default_factory=dict)

    def loops_of(self, op: ir.Operation) -> tuple[Loop, ...]:
        """The loops that `op` is, one for each of its dimensions."""
        return tuple(loop for loop in self.loops if loop.op == op.operation)

    def free_name(self, stem: str) -> str:
        """`stem` with a number, as a parameter of that name would be new."""
        return next(name for k in count() if (name := f"{stem}{k}") not in self.parameters)

    def within(self, loop: Loop) -> tuple[Statement, ...]:
        """The statements inside `loop`."""
        return tuple(s for s in self.statements if loop in s.loops)


class ReductionKind(Enum):
    SUM = "sum"
    PRODUCT = "product"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    AND = "and"
    OR = "or"
    XOR = "xor"


@dataclass(frozen=True)
class Update:
    """`A[f] = A[f] op x`, or a value so carried from iteration to iteration: half of a reduction.

    `load` and `store` are statements' names (equal for a combined read and write); `op` is the name
    of the operation that combines, say `arith.addf`.

    A key, `avial.argmin`, takes x where that is strictly better, and then its `payloads` take
    what belongs to x: each by an update of its own, `avial.payload`, that names the `key`'s.
    """

    array: Array
    kind: ReductionKind
    op: str
    load: str
    store: str
    payloads: tuple[Array, ...] = ()
    key: Update | None = None
