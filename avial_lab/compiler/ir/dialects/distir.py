"""The distir dialect has no accessors of its own.

MLIR imports a module of this name for the first attribute or operation of the dialect that it
hands out; it does not remember that there is none, and would search for one at each of them: half
of the time of every transform.
"""
