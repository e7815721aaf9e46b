"""Elementary functions as arithmetic: straight code of sums, products and bits, for vectors.

`numbers` writes the operations, the other modules the functions, each from its argument to its
value at the insertion point.
"""
