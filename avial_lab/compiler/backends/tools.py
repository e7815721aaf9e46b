"""opt, llc and the linker: how they are called."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from avial_lab.compiler.backends.llvm_parts import LlvmPart
from avial_lab.core.cache import Cache
from avial_lab.core.errors import InternalError
from avial_lab.core.files import cache_folder
from avial_lab.core.toolchain import tool
from avial_lab.machine.cpu import NATIVE, has_slow_gathers

EXPORTED = (
    "_mlir_ciface_main",
    "avial_comm",
    "avial_byte",
    "avial_status_ignore",
    "avial_error",
    "avial_outside_words",
    "avial_journal",
    "avial_trace",
    "avial_bounds",
    "avial_threads",
    "avial_worth",
)
"""What an engine looks up in a program's object; the rest is its own business. The ownership
runtime is an object of its own.
"""

OPT = (
    "opt",
    "-passes=internalize,default<O3>",
    "-enable-load-in-loop-pre=false",
    f"-internalize-public-api-list={','.join(EXPORTED)}",
)
"""Loads are not carried over from the iteration before: of `A[j - 1], A[j], A[j + 1]` only one
would remain, and vector code would have to put the others together by shuffles.
"""

LLC = (
    "llc",
    "-O3",
    "-relocation-model=pic",
    "-fp-contract=off",
    "-x86-cmov-converter=false",
)
"""No contraction by LLVM, whose choice depends on the code around: which product and sum are
rounded at once stands in the IR (`compiler/passes/arithmetic/contract_fma.py`), the same for every
rank. And what the text chooses between is no branch, which data of any kind mispredict: tables of
alignments and the like take half as long.
"""

PLAIN_LLC = ("llc", "-O1", "-mcpu=native", "-relocation-model=pic", "-fp-contract=off")
"""For the reference, whose IR opt does not see: an instruction for each operation, values in
registers. (With -O0 they are on the stack, and loops take five to ten times as long.)
"""

NO_PACKING = "-vectorize-slp=false"
"""For what holds `uitofp`: the packing of equal instructions into vectors (SLP) narrows the operand
of one with its sign, and then takes the narrow number for an unsigned one (`upstream.py`).
"""

ASSEMBLE = ("llvm-mc", "-filetype=obj")

LINK = ("cc", "-shared")

NO_GATHERS = "-mattr=+prefer-no-gather"
"""For opt and llc, where elements that lie apart are faster loaded one by one."""


def objects() -> Cache:
    return Cache(cache_folder() / "objects")


def spelled(command: Sequence[str]) -> str:
    """As a shell takes it."""
    return shlex.join([str(tool(command[0])), *command[1:]])


def assembled(assembly: str) -> bytes:
    return piped(ASSEMBLE, assembly.encode())


def run_tool(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        [str(tool(command[0])), *command[1:]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[:2000]
        raise InternalError(f"{command[0]} ended with {done.returncode}: {said}")


def piped(command: Sequence[str], code: bytes) -> bytes:
    done = subprocess.run(
        [str(tool(command[0])), *command[1:], "-", "-o", "-"],
        input=code,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace")[:2000]
        raise InternalError(f"{command[0]} ended with {done.returncode}: {said}")
    return done.stdout


def opt_command(part: LlvmPart, cpu: str = NATIVE) -> tuple[str, ...]:
    """OPT of this part, for this kind of CPU."""
    return opt_with(safeguards(part.llvm_ir), part.shared, cpu)


def opt_with(
    guards: Sequence[str], shared: Sequence[str] = (), cpu: str = NATIVE
) -> tuple[str, ...]:
    """OPT with these safeguards, of a part whose functions `shared` others use. Our modules name no
    triple, and without one opt knows of no vector registers.
    """
    *first, exported = OPT
    exported = ",".join([exported, *shared])
    target = (f"-mcpu={cpu}", exported, f"-mtriple={host_triple()}")
    return (*first, *guards, *target, *_tuning())


def safeguards(llvm_ir: str) -> tuple[str, ...]:
    """Options that keep opt from what it gets wrong in code like this."""
    return (NO_PACKING,) if " uitofp " in llvm_ir else ()


def llc_command(cpu: str = NATIVE) -> tuple[str, ...]:
    return (*LLC, f"-mcpu={cpu}", *_tuning())


def _tuning() -> tuple[str, ...]:
    """What LLVM does not know of this host's CPU."""
    return (NO_GATHERS,) if has_slow_gathers() else ()


def host_triple() -> str:
    """What LLVM calls this kind of machine."""
    return next(
        line.partition(":")[2].strip()
        for line in version_of("llc").splitlines()
        if line.strip().startswith("Default target:")
    )


@cache
def version_of(name: str) -> str:
    """What a tool says of itself."""
    said = subprocess.run(
        [str(tool(name)), "--version"], capture_output=True, encoding="utf-8", check=True
    )
    return said.stdout
