"""Runs in this process, for arrays on GPUs that are used where they lie: their addresses, and the
driver's context that they belong to, are this process's own.

Binary, arrays of the host and the GPU -> Trace, all of them written in place.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.device_arrays import OnDevice
from avial_lab.core.errors import BindError
from avial_lab.core.words import listed
from avial_lab.runtime.native.loader import digest
from avial_lab.runtime.native.places import settle
from avial_lab.runtime.rank import engine
from avial_lab.runtime.rank.exchange import caller_arrays
from avial_lab.runtime.rank.job import Options
from avial_lab.runtime.rank.journal import Journal
from avial_lab.runtime.rank.outcome import Failure, Spans, ranks_failed, results_of
from avial_lab.runtime.rank.threads import cores
from avial_lab.runtime.rank.traces import trace_of
from avial_lab.trace import Trace


def run(
    binary: Binary,
    arrays: Mapping[str, np.ndarray],
    *,
    spans: Spans | None = None,
    options: Options | None = None,
) -> Trace:
    """Run it on one rank, this process. Where it fails, all arrays are as they were: what the
    program writes on a GPU is saved there before, unless all that it does is one launch (a copy
    within the GPU's memory; `plan.taken_bytes` has it). A GPU that has given up its context has
    lost what it had, which is told.
    """
    manifest = binary.manifest
    caller = caller_arrays(manifest, arrays)
    options = options or Options()
    options.threads.on([cores()], 0)
    given = {
        storage: (array.given, place)
        for storage, place in manifest.homes
        if isinstance(array := arrays[storage], OnDevice)
    }
    missing = [storage for storage, _ in manifest.homes if storage not in given]
    if missing:
        raise BindError(
            f"the program was compiled for an array '{missing[0]}' on a GPU",
            hint="compile again with this one",
        )
    program = engine.load(binary.shared_object, digest(binary.shared_object), manifest)
    inputs = caller.inputs_of(0)
    whole = untouched = False
    with _ONE_AT_A_TIME:
        try:
            outcome = engine.run(
                program, manifest, 0, inputs, journal=_journal(), options=options, given=given
            )
            if outcome.failure is None:
                whole = True  # whoever interrupts what follows does so when it is done
                caller.write_results(results_of([outcome]))
        finally:
            untouched = settle(program, whole=whole)
            program.drop_memory()
    if outcome.failure is not None:
        failure = _with_state(outcome.failure, list(given), untouched=untouched)
        raise ranks_failed(manifest, {0: failure}, spans or {})
    return trace_of(manifest, [outcome])


def _with_state(failure: Failure, arrays: Sequence[str], *, untouched: bool) -> Failure:
    """`failure` with what became of the arrays on the GPU."""
    words = f"{listed([repr(name) for name in arrays])} on the GPU"
    told = f"{words}: as before the run" if untouched else f"the values of {words} are lost"
    return replace(failure, message=f"{failure.message}; {told}")


_ONE_AT_A_TIME = threading.Lock()


@cache
def _journal() -> Journal:
    """Nobody reads it: who could is this process."""
    with tempfile.TemporaryDirectory(prefix="avial-here-") as folder:
        return Journal(Path(folder), 0, pid=os.getpid(), faults=False)
