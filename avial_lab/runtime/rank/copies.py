"""How often mpiexec or srun has started this program: once, or as the ranks of a world."""

from __future__ import annotations

import os

_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""In the environment of a process that was started several times at once."""


def copies() -> tuple[int, str]:
    """The number, and the variable that says so; 1 where none does."""
    for variable in _VARIABLES:
        number = os.environ.get(variable, "")
        if number.isdigit() and int(number) > 1:
            return int(number), variable
    return 1, ""
