"""Tables of a program whose kernels use them: values as before, in every run."""

from __future__ import annotations

import numpy as np

import avial_lab
from tests.compiler.passes.golden import cases_of


def test_every_run_begins_with_the_first_values() -> None:
    """The golden case as a program, on a GPU: what was written is gone in the next run."""
    (text,) = cases_of("globals_to_memory").values()
    program = avial_lab.compile(text, arrays={"A": np.zeros(4)}, ranks=1, gpus=1, on="gpu")
    for _ in range(2):
        program.run(check=True)
        assert program.arrays["A"].tolist() == [2.5, 5.5, 8.5, 11.5]
    assert len(program.binary.manifest.kernels) == 1
