"""What the name of an operation alone tells: where it stands, what it ends, what it may leave out.

Name of an operation -> facts about it.
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation.source import quote

MODULE_OPS = frozenset({
    "func.func", "module", "builtin.module", "gpu.module", "memref.global", "llvm.func",
    "llvm.mlir.global", "gpu.binary",
})  # fmt: skip
QUOTED_MODULE_OPS = frozenset(quote(name) for name in MODULE_OPS)
TERMINATORS = frozenset({
    "return", "func.return", "ub.unreachable", "cf.br", "cf.cond_br", "cf.switch", "omp.terminator",
    "llvm.unreachable", "llvm.return", '"func.return"', '"omp.terminator"', '"ub.unreachable"',
    "cf.assert",
})  # fmt: skip
IMPLIED_TERMINATORS = {
    "scf.for": "scf.yield",
    "scf.if": "scf.yield",
    "scf.index_switch": "scf.yield",
    "scf.parallel": "scf.reduce",
    "affine.for": "affine.yield",
    "affine.if": "affine.yield",
    "affine.parallel": "affine.yield",
    "gpu.launch": "gpu.terminator",
    "memref.alloca_scope": "memref.alloca_scope.return",
}
BARE = frozenset(
    {"return", "call", "call_indirect", "constant", "module", "unrealized_conversion_cast"}
)
ISOLATED = frozenset({
    "func.func", "module", "builtin.module", "gpu.module", "gpu.func", "llvm.func",
    '"func.func"', '"builtin.module"', '"gpu.module"', '"gpu.func"', '"llvm.func"',
})  # fmt: skip
INTEGER_LISTS = {
    "dimensions": frozenset({"linalg.reduce", "linalg.broadcast"}),
    "permutation": frozenset({"linalg.transpose"}),
}
NO_HEADER = frozenset({"return", "func.return"})


def operation_names(dialect: str) -> set[str]:
    """Every operation of a dialect that MLIR's Python package knows."""
    import importlib

    if not re.fullmatch(r"[a-z]\w*", dialect):
        return set()
    try:
        module = importlib.import_module(f"mlir.dialects._{dialect}_ops_gen")
    except ImportError:
        return set()
    found = (getattr(item, "OPERATION_NAME", None) for item in vars(module).values())
    return {name for name in found if name}
