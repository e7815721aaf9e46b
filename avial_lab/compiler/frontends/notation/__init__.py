"""The short notation of avial programs: cell text -> full MLIR."""
