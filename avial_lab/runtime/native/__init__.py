"""What is linked to compiled programs in C, its sources, and the numbers it shares with Python.

ownership/    which rank holds what, what moves for it: the public header is `ownership.h`
threads.c     OpenMP calls, handed on to the library that the engine found
memory.c      what a program allocates, kept for its next run
blas.c        matrix products, handed on to a BLAS that the engine found
constants.py  numbers that C and Python share; the C header of them is generated
sources.py    the texts that are compiled, for the build and for its cache key
"""
