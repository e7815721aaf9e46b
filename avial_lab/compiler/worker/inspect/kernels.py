"""The GPU's stages from within: mlir-opt tells what each pass did, and keeps the places.

Text of the kernels with its locations -> what the stages `gpu` and `ptx:…` are made of.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from avial_lab.artifact.assembled import assemble
from avial_lab.artifact.stages import Lines, PassStep, Stage, StageInside
from avial_lab.compiler.backends.nvptx import (
    belongs,
    in_kernels,
    mlir_opt,
    ptx_of,
    to_ptx,
)
from avial_lab.compiler.worker.inspect.debug_lines import assembly_origins
from avial_lab.compiler.worker.inspect.origins import LocatedText
from avial_lab.compiler.worker.inspect.pass_log import dumped_steps, step_between, with_commands
from avial_lab.compiler.worker.inspect.symbols import counts_of, parts_of, ptx_facts
from avial_lab.core.toolchain import ToolError, find_tool

_NAMES = ("--mlir-use-nameloc-as-prefix",)
_CLEAN = (*_NAMES, "--mlir-print-debuginfo=false")
_TELLING = (
    *_CLEAN,
    "--mlir-print-ir-after-all",
    "--mlir-print-ir-module-scope",
    "--mlir-disable-threading",
    "--mlir-timing",
)
_SCOPE = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"
_DUMP = re.compile(
    r"^// -----// IR Dump After (\S+) \((\S+)\) \('[\w.]+' operation(?:: @(\S+))?\)"
    r" //----- //\n",
    re.MULTILINE,
)
_TIME = re.compile(r"^ +([\d.]+) \( *[\d.]+%\) +(\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class _Dump:
    """The module after one pass, on one operation (a function, a kernel's module) or on all."""

    name: str
    argument: str
    symbol: str
    text: str


def kernels_inside(
    made: PassStep, gpu_text: str, stages: Mapping[str, Stage], cell: str
) -> Iterator[StageInside]:
    """The stages `gpu` and `ptx:…`; `gpu_text` is the first with its locations, and `made` the pass
    that made it.
    """
    located = LocatedText(gpu_text, cell)
    clean = "\n".join(located.lines) + "\n"
    numbered, table = located.numbered()
    *before, last = to_ptx()
    with ThreadPoolExecutor(2) as pool:
        debug = pool.submit(mlir_opt, (*before, _SCOPE, last), numbered)
        compiled = pool.submit(mlir_opt, to_ptx(), clean, *_TELLING)
        yield _gpu(stages["gpu"], located, made)
        for name, stage in stages.items():
            task = name.removeprefix("ptx:")
            if name != "gpu" and stage.language == "ptx":
                origins = assembly_origins(stage.text, ptx_of(task, debug.result().stdout), table)
                yield _ptx(stage, task, origins, compiled.result(), clean)
            elif name != "gpu":
                yield StageInside(name, ((),) * len(stage.text.splitlines()))


def _gpu(stage: Stage, located: LocatedText, made: PassStep) -> StageInside:
    lines = stage.text.splitlines()
    fits = lines == located.lines
    return StageInside(
        stage.name,
        located.origins if fits else ((),) * len(lines),
        (replace(made, text=stage.text),),
        parts_of(stage.text, "mlir"),
        counts_of(stage.text, "mlir"),
        {} if fits else {"lines": "their source line is not known"},
    )


def _ptx(
    stage: Stage,
    task: str,
    origins: tuple[Lines, ...] | None,
    told: subprocess.CompletedProcess[str],
    before: str,
) -> StageInside:
    mine = [d for d in _dumps(told.stderr) if d.symbol and belongs(d.symbol, task)]
    steps = dumped_steps(_timed(mine, told.stderr), before)
    passes = in_kernels()
    if len(steps) == len(passes):
        steps = with_commands(steps, passes, "gpu.mlir", stage.name)
    last = next((text for text in (s.text for s in reversed(steps)) if text is not None), before)
    seconds = {name: float(s) for s, name in _TIME.findall(told.stderr)}
    to_binary = step_between(
        "gpu-module-to-binary{format=isa}", seconds.get("GpuModuleToBinaryPass", 0.0), last,
        stage.text,
    )  # fmt: skip
    facts = dict(ptx_facts(stage.text)) | _assembled(stage.text)
    return StageInside(
        stage.name,
        origins if origins is not None else ((),) * len(stage.text.splitlines()),
        (*steps, replace(to_binary, command=stage.command)),
        parts_of(stage.text, "ptx"),
        counts_of(stage.text, "ptx"),
        facts if origins is not None else facts | {"lines": "their source line is not known"},
    )


def _dumps(told: str) -> Iterator[_Dump]:
    heads = list(_DUMP.finditer(told))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        text = told[head.end() : following.start() if following else None]
        text = text.partition("===---")[0].strip("\n") + "\n"
        yield _Dump(head[1], head[2], (head[3] or "").strip('"'), text)


def _timed(dumps: Sequence[_Dump], told: str) -> Iterator[tuple[str, float, str]]:
    """Each with the seconds that mlir-opt's report has for its pass, in the order of both."""
    times: dict[str, list[float]] = {}
    for seconds, name in _TIME.findall(told):
        times.setdefault(name, []).append(float(seconds))
    for dump in dumps:
        left = times.get(dump.name, [])
        yield dump.argument, left.pop(0) if left else 0.0, dump.text


def _assembled(ptx: str) -> dict[str, str]:
    """What NVIDIA's assembler says of the kernels, where it is installed and takes them."""
    if find_tool("ptxas") is None:
        return {}
    try:
        kernels = assemble({"ptx": ptx})
    except ToolError:
        return {}
    if not kernels:
        return {}
    images = [each.image for each in kernels]
    chip = images[0].chip
    return {
        "registers": f"{max(each.registers for each in images)} a thread (ptxas, {chip})",
        "spilled": f"{max(each.spilled_bytes for each in images)} B",
        "stack frame": f"{max(each.stack_bytes for each in images)} B",
        "occupancy": f"{min(each.occupancy for each in images):.0%} of the warps of {chip}",
    }
