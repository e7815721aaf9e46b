"""MPI is called while a rank computes, where a large message is under way then."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from avial_lab.artifact.manifest import KnownMessages
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Step, StepKind, Transfer
from avial_lab.runtime.rank.underway import LARGE, computes_meanwhile, going_on

MPI = pytest.importorskip("mpi4py.MPI", reason="no mpi4py: there are no ranks to run on")


def steps(text: str) -> tuple[Step, ...]:
    """`send 0; run x; sent 0`."""
    kinds = {kind.value: kind for kind in StepKind}
    found: list[Step] = []
    for each in text.split("; "):
        word, _, what = each.partition(" ")
        kind = kinds[word]
        found.append(
            Step(kind, what) if kind is StepKind.RUN else Step(kind, transfer=int(what))
        )  # fmt: skip
    return tuple(found)


@pytest.mark.parametrize(
    ("program", "nbytes", "meanwhile"),
    [
        ("run x; send 0; run y; sent 0", LARGE, True),
        ("run x; post 0; run y; received 0; run z", LARGE, True),
        ("run x; send 0; run y; sent 0", LARGE - 1, False),
        ("run x; send 0; sent 0; run y", LARGE, False),
        ("post 0; received 0; run y", LARGE, False),
        ("run x; send 0", LARGE, False),
    ],
)
def test_which_ranks_compute_meanwhile(program: str, nbytes: int, meanwhile: bool) -> None:
    manifest = KnownMessages(
        entry="main", ranks=2, buffers=(), storages=(), inputs=(), results=(),
        programs=((), steps(program)),
        transfers=(Transfer(0, "a", Box((0,), (nbytes,)), 0, 1, "x", "y", nbytes),),
    )  # fmt: skip
    assert computes_meanwhile(manifest, 1) is meanwhile
    assert not computes_meanwhile(manifest, 0)


@pytest.mark.parametrize("fails", [False, True])
def test_it_is_called_again_and_again_until_the_end(fails: bool) -> None:
    """A call that fails is the last one."""
    called = threading.Semaphore(0)

    def probe(*_: Any) -> None:
        called.release()
        if fails:
            raise MPI.Exception

    before = threading.enumerate()
    with going_on(SimpleNamespace(Iprobe=probe), on_a_core=1):  # pyright: ignore[reportArgumentType]
        for _ in range(1 if fails else 3):
            called.acquire()
    assert threading.enumerate() == before
