"""A module back in short notation.

ir.Module -> text that `parse_cell` reads as the same module.
"""

from __future__ import annotations

from mlir import ir


def print_module(module: ir.Module) -> str:
    return module.operation.get_asm(use_name_loc_as_prefix=True)
