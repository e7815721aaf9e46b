"""One rank of the deck's program, without any of avial_lab: an independent reading of the
convention.

mpiexec -n 3 python driver.py program.so [handle of MPI_BYTE, None for the true one]
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI


def main() -> None:
    path, byte = sys.argv[1:]
    # MPI's functions are found by name: what mpi4py has loaded has to be seen by everyone.
    (mpi,) = set(re.findall(r"(/\S*libmpi[^/\s]*\.so\S*)", Path("/proc/self/maps").read_text()))
    ctypes.CDLL(mpi, ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(path)
    comm = MPI.COMM_WORLD.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    true_byte = MPI._handleof(MPI.BYTE)
    journal = ctypes.c_int64(-1)
    ctypes.c_int64.in_dll(library, "avial_comm").value = MPI._handleof(comm)
    ctypes.c_int64.in_dll(library, "avial_byte").value = true_byte if byte == "None" else int(byte)
    ignore = 1 if "MPICH" in MPI.Get_library_version() else 0
    ctypes.c_int64.in_dll(library, "avial_status_ignore").value = ignore
    ctypes.c_void_p.in_dll(library, "avial_journal").value = ctypes.addressof(journal)
    rng = np.random.default_rng(1)
    arrays = {name: rng.integers(-100, 100, 20).astype(np.int32) for name in "abcd"}
    if comm.rank == 2:
        for array in arrays.values():
            array[:] = -1
    descriptors = [
        (ctypes.c_int64 * 5)(array.ctypes.data, array.ctypes.data, 0, array.size, 1)
        for array in arrays.values()
    ]
    entry = library["_mlir_ciface_main"]
    entry.restype = None
    entry(*map(ctypes.byref, descriptors))
    facts = {name: array.tolist() for name, array in arrays.items()}
    facts["rank"] = comm.rank
    facts["journal"] = journal.value
    facts["error"] = ctypes.c_int64.in_dll(library, "avial_error").value
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
