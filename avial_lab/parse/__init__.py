"""A cell's text -> a verified module in the avial dialect, every operation with its place; and back
to text.
"""

from avial_lab.dialects.program import is_plain
from avial_lab.parse.cells import parse_cell
from avial_lab.parse.printing import print_explained, print_module

__all__ = ["is_plain", "parse_cell", "print_explained", "print_module"]
