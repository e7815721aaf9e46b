"""What the operations are called, how they are written, and what they do.

Name -> Markdown. Our own and the forms of the short notation are here; MLIR's words are read out
of its Python package's source, so that nothing of MLIR is loaded.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

DIALECTS = (
    "affine", "arith", "cf", "complex", "func", "gpu", "index", "linalg", "math", "memref", "scf",
    "tensor", "vector",
)  # fmt: skip
"""MLIR's dialects that programs are written in."""

FIRST = (
    "avial.schedule", "avial.target", "avial.task", "avial.replicate", "avial.converge",
    "scf.parallel", "scf.for", "scf.if", "gpu.launch", "gpu.thread_id",
    "memref.load", "memref.store",
    "arith.constant", "arith.addi", "arith.muli", "arith.subi", "arith.addf", "arith.mulf",
    "arith.subf", "arith.divf", "arith.cmpi", "arith.select", "arith.index_cast",
    "affine.for", "affine.parallel", "affine.load", "affine.store", "func.func", "return",
)  # fmt: skip
"""What is offered where nothing is typed yet, the likeliest first."""

AVIAL = {
    "avial.schedule": """Tasks in program order over buffers.

The buffers are the caller's arrays of the same name (in a notebook its variables); their types come
from the arrays, or are written: `%a: memref<20xi32>`. Dependences are derived from what the
tasks read and write; the result equals running them one after the other.""",
    "avial.target": """A constraint on the device that runs a task: `arch`, `node`, `rank`.

`arch` is `"cpu"`, `"gpu"`, an instruction set (`"x86_64"`) or a compute capability (`"sm_90"`). An
emulated GPU satisfies every GPU target, a real one those its compute capability covers.""",
    "avial.task": """Work for one device: its target, then the buffers it reads or writes.

Reads and writes are derived from the body. `reads(%a) writes(%b)` declares them, and is then
checked; `after %task1` adds an edge by hand. Touching a buffer that is not listed is an error.""",
    "avial.replicate": """A task split over all devices of its target.

Its outer parallel loop is divided (`--division=block | cyclic(N) | grid | auto`); a device
computes what it owns, neighbours send what they read of each other, reductions are joined.""",
    "avial.converge": """Repeats its tasks: at most `max` times, or until a condition holds.

The condition compares a buffer of one element (`lt le gt ge`); all ranks stop in the same
iteration.""",
}

WORDS = {
    "reads": "`reads(%a, %b)`: what the task reads, declared and checked.",
    "writes": "`writes(%c)`: what the task writes, declared and checked.",
    "after": "`after %task1`: waits for that task, whether or not their buffers require it.",
    "arch": '`arch = "x86_64"`: the architecture a target asks for: cpu, gpu, x86_64, sm_90 …',
    "node": '`node = "node07"`: the machine a target asks for.',
}
"""Words of the notation that are no operations."""


@cache
def usages() -> dict[str, str]:
    """Every operation of the short notation, and how it is written where that is not plain.

    The table is written by `python -m tests.notebook.operations_table`; a test holds it true.
    """
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


@cache
def operation_names() -> tuple[str, ...]:
    """Those of the notation first, then all others of MLIR's dialects for programs."""
    short = [*FIRST, *(name for name in usages() if name not in FIRST)]
    others = (name for dialect in DIALECTS for name in _documents(dialect) if name not in short)
    return (*short, *sorted(others))


def describe_operation(name: str) -> str | None:
    """Markdown: how it is written, and what it does; None for what is no operation."""
    name = "func.return" if name == "return" else name
    written, text = usages().get(name, ""), AVIAL.get(name) or _documents_of(name)
    if text is None and not written:
        return None
    usage = f"```mlir\n{written}\n```\n\n" if written else ""
    return f"**{name}**\n\n{usage}{text or ''}".rstrip()


def _documents_of(name: str) -> str | None:
    dialect = name.partition(".")[0]
    return _documents(dialect).get(name) if dialect in DIALECTS else None


@cache
def _documents(dialect: str) -> dict[str, str]:
    """Operation -> what MLIR's package says of it; nothing where MLIR is not installed."""
    package = find_spec("mlir")
    folders = package.submodule_search_locations if package else None
    for folder in folders or ():
        path = Path(folder, "dialects", f"_{dialect}_ops_gen.py")
        if path.is_file():
            return dict(_documented(path.read_text(encoding="utf-8")))
    return {}


def _documented(source: str) -> list[tuple[str, str]]:
    """The operations of a generated module, and their docstrings without the indent."""
    found = []
    for one in re.split(r"^class ", source, flags=re.MULTILINE)[1:]:
        name = re.search(r'^  OPERATION_NAME = "([^"]+)"', one, re.MULTILINE)
        text = re.match(r'\w+\([\w.]+\):\n  r"""(.*?)"""', one, re.DOTALL)
        if name:
            found.append((name[1], re.sub(r"(?m)^  ", "", text[1]).strip() if text else ""))
    return found
