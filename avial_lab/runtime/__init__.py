"""Running a Binary: engines (MPI ranks), the cluster they belong to, plain `mpiexec`.

Binary, arrays -> the arrays written in place, Trace. Nothing in here imports MLIR.
"""
