"""MLIR has no Python classes for the mpi dialect; its operations are plain `ir.Operation`s.

This module is here to be found: where none is, MLIR's bindings search the whole path again for
every operation.
"""
