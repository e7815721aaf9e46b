"""A cell's text -> a verified module in the avial dialect, every operation with its place; and back
to text.
"""

from avial_lab.compiler.frontends.mlir.cells import parse_cell
from avial_lab.compiler.frontends.mlir.printing import print_explained, print_module
from avial_lab.compiler.ir.program import is_plain

__all__ = ["is_plain", "parse_cell", "print_explained", "print_module"]
