"""PTX of kernels: those of GPU tasks, to read, and those of loops, which programs carry.

Text of the functions -> kernels in the gpu dialect, and PTX for each. mlir-opt does it
in a process of its own: a kernel that it cannot compile, or dies of, costs its PTX and nothing
else.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from avial_lab.compiler.catalogue import EXACT_MATH, KERNELS, OUTLINE
from avial_lab.core.toolchain import tool
from avial_lab.machine.devices.cuda import DEFAULT_CHIP, chip_of

_BEFORE_OUTLINING: tuple[str, ...] = OUTLINE.passes({"nvvm-attach-target": None})


_NO_KERNEL = (
    "no kernel was found: its loops have bounds known only at run time, or carry values from one"
    " iteration to the next; the task runs as loops"
)

_NAMES = ("--mlir-use-nameloc-as-prefix", "--mlir-print-debuginfo=false")
"""The user's names for values, where the text's locations carry them."""


@dataclass(frozen=True)
class Kernels:
    """The GPU's side of a program: `ptx` by task function, `failures` where there is none and
    why.
    """

    outlined: str
    outline_command: str
    ptx: dict[str, str]
    ptx_command: str
    failures: dict[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0


def make_kernels(text: str) -> Kernels:
    """Outline the kernels of the functions in `text`, compile each for its task's architecture."""
    started = time.perf_counter()
    archs = _archs(text)
    outline = _outline(archs)
    outlined, error = _mlir_opt(outline, text)
    if error:
        ptx, failures = {}, dict.fromkeys(archs, f"no kernels: {error}")
        outlined = f"// no kernels: {error}\n"
    else:
        ptx, failures = compile_kernels(outlined, tuple(archs))
    return Kernels(
        outlined=outlined,
        outline_command=f"{_line(outline)} -o gpu.mlir",
        ptx=ptx,
        ptx_command=ptx_command(),
        failures=failures,
        remarks=tuple(
            f"{name}: target '{arch}' names no compute capability; compiled for {DEFAULT_CHIP}"
            for name, arch in archs.items()
            if _chip(arch) != arch
        ),
        seconds=time.perf_counter() - started,
    )


def ptx_command() -> str:
    """The line that compiles outlined kernels; the PTX is in what it prints."""
    return f"{_line(to_ptx(bare=True))} gpu.mlir"


def outline_passes(text: str) -> tuple[str, ...]:
    """What outlines the kernels of the functions in `text`."""
    return _outline(_archs(text))


def _outline(archs: Mapping[str, str]) -> tuple[str, ...]:
    return (*_BEFORE_OUTLINING, *_attach(archs))


def _archs(text: str) -> dict[str, str]:
    """What each task's function is for."""
    function = r'func\.func private @("[^"]*"|[\w$.-]+)\(.*avial\.arch = "([^"]*)"'
    return {name.strip('"'): arch for name, arch in re.findall(function, text)}


def compile_each(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """PTX of the kernels of loops in `text`, each by its name, and why others have none."""
    names = re.findall(r"^ *gpu\.module @(\S+)", text, re.MULTILINE)
    assembled, error = _mlir_opt(exact_to_ptx(), text)
    found = {} if error else _assembly(assembled)
    failures: dict[str, str] = {}
    for name in names if error else ():
        alone, failures[name] = _compile_alone(name, text, exact_to_ptx())
        found |= alone
    return found, {name: why for name, why in failures.items() if name not in found}


def exact_ptx_command() -> str:
    """The line that compiles the kernels of loops; the PTX is in what it prints."""
    return f"{_line(exact_to_ptx())} gpu.mlir"


def exact_to_ptx() -> tuple[str, ...]:
    """From kernels of loops to binaries."""
    return (*EXACT_MATH.passes(), *to_ptx(bare=True))


def compile_kernels(outlined: str, tasks: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """PTX by task from outlined kernels, and for every task without why there is none."""
    whys: dict[str, str] = {}
    assembled, error = _mlir_opt(to_ptx(bare=True), outlined)
    if error:
        # One kernel may be to blame: the others get theirs, one by one.
        kernels = {}
        for name in re.findall(r"^ *gpu\.module @(\S+)", outlined, re.MULTILINE):
            ways = to_ptx(bare=True), to_ptx(bare=False)
            alone, whys[name] = _compile_alone(name, outlined, *ways)
            kernels.update(alone)
    else:
        kernels = _assembly(assembled)
    ptx: dict[str, str] = {}
    failures: dict[str, str] = {}
    for task in tasks:
        mine = [text for kernel, text in kernels.items() if belongs(kernel, task)]
        if mine:
            ptx[task] = "\n".join(mine)
        else:
            blamed = (why for kernel, why in whys.items() if belongs(kernel, task))
            failures[task] = next(blamed, _NO_KERNEL)
    return ptx, failures


def ptx_of(task: str, assembled: str) -> str:
    """The PTX of a task's kernels in a module whose kernels are binaries."""
    kernels = _assembly(assembled)
    return "\n".join(text for kernel, text in kernels.items() if belongs(kernel, task))


def _compile_alone(kernel: str, outlined: str, *ways: Sequence[str]) -> tuple[dict[str, str], str]:
    """PTX of one kernel's module by itself, in the first way that goes; and why there is none."""
    lines = outlined.splitlines()
    head = re.compile(rf"( *)gpu\.module @{re.escape(kernel)}\b")
    start, match = next((k, m) for k, line in enumerate(lines) if (m := head.match(line)))
    stop = lines.index(match.group(1) + "}", start)
    aliases = [line for line in lines if line.startswith(("#", "!"))]
    opened = "module attributes {gpu.container_module} {"
    text = "\n".join([*aliases, opened, *lines[start : stop + 1], "}"])
    whys: list[str] = []
    for passes in ways:
        assembled, error = _mlir_opt(passes, text)
        if not error:
            return _assembly(assembled), ""
        whys.append(error)
    return {}, f"no PTX: {whys[0]}"


def _attach(archs: Mapping[str, str]) -> list[str]:
    chips = {name: _chip(arch) for name, arch in archs.items()}
    if len(set(chips.values())) == 1:
        return [f"nvvm-attach-target{{chip={next(iter(chips.values()))} O=3}}"]
    return [
        f"nvvm-attach-target{{module=^{re.escape(name)}_kernel(_[0-9]+)?$ chip={chip} O=3}}"
        for name, chip in chips.items()
    ]


def _chip(arch: str) -> str:
    return chip_of(arch) or DEFAULT_CHIP


def to_ptx(*, bare: bool) -> tuple[str, ...]:
    """From outlined kernels to binaries; `bare`: arrays come as pointers, not as descriptors."""
    return KERNELS.passes(_arrays(bare=bare))


def in_kernels(*, bare: bool) -> tuple[str, ...]:
    """Of those the ones inside of each kernel's module, one by one."""
    given = _arrays(bare=bare)
    inside = [row for row in KERNELS.rows if row.on]
    return tuple(f"{row.on}({row.made(given.get(row.name, {}))})" for row in inside)


def _arrays(*, bare: bool) -> dict[str, dict[str, str]]:
    return {"convert-gpu-to-nvvm": {"use-bare-ptr-memref-call-conv": str(bare).lower()}}


def pipeline_option(passes: Sequence[str]) -> str:
    return f"--pass-pipeline=builtin.module({','.join(passes)})"


def _line(passes: Sequence[str]) -> str:
    return f"mlir-opt {shlex.quote(pipeline_option(passes))}"


def _mlir_opt(passes: Sequence[str], text: str) -> tuple[str, str]:
    """What mlir-opt makes of `text`, and its first complaint where it makes nothing."""
    done = mlir_opt(passes, text, *_NAMES)
    if done.returncode == 0:
        return done.stdout, ""
    said = re.search(r"(?:error: |Assertion )(.*)", done.stderr)
    return "", said.group(1) if said else f"mlir-opt ended with {done.returncode}"


def mlir_opt(passes: Sequence[str], text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """How mlir-opt ends with these passes on `text`."""
    command = [str(tool("mlir-opt")), *flags, pipeline_option(passes)]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, errors="replace", check=False
    )


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


def belongs(kernel: str, task: str) -> bool:
    """Whether that kernel is the one of that name, or was outlined from that task's function."""
    return kernel == task or re.fullmatch(rf"{re.escape(task)}_kernel(_\d+)?", kernel) is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the PTX of a task's kernels out of a module whose kernels are compiled."""
    parser = argparse.ArgumentParser(
        prog="python -m avial_lab.compiler.backends.nvptx", description=main.__doc__
    )
    parser.add_argument("task")
    parser.add_argument("file", nargs="?", default="-", help="- (the default) reads standard input")
    parser.add_argument("-o", dest="output", default="-")
    options = parser.parse_args(arguments)
    source = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
    text = ptx_of(options.task, source)
    if not text:
        sys.stderr.write(f"no PTX of '{options.task}' in it\n")
        return 1
    if options.output == "-":
        sys.stdout.write(text)
    else:
        Path(options.output).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
