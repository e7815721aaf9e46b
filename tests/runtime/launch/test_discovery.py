"""Ranks that do not answer while messages are measured."""

from __future__ import annotations

import sys

import pytest

from avial_lab.core.errors import AvialError
from avial_lab.core.toolchain import Outcome
from avial_lab.runtime.launch import discovery

FRAME = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 7 RUNNING AT host
=   EXIT CODE: 9
"""


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Outcome(9, FRAME, ""), "one of them ended with code 9"),
        (Outcome(-9, "", "", timed_out=True), "no answer in time"),
        (Outcome(1, "", "ImportError: no mpi4py"), "ImportError: no mpi4py"),
    ],
)
def test_why_there_was_no_answer_is_told(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, told: str
) -> None:
    monkeypatch.setattr(discovery, "run", lambda *_, **__: outcome)
    with pytest.raises(AvialError, match="ranks could not exchange messages") as caught:
        discovery._printed([sys.executable], "ping_pong", 1.0)
    assert told in caught.value.message
