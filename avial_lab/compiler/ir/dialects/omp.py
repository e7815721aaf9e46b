"""The dialect of `omp.terminator`; MLIR's own classes for it are in `mlir.dialects.openmp`.

This module is here to be found: where none is, MLIR's bindings search the whole path again for
every operation.
"""
