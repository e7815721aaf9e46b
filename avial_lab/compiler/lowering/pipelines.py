"""Passes by their names, and the pipelines that both ways down share."""

from __future__ import annotations

from avial_lab.compiler.catalogue import HOST, TO_LLVM_DIALECT, rows
from avial_lab.compiler.lowering.run import Pass

OURS: dict[str, type] = {row.name: row.load(by_name=True) for row in rows() if row.is_ours}
"""Passes that can be named on a command line."""

TO_HOST: tuple[Pass | str, ...] = HOST.passes()

TO_LLVM: tuple[str, ...] = TO_LLVM_DIALECT.passes()
