"""Python functions as programs: their source -> the text of a func.func. Loads no MLIR."""
