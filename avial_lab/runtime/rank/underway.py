"""Messages that go on while a rank computes.

Manifest -> whether large messages are under way over a task; then MPI is called now and then.

MPI moves what is under way in its calls alone. MPICH 5.0.2, 4 MB between two ranks of a machine of
which one computes for 100 ms and the other for 130: the first waits for 24 to 40 ms, and for less
than 0.1 ms where both call it every 2 ms. (Its own thread for that, MPICH_ASYNC_PROGRESS, takes a
core.)
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from avial_lab.artifact.manifest import KnownMessages, Manifest
from avial_lab.planning.schedule import StepKind

if TYPE_CHECKING:  # imports mpi4py, which starts MPI
    from mpi4py.MPI import Intracomm

LARGE = 1 << 16
"""Bytes of a message that does not go at once into memory of MPI's own."""

EVERY_S = 0.002
"""Between two calls, of some microseconds each."""

_TAG = 32767
"""Any: what is asked for is not taken."""


def computes_meanwhile(manifest: Manifest, rank: int) -> bool:
    """Whether the rank runs a task between the beginning of a large message and the wait for it.

    Of a program of loops nobody knows before it runs, and False is said.
    """
    if not isinstance(manifest, KnownMessages):
        return False
    begun: set[int] = set()
    for step in manifest.programs[rank]:
        if step.kind in (StepKind.SEND, StepKind.POST):
            if manifest.transfers[step.transfer].nbytes >= LARGE:
                begun.add(step.transfer)
        elif step.kind in (StepKind.WAIT_SENT, StepKind.WAIT_RECEIVED):
            begun.discard(step.transfer)
        elif step.kind is StepKind.RUN and begun:
            return True
    return False


@contextmanager
def going_on(communicator: Intracomm, *, on_a_core: float) -> Iterator[None]:
    """Messages of this process go on while somebody else in it computes, outside of Python.
    on_a_core: how many ranks share one; all of them together call MPI no more often.
    """
    from mpi4py import MPI

    over = threading.Event()

    def call() -> None:
        while not over.wait(EVERY_S * max(1.0, on_a_core)):
            try:
                communicator.Iprobe(MPI.ANY_SOURCE, _TAG)
            except MPI.Exception:  # which the program's own calls meet, too, and tell
                return

    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        yield
        return
    thread = threading.Thread(target=call, name="messages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
