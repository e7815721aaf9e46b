"""MLIR has no op classes for the mpi dialect; found here, its bindings stop searching the file system at every operation."""
