"""An IPython of our own, and a program put together by hand: magics and pictures without a
compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import KnownMessages
from avial_lab.artifact.stages import Stage
from avial_lab.compiler.requests import Build, Built, Source
from avial_lab.program.program import Program
from avial_lab.program.session import use_cluster
from tests.plot import by_hand


def recorded_program(name: str = "deck") -> Program:
    """The deck's program as the compiler would answer; it cannot run."""
    schedule = by_hand.deck_schedule()
    manifest = replace(KnownMessages.of(schedule), inputs=(), results=(), devices={})
    stages = (
        Stage("avial", "the program", "mlir", "avial.schedule %a {}", seconds=0.001),
        Stage("ptx", "for the GPU", "ptx", ".target sm_90\n" * 500, command="llc -march=nvptx64"),
    )
    built = Built(schedule, stages, Binary("0", b"", {}, manifest), {"parse": 0.001})
    arrays = {name: np.zeros(20, np.int32) for name in "abcd"}
    return Program(name, arrays, Build(Source("\navial.schedule %a {}", "In [1]")), built)


def recorded_loops() -> Program:
    """A program of loops, as the compiler would answer."""
    program = recorded_program("heat")
    reports = by_hand.heat_explanation().reports
    program.built = replace(program.built, plan=by_hand.neighbours(3), reports=reports)
    program.__dict__["_nests"] = (by_hand.heat_nest(),)  # what the compiler would be asked for
    return program


class Page:
    """A shell, and what its last cell showed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.bundles: list[dict[str, Any]] = []
        self.stdout = ""

    def run(self, cell: str) -> BaseException | None:
        """Run a cell; its outputs are in `bundles`, and its error, where there is one, is
        returned.
        """
        with capture_output() as captured:
            result = self.shell.run_cell(cell)
        self.bundles = [output.data for output in captured.outputs]
        self.stdout = captured.stdout
        return result.error_before_exec or result.error_in_exec

    @property
    def html(self) -> str:
        return "".join(bundle.get("text/html", "") for bundle in self.bundles)

    @property
    def text(self) -> str:
        return "\n".join(bundle["text/plain"] for bundle in self.bundles)

    @property
    def names(self) -> dict[str, object]:
        return self.shell.user_ns


@pytest.fixture
def page() -> Iterator[Page]:
    """A fresh shell with the extension loaded; no history file, no user's configuration."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    InteractiveShell._instance = shell  # `display` asks for the instance
    page = Page(shell)
    assert page.run("%load_ext avial_lab") is None
    yield page
    use_cluster(None)
    InteractiveShell._instance = None


@pytest.fixture
def program() -> Program:
    return recorded_program()
