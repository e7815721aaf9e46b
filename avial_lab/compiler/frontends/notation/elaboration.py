"""What is known of a cell while it is read, and what remains of that when it has been read.

Text and types by name -> Elaboration: the text of one module, and what MLIR cannot keep.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from avial_lab.compiler.frontends.notation.output import Output
from avial_lab.compiler.frontends.notation.source import Source

Scalar = int | float | bool
Place = tuple[int, int]
"""Line and column, from 1, of the first character of a statement."""


@dataclass(frozen=True)
class Listed:
    """What the head of a task in short notation said of its buffers: name and offset of each.

    plain: the buffers stood in one list, their roles follow from the body.
    """

    plain: tuple[tuple[str, int], ...] | None
    reads: tuple[tuple[str, int], ...] = ()
    writes: tuple[tuple[str, int], ...] = ()


@dataclass
class Elaboration:
    """The cell as one MLIR module, and what MLIR cannot keep of the notation."""

    source: Source
    output: Output
    block_arguments: dict[Place, list[tuple[str, Place]]] = field(default_factory=dict)
    """Loop variables and block arguments, by the statement that owns the region, in textual order.
    """
    listed: dict[Place, Listed] = field(default_factory=dict)
    generic: bool = False
    """Whether some avial operation stands in MLIR's generic form."""
    labels: bool = False
    """Whether some block is labelled (`^bb0:`)."""
    main: int | None = None
    """Where the first statement outside of all functions begins: they are in a @main of ours."""


@dataclass
class Constant:
    """`%c = arith.constant 3` without a type, until a use says which."""

    output: Output
    piece: int
    literal: str
    rest: str


@dataclass(frozen=True)
class Unknown:
    """The type of result `index` of a statement this package does not know; MLIR is asked when it
    is needed.
    """

    pieces: tuple[str, ...]
    results: str
    index: int
    operands: tuple[tuple[str, str], ...]


Type = str | Constant | Unknown | None
BUFFER = "!avial.buffer_ref"


@dataclass
class Program:
    """The avial part of the function that is being read.

    buffers: the arguments that @main gets from its schedules, by name without the %: type and
    offset of the name.
    """

    in_main: bool = False
    in_schedule: bool = False
    buffers: dict[str, tuple[str, int]] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    tasks: int = 0
