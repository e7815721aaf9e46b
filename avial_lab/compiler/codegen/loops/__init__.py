"""Loops and their parts: bounds, chunks, unrolled and jammed bodies."""
