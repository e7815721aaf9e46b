"""PTX of the GPU tasks, for reading now and for running on hardware later.

Text of the GPU tasks' functions -> kernels in the gpu dialect, and PTX for each. mlir-opt does it in a process of its
own: a kernel that it cannot compile, or dies of, costs its PTX and nothing else.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from avial_lab.toolchain import tool

DEFAULT_CHIP = "sm_80"
"""What a target that names no compute capability (`gpu`, `cuda`) gets PTX for."""

_BEFORE_OUTLINING = (
    "convert-linalg-to-parallel-loops",
    "lower-affine",
    "func.func(gpu-map-parallel-loops)",
    "convert-parallel-loops-to-gpu",
    "gpu-launch-sink-index-computations",
    "gpu-kernel-outlining",
)
_IN_KERNELS = (
    "convert-vector-to-scf",
    "lower-affine",
    "convert-scf-to-cf",
    "convert-complex-to-standard",
    "expand-strided-metadata",
    "lower-affine",
    "convert-gpu-to-nvvm{use-bare-ptr-memref-call-conv=%s}",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
)


_NAMES = ("--mlir-use-nameloc-as-prefix", "--mlir-print-debuginfo=false")
"""The user's names for values, where the text's locations carry them."""


@dataclass(frozen=True)
class Kernels:
    """The GPU's side of a program: `ptx` by task function, `failures` where there is none and why."""

    outlined: str
    outline_command: str
    ptx: dict[str, str]
    ptx_command: str
    failures: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0


def make_kernels(text: str) -> Kernels:
    """Outline the kernels of the functions in `text` and compile each for its task's architecture."""
    started = time.perf_counter()
    archs = dict(re.findall(r'func\.func private @("[^"]*"|[\w$.-]+)\(.*avial\.arch = "([^"]*)"', text))
    archs = {name.strip('"'): arch for name, arch in archs.items()}
    outline = (*_BEFORE_OUTLINING, *_attach(archs))
    outline_command = f"mlir-opt {shlex.quote(_pipeline(outline))} -o gpu.mlir"
    outlined, error = _mlir_opt(outline, text)
    remarks = tuple(
        f"{name}: target '{arch}' names no compute capability; compiled for {DEFAULT_CHIP}"
        for name, arch in archs.items()
        if _chip(arch) != arch
    )
    lowering = _to_ptx(bare=True)
    ptx_command = f"mlir-opt {shlex.quote(_pipeline(lowering))} gpu.mlir"
    if error:
        why = f"// no kernels: {error}"
        failures = {name: why for name in archs}
        return Kernels(why, outline_command, {}, ptx_command, failures, remarks, _since(started))
    assembled, error = _mlir_opt(lowering, outlined)
    failures: dict[str, str] = {}
    if error:
        # One kernel may be to blame: the others get theirs, one by one.
        found: dict[str, str] = {}
        for name in re.findall(r"^ *gpu\.module @(\S+)", outlined, re.MULTILINE):
            found.update(_alone(name, outlined, failures))
    else:
        found = _assembly(assembled)
    ptx: dict[str, str] = {}
    for name in archs:
        mine = [text for kernel, text in found.items() if _belongs(kernel, name)]
        if mine:
            ptx[name] = "\n".join(mine)
            failures.pop(name, None)
            continue
        blamed = next((why for kernel, why in failures.items() if _belongs(kernel, name)), None)
        failures[name] = blamed or (
            "no kernel was found: its loops have bounds known only at run time, or carry values from one iteration"
            " to the next; the task runs as loops"
        )
    failures = {name: why for name, why in failures.items() if name in archs}
    return Kernels(outlined, outline_command, ptx, ptx_command, failures, remarks, _since(started))


def _alone(kernel: str, outlined: str, failures: dict[str, str]) -> dict[str, str]:
    """PTX of one kernel's module by itself; why there is none goes to `failures`."""
    lines = outlined.splitlines()
    start = next(k for k, line in enumerate(lines) if re.match(rf" *gpu\.module @{re.escape(kernel)}\b", line))
    indent = re.match(" *", lines[start]).group()
    stop = next(k for k in range(start, len(lines)) if lines[k] == f"{indent}}}")
    aliases = [line for line in lines if line.startswith(("#", "!"))]
    text = "\n".join([*aliases, "module attributes {gpu.container_module} {", *lines[start : stop + 1], "}"])
    why = ""
    for bare in (True, False):
        assembled, error = _mlir_opt(_to_ptx(bare=bare), text)
        if not error:
            return _assembly(assembled)
        why = why or error
    failures[kernel] = f"no PTX: {why}"
    return {}


def _attach(archs: dict[str, str]) -> list[str]:
    chips = {name: _chip(arch) for name, arch in archs.items()}
    if len(set(chips.values())) == 1:
        return [f"nvvm-attach-target{{chip={next(iter(chips.values()))} O=3}}"]
    return [
        f"nvvm-attach-target{{module={re.escape(name)}_kernel.* chip={chip} O=3}}"
        for name, chip in chips.items()
    ]


def _chip(arch: str) -> str:
    return arch if arch.startswith("sm_") else DEFAULT_CHIP


def _to_ptx(*, bare: bool) -> tuple[str, ...]:
    inside = ",".join(_IN_KERNELS) % str(bare).lower()
    return (f"gpu.module({inside})", "gpu-module-to-binary{format=isa}")


def _pipeline(passes: Sequence[str]) -> str:
    return f"--pass-pipeline=builtin.module({','.join(passes)})"


def _mlir_opt(passes: Sequence[str], text: str) -> tuple[str, str]:
    """What mlir-opt makes of `text`, and its first complaint where it makes nothing."""
    command = [str(tool("mlir-opt")), *_NAMES, _pipeline(passes)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return done.stdout, ""
    said = re.search(r"(?:error: |Assertion )(.*)", done.stderr)
    return "", said.group(1) if said else f"mlir-opt ended with {done.returncode}"


def _assembly(text: str) -> dict[str, str]:
    """PTX by the name of its kernel's module, from the `gpu.binary` operations in `text`."""
    found = re.findall(r'gpu\.binary @(\S+) .*?assembly = "((?:[^"\\]|\\.)*)"', text)
    return {name.strip('"'): _unescape(body) for name, body in found}


def _unescape(text: str) -> str:
    """MLIR writes a special character as a backslash and two hexadecimal digits."""
    plain = re.sub(
        r'\\([0-9A-Fa-f]{2}|["\\])',
        lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else m[1],
        text,
    )
    return plain.rstrip("\0")


def _belongs(kernel: str, task: str) -> bool:
    return re.fullmatch(rf"{re.escape(task)}_kernel(_\d+)?", kernel) is not None


def _since(started: float) -> float:
    return time.perf_counter() - started
