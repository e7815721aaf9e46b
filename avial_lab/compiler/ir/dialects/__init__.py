"""The avial, ptensor, dist and distir dialects in MLIR: declared in IRDL, avial's with accessors
and a verifier.

`register(context)` makes a context know them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mlir import ir
from mlir._mlir_libs._mlir import globals as mlir_globals
from mlir.dialects import irdl

IRDL_FILE = Path(__file__).with_name("avial.irdl.mlir")
PTENSOR_FILE = Path(__file__).with_name("ptensor.irdl.mlir")
DIST_FILE = Path(__file__).with_name("dist.irdl.mlir")
DISTIR_FILE = Path(__file__).with_name("distir.irdl.mlir")
"""What stock `mlir-opt --irdl-file=` takes."""


def register(context: ir.Context) -> None:
    """Declare our dialects in `context`, once, and load every dialect a body may use."""
    _find_accessors()
    if context.is_registered_operation("avial.task"):
        return
    context.load_all_available_dialects()
    with context:
        for file in (IRDL_FILE, PTENSOR_FILE, DIST_FILE, DISTIR_FILE):
            irdl.load_dialects(ir.Module.parse(file.read_text(encoding="utf-8")))


@cache
def _find_accessors() -> None:
    """From now on MLIR hands out our op classes (`avial.py`) for avial's operations."""
    mlir_globals.append_dialect_search_prefix("avial_lab.compiler.ir.dialects")
