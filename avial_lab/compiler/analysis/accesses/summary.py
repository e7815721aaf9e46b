"""What a body does in a few words.

Block -> `scf.parallel 20, linalg.matmul`.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.analysis.accesses.footprints import handler_of
from avial_lab.compiler.analysis.accesses.index_forms import IndexForms
from avial_lab.core.regions import iterations


def summary(block: ir.Block) -> str:
    """The body's loops, launches and linalg operations at its top."""
    words: list[str] = []
    forms = IndexForms()
    for view in block.operations:
        op = view.operation
        if op.name in ("scf.parallel", "scf.for"):
            words.append(f"{op.name} {_trip_counts(forms, op)}")
        elif handler_of(op.name) is not None:
            words.append(op.name)
        if len(words) == 3:
            return ", ".join(words[:2]) + ", …"
    return ", ".join(words)


def _trip_counts(forms: IndexForms, op: ir.Operation) -> str:
    rank = 1 if op.name == "scf.for" else len(op.regions[0].blocks[0].arguments)
    operands = list(op.operands)
    counts = []
    for k in range(rank):
        low, high, step = (forms.constant(operands[k + part * rank]) for part in range(3))
        known = low is not None and high is not None and step is not None and step > 0
        counts.append(str(iterations(low, high, step)) if known else "?")  # type: ignore[arg-type]
    return " × ".join(counts)
