"""Forms of nests that have code of their own: products, solves, tables, stencils in time."""
