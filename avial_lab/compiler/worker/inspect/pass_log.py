"""What each pass of a stage did: its seconds, the lines it changed, the text after it.

Passes as they run -> PassSteps, stage by stage.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mlir import ir

from avial_lab.artifact.stages import PassStep
from avial_lab.compiler.lowering.pipelines import OURS
from avial_lab.compiler.lowering.run import Pass
from avial_lab.compiler.lowering.stages import mlir_opt_line, our_line, text_of
from avial_lab.compiler.worker.inspect.diff_counts import changed_lines


@dataclass
class PassLog:
    """Is told of every pass (`watch`) and hands out those of a stage when that is done (`take`);
    `text` is the module's before the next pass, `file` where that would stand. Of a stage that is
    handed out only after passes of the next have run, it is told when it is made (`made`).
    """

    text: str
    file: str
    _waiting: list[tuple[Pass | str, float, str]] = field(default_factory=list)
    _made: dict[str, tuple[PassStep, ...]] = field(default_factory=dict)

    def watch(self, item: Pass | str, module: ir.Operation, seconds: float) -> None:
        self._waiting.append((item, seconds, text_of(module)))

    def made(self, stage: str) -> None:
        self._made[stage] = self._steps(stage)

    def take(self, stage: str) -> tuple[PassStep, ...]:
        """The steps since the last stage, with the commands from its file to this one's."""
        return self._made.pop(stage) if stage in self._made else self._steps(stage)

    def _steps(self, stage: str) -> tuple[PassStep, ...]:
        steps: list[PassStep] = []
        for k, (item, seconds, text) in enumerate(self._waiting, 1):
            last = k == len(self._waiting)
            file = f"{stage}.mlir" if last else f"{stage}.{k}.mlir"
            step = step_between(str(item), seconds, self.text, text)
            steps.append(replace(step, command=_command(item, self.file, file)))
            self.text, self.file = text, file
        self._waiting.clear()
        return tuple(steps)


def step_between(name: str, seconds: float, before: str, after: str) -> PassStep:
    """The step that makes `after` of `before`."""
    added, removed = changed_lines(before, after)
    return PassStep(name, "", seconds, added, removed, None if after == before else after)


def _command(item: Pass | str, source: str, result: str) -> str:
    """The line that runs this pass alone; none where it needs what stands in no file."""
    if isinstance(item, str):
        return mlir_opt_line((item,), source, result)
    told = str(item).partition("{")[0] in OURS and getattr(item, "has_command_line", True)
    return our_line((item,), source, result) if told else ""


def dumped_steps(dumps: Iterable[tuple[str, float, str]], before: str) -> tuple[PassStep, ...]:
    """Steps of passes that another process ran: name, seconds, text after each."""
    steps: list[PassStep] = []
    for name, seconds, text in dumps:
        steps.append(step_between(name, seconds, before, text))
        before = text
    return tuple(steps)


def with_commands(
    steps: tuple[PassStep, ...], pipelines: Iterable[str], source: str, stage: str
) -> tuple[PassStep, ...]:
    """`steps` with the mlir-opt line of each pipeline in turn."""
    result: list[PassStep] = []
    for k, (step, pipeline) in enumerate(zip(steps, pipelines, strict=True), 1):
        file = f"{stage}.mlir" if k == len(steps) else f"{stage}.{k}.mlir"
        option = shlex.quote(f"--pass-pipeline=builtin.module({pipeline})")
        result.append(replace(step, command=f"mlir-opt {option} {source} -o {file}"))
        source = file
    return tuple(result)
