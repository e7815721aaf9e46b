"""Exact affine analysis: which iterations depend on which, and which elements a part touches.

MLIR operation -> Scop (statements with isl domains and relations) -> dependences, reductions; what
a part touches is in `touched`. What is not affine is taken to touch all it can reach: conservative,
never wrong.

    scop = read_scop(function)
    known = dependences(scop)
    for loop in scop.loops:
        forbidding(loop, scop, known)        # empty: its iterations may run at the same time
"""

from avial_lab.compiler.analysis.parallelism.reductions import Reduction, forbidding, reductions
from avial_lab.compiler.analysis.polyhedral.dependences import (
    Dependence,
    DependenceKind,
    carried_by,
    dependences,
)
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import (
    Access,
    Array,
    ArrayKind,
    Loop,
    LoopKind,
    ReductionKind,
    Scop,
    Statement,
    Update,
)

__all__ = [
    "Access",
    "Array",
    "ArrayKind",
    "Dependence",
    "DependenceKind",
    "Loop",
    "LoopKind",
    "Reduction",
    "ReductionKind",
    "Scop",
    "Statement",
    "Update",
    "carried_by",
    "dependences",
    "forbidding",
    "read_scop",
    "reductions",
]
