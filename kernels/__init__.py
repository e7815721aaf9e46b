"""Compute kernels: one folder each, with the MLIR a user can load, its truth and its costs.

A name -> its `Kernel`. Nothing here imports avial_lab or MLIR.

    gemm/kernel.mlir    a plain func.func of affine, scf or linalg, as another compiler writes it
    gemm/kernel.py      KERNEL: arguments, data sizes, inputs, truth in NumPy, flops, dependences
    gemm/peer.c         the same in C with OpenMP, to race against (avial_lab/benchmarks)
    gemm/peers.py       … as loops for Numba, and for NumPy and SciPy where that makes sense
    gemm/peer_mpi.c     … in C with MPI, for some; peers_mpi.py: with mpi4py, and who holds what

>>> import numpy as np
>>> gemm = load("gemm")
>>> sizes = gemm.datasets[Dataset.MINI]
>>> arguments = gemm.inputs(sizes, np.float32, np.random.default_rng(0))
>>> {name: value.shape for name, value in arguments.items()}
{'alpha': (), 'beta': (), 'C': (20, 25), 'A': (20, 30), 'B': (30, 25)}
>>> gemm.truth(arguments)["C"].dtype
dtype('float32')
"""

from __future__ import annotations

import importlib.util
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from kernels.kernel import Array, Dataset, Kernel, Role, Scalar, Sizes

__all__ = ["load", "names", "Kernel", "Array", "Scalar", "Role", "Dataset", "Sizes", "KernelError"]

_HERE = Path(__file__).parent


class KernelError(LookupError):
    """There is no kernel of that name."""


def names() -> tuple[str, ...]:
    """Every kernel there is, in alphabetical order; its folder's name."""
    return tuple(sorted(path.parent.name for path in _HERE.glob("*/kernel.mlir")))


@cache
def load(name: str) -> Kernel:
    """The kernel `name`, as its folder's `kernel.py` declares it."""
    known = names()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}"
        raise KernelError(f"unknown kernel '{name}'; {hint}")
    # By path: folders are named as in the suite, and '2mm' and 'jacobi-2d' are no Python names.
    spec = importlib.util.spec_from_file_location(
        f"kernels.{name}.kernel", _HERE / name / "kernel.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel: Kernel = module.KERNEL
    return kernel
