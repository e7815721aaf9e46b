"""The compiler: all that may load MLIR, in a process of its own (`worker`).

Text -> IR (frontends) -> passes -> stages -> machine code (backends). What is asked of it, and what
it answers, is without MLIR and loaded by both sides: `catalogue`, `options`, `requests`.
"""
