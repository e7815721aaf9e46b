"""A program on one rank and on several, against values computed in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import avial_lab
from avial_lab.runtime.launch.cluster import Cluster

Arrays = Mapping[str, np.ndarray]


def assert_values(
    text: str,
    arrays: Arrays,
    want: Arrays,
    cluster: Cluster,
    *,
    ranks: Sequence[int] = (1, 3),
    rtol: float = 0,
) -> None:
    """Integers and `rtol` 0: the same bits. The arrays that are given stay as they are here."""
    for count in ranks:
        given = {name: np.array(value) for name, value in arrays.items()}
        program = avial_lab.compile(text, arrays=given, ranks=count)
        program.run(cluster, check=True)
        for name, values in want.items():
            got = np.asarray(program.arrays[name])
            assert got.dtype == values.dtype
            np.testing.assert_allclose(
                got, values, rtol=rtol, atol=rtol, err_msg=f"{name} on {count}"
            )
