"""Golden IR: each `.mlir` file beside this one is a test, run in process.

The first line says which passes: `// RUN: -p tasks-to-mpi`. Cases are parted by `// -----`, each is
run and checked by FileCheck on its own. A case with a line `// REFUSED: part of the message` has to
end in an error at the line below it. A second line `// ON: x86_64 avx fma` says for which machine:
its architecture and instruction sets. In a case with a line `// PLACES` each operation is printed
with its place.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from mlir import ir

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.lowering.stages import text_of
from avial_lab.core.errors import AvialError
from avial_lab.machine import cpu


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".mlir":
        return None
    return GoldenFile.from_parent(parent, path=file_path)


class GoldenFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text()
        run = re.match(r"// RUN: -p (.+)", text)
        assert run is not None, f"{self.path.name} does not begin with // RUN: -p PASSES"
        machine = re.search(r"\A.*\n// ON: (.*)", text)
        words = machine.group(1).split() if machine is not None else ()
        for number, case in enumerate(text.split("// -----\n")):
            label = re.search(r"^(?:func|gpu)\.\w+ (?:private )?@(\w+)", case, re.MULTILINE)
            name = label.group(1) if label else str(number)
            yield GoldenCase.from_parent(
                self, name=name, passes=run.group(1), case=case, machine=words
            )


class GoldenCase(pytest.Item):
    def __init__(self, *, passes: str, case: str, machine: Sequence[str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.passes, self.case, self.machine = passes, case, machine

    def runtest(self) -> None:
        with _on(*self.machine) if self.machine else nullcontext():
            self.check()

    def check(self) -> None:
        refused = re.search(r"// REFUSED: (.*)", self.case)
        context = ir.Context()
        register(context)
        module = ir.Module.parse(self.case, context).operation
        if refused is None:
            run_passes(module, parse_passes(self.passes))
            module.verify()
            placed = "// PLACES\n" in self.case
            _filecheck(self.case, _with_places(module) if placed else text_of(module))
            return
        with pytest.raises(AvialError) as caught:
            run_passes(module, parse_passes(self.passes))
        assert refused.group(1) in caught.value.message
        assert caught.value.span is not None
        assert caught.value.span.line == self.case[: refused.end()].count("\n") + 2

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        if isinstance(excinfo.value, Mismatch):
            return str(excinfo.value)
        return str(excinfo.getrepr(style="short"))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}::{self.name}"


@contextmanager
def _on(architecture: str, *instruction_sets: str) -> Iterator[None]:
    """As if this were such a machine, with two cores and these caches."""
    caches = {1: (32 * cpu.KIB, 1), 2: (cpu.KIB**2, 1), 3: (32 * cpu.KIB**2, 2)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu.platform, "machine", lambda: architecture)
        patch.setattr(cpu, "_flags", lambda: frozenset(instruction_sets))
        patch.setattr(cpu, "data_caches", lambda _: caches)
        patch.setattr(cpu, "cores_of", lambda _: ((0,), (1,)))
        patch.setattr(cpu, "_cpuinfo", lambda: "")
        cpu.this_cpu.cache_clear()
        yield
    cpu.this_cpu.cache_clear()


def _with_places(module: ir.Operation) -> str:
    return str(module.get_asm(enable_debug_info=True, pretty_debug_info=True))


class Mismatch(AssertionError):
    """What FileCheck says, and the whole output below it."""


def _filecheck(pattern: str, output: str) -> None:
    options = Options(match_filename="case", enable_var_scope=True)
    parser = Parser(options, io.StringIO(pattern), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("output", output), parser)
    matcher.stderr = io.StringIO()
    if matcher.run() != 0:
        raise Mismatch(f"{matcher.stderr.getvalue()}\n--- the whole output:\n{output}")
