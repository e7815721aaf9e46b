"""PTX of kernels, which programs carry.

Kernels in the gpu dialect -> PTX for each. mlir-opt does it in a process of its own: a kernel that
it cannot compile, or dies of, costs its PTX and nothing else.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from avial_lab.compiler.backends.tools import NO_PACKING
from avial_lab.compiler.catalogue import EXACT_MATH, KERNELS
from avial_lab.core.command_line import NearestWords
from avial_lab.core.toolchain import tool

_NAMES = ("--mlir-use-nameloc-as-prefix", "--mlir-print-debuginfo=false")
"""The user's names for values, where the text's locations carry them."""


def compile_each(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """PTX of the kernels in `text`, each by its name, and why others have none."""
    names = re.findall(r"^ *gpu\.module @(\S+)", text, re.MULTILINE)
    assembled, error = _mlir_opt(to_ptx(), text)
    found = {} if error else _assembly(assembled)
    failures: dict[str, str] = {}
    for name in names if error else ():
        alone, failures[name] = _compile_alone(name, text)
        found |= alone
    return found, {name: why for name, why in failures.items() if name not in found}


def ptx_command() -> str:
    """The line that compiles kernels; the PTX is in what it prints."""
    return f"{_line(to_ptx())} gpu.mlir"


def by_task(kernels: Mapping[str, str], tasks: Sequence[str]) -> dict[str, str]:
    r"""What is known of kernels, together for those of each task; of other kernels by their names.

    >>> by_task({"t_kernel": "a", "t_kernel_0": "b", "S1_kernel": "c"}, ["t"])
    {'t': 'a\nb', 'S1_kernel': 'c'}
    """
    found: dict[str, list[str]] = {}
    for kernel, text in kernels.items():
        owner = next((task for task in tasks if belongs(kernel, task)), kernel)
        found.setdefault(owner, []).append(text)
    return {owner: "\n".join(texts) for owner, texts in found.items()}


def ptx_of(task: str, assembled: str) -> str:
    """The PTX of a task's kernels in a module whose kernels are binaries."""
    kernels = _assembly(assembled)
    return "\n".join(text for kernel, text in kernels.items() if belongs(kernel, task))


def _compile_alone(kernel: str, outlined: str) -> tuple[dict[str, str], str]:
    """PTX of one kernel's module by itself; and why there is none."""
    lines = outlined.splitlines()
    head = re.compile(rf"( *)gpu\.module @{re.escape(kernel)}\b")
    start, match = next((k, m) for k, line in enumerate(lines) if (m := head.match(line)))
    stop = lines.index(match.group(1) + "}", start)
    aliases = [line for line in lines if line.startswith(("#", "!"))]
    opened = "module attributes {gpu.container_module} {"
    text = "\n".join([*aliases, opened, *lines[start : stop + 1], "}"])
    assembled, error = _mlir_opt(to_ptx(), text)
    return ({}, f"no PTX: {error}") if error else (_assembly(assembled), "")


def to_ptx() -> tuple[str, ...]:
    """From kernels to binaries; arrays are pointers in them."""
    return (*EXACT_MATH.passes(), *KERNELS.passes(_POINTERS))


def in_kernels() -> tuple[str, ...]:
    """Of those the ones inside of each kernel's module, one by one."""
    inside = [row for row in (*EXACT_MATH.rows, *KERNELS.rows) if row.on]
    return tuple(f"{row.on}({row.made(_POINTERS.get(row.name, {}))})" for row in inside)


_POINTERS = {"convert-gpu-to-nvvm": {"use-bare-ptr-memref-call-conv": "true"}}


def pipeline_option(passes: Sequence[str]) -> str:
    return f"--pass-pipeline=builtin.module({','.join(passes)})"


def _line(passes: Sequence[str]) -> str:
    return f"mlir-opt {NO_PACKING} {shlex.quote(pipeline_option(passes))}"


def _mlir_opt(passes: Sequence[str], text: str) -> tuple[str, str]:
    """What mlir-opt makes of `text`, and its first complaint where it makes nothing."""
    done = mlir_opt(passes, text, *_NAMES)
    if done.returncode == 0:
        return done.stdout, ""
    said = re.search(r"(?:error: |Assertion )(.*)", done.stderr)
    return "", said.group(1) if said else f"mlir-opt ended with {done.returncode}"


def mlir_opt(passes: Sequence[str], text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """How mlir-opt ends with these passes on `text`."""
    command = [str(tool("mlir-opt")), NO_PACKING, *flags, pipeline_option(passes)]
    return subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", errors="replace", check=False
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
    stem = re.sub(r"\W", "_", task, flags=re.ASCII)
    return kernel == task or re.fullmatch(rf"{stem}_kernel(_\d+)?", kernel) is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the PTX of a task's kernels out of a module whose kernels are compiled."""
    parser = NearestWords(
        prog="python -m avial_lab.compiler.backends.nvptx", description=main.__doc__
    )
    parser.add_argument("task")
    parser.add_argument("file", nargs="?", default="-", help="- (the default) reads standard input")
    parser.add_argument("-o", dest="output", default="-")
    options = parser.parse_args(arguments)
    source = (
        sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    )
    text = ptx_of(options.task, source)
    if not text:
        sys.stderr.write(f"no PTX of '{options.task}' in it\n")
        return 1
    if options.output == "-":
        sys.stdout.write(text)
    else:
        Path(options.output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
