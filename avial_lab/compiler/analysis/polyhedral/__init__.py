"""Exact affine analysis: which iterations depend on which, and which elements a part touches.

MLIR operation -> Scop (statements with isl domains and relations) -> dependences, reductions; what
a part touches is in `touched`. What is not affine is taken to touch all it can reach: conservative,
never wrong.

    scop = read_scop(function)
    known = dependences(scop)
    for loop in scop.loops:
        forbidding(loop, scop, known)        # empty: its iterations may run at the same time
"""
