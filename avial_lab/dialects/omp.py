"""MLIR's omp operations under the name its bindings look for.

They ask for `<prefix>.omp` at every operation they hand out, and MLIR calls that module `openmp`: without this one the
file system is searched each time (57 µs an operation).
"""

from mlir.dialects.openmp import *  # noqa: F403
