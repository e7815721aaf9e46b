"""A cell's text -> a verified module in the avial dialect, every operation with its place; and back to text."""

from avial_lab.notation.printer import print_module
from avial_lab.parse.cells import parse_cell

__all__ = ["parse_cell", "print_module"]
