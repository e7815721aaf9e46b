"""A stage of the lowering as a person reads it: the IR's text and the command that makes it.

The facts that travel from the compiler to the page; what makes the stages is `pipelines.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """The program after one named step.

    name is short and stable (`avial`, `mpi`, `gpu`, `llvm`, `llvmir`, `object`, `ptx`); language is
    what colours it (`mlir`, `llvm`, `ptx`, `asm`). `command` is the exact line that makes it from
    the file of the stage before, empty where our own passes do. seconds is the time it took.
    """

    name: str
    title: str
    language: str
    text: str
    command: str = ""
    seconds: float = 0.0
