"""Elementary functions as arithmetic: straight code of sums, products and bits, for vectors.

`numbers` writes the operations, `pairs` those of twice the digits, the other modules the functions,
each from its arguments to its value at the insertion point.
"""
