"""NumPy-like arrays that live on the ranks of a cluster, and compute where their data is.

    xp = avial_lab.ptensor.on(cluster)
    u = xp.zeros((4000, 4000));  u[0] = 1.0
    u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    float(u.sum())

Operations are recorded, in `recording`, as a program of the ptensor dialect; it is compiled and run
when a value is asked for. Between runs the arrays stay with the engines (`connection`).

Under `mpiexec -n 3 python script.py` every rank runs the same script, and `on()` are the ranks of
that world: each records the same, and computes its part.

The module itself is a namespace: the world's ranks under mpiexec, else the session's cluster, else
`AVIAL_RANKS` ranks (1: this process), started when first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from avial_lab.ptensor.arrays import Array
from avial_lab.ptensor.connection import default_place
from avial_lab.ptensor.namespace import Namespace

if TYPE_CHECKING:
    from avial_lab.program.reference_run import OneProcess
    from avial_lab.runtime.launch.cluster import Cluster

__all__ = ["Array", "Namespace", "on"]

_PUBLIC = ("__array_namespace_info__", "__array_api_version__")


def on(cluster: Cluster | OneProcess | None = None) -> Namespace:
    """Arrays on the engines of that cluster, all of them; without one on the ranks of this world,
    the session's cluster, or as many ranks as AVIAL_RANKS says.
    """
    return _default() if cluster is None else Namespace(cluster)


_DEFAULTS: list[Namespace] = []
"""The one of the default place, once it is needed."""


def _default() -> Namespace:
    if _DEFAULTS and not _DEFAULTS[0].connection.is_over:
        return _DEFAULTS[0]
    _DEFAULTS[:] = [Namespace(default_place())]
    return _DEFAULTS[0]


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name not in _PUBLIC:
        raise AttributeError(name)
    return getattr(_default(), name)
