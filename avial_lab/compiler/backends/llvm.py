"""The artifact: a shared object, its PTX and a manifest (`manifest.py`) that says how to run it.

LLVM IR -> Binary, content-addressed. Needs no MLIR: engines import the types from here.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from avial_lab.artifact.binary import Binary, MachineCode
from avial_lab.artifact.manifest import Manifest
from avial_lab.compiler.backends.c_runtime import runtime_object, runtime_parts
from avial_lab.compiler.backends.host_target import tool_versions
from avial_lab.compiler.backends.llvm_parts import LlvmPart, joined, parts_of
from avial_lab.compiler.backends.tools import (
    ASSEMBLE,
    EXPORTED,
    LINK,
    PLAIN_LLC,
    llc_command,
    opt_command,
    opt_with,
    piped,
    run_tool,
    safeguards,
)
from avial_lab.compiler.backends.tools import assembled as _assembled
from avial_lab.compiler.backends.tools import objects as _objects
from avial_lab.compiler.backends.tools import spelled as _spelled
from avial_lab.core.cache import Cache, digest, spelled
from avial_lab.core.command_line import NearestWords
from avial_lab.core.errors import InternalError
from avial_lab.machine.cpu import NATIVE, instruction_sets_of

T = TypeVar("T")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Underway:
    """opt, llc and llvm-mc at work on a part, one after the other, in a folder of their own."""

    process: subprocess.Popen[bytes]
    folder: Path

    def result(self) -> tuple[str, bytes]:
        """Its assembly, and what that is assembled to, once they are through."""
        code = self.process.wait()
        if code != 0:
            name = (self.folder / "tool").read_text(encoding="utf-8").strip()
            said = (self.folder / "said").read_text(errors="replace", encoding="utf-8")[:2000]
            raise InternalError(f"{name} ended with {code}: {said}")
        return (self.folder / "part.s").read_text(encoding="utf-8"), (
            self.folder / "part.o"
        ).read_bytes()


def binary_of(code: MachineCode, manifest: Manifest, *, ptx: Mapping[str, str]) -> Binary:
    """What engines run: machine code, PTX and what has to be known of them."""
    sets = tuple(sorted(instruction_sets_of(code.cpu)))
    manifest = replace(manifest, instruction_sets=sets)
    parts = [item for pair in sorted(ptx.items()) for item in pair]
    key = digest(code.shared_object, spelled(manifest), *parts)
    return Binary(key, code.shared_object, dict(ptx), manifest)


def compile_llvm_ir(
    llvm_ir: str,
    *,
    store: Cache | None = None,
    underway: Sequence[Underway] = (),
    cpu: str = NATIVE,
) -> MachineCode:
    """Optimised machine code for CPUs of that kind; what the cache holds is verified before it is
    used. Where its parts are `underway` they are waited for.
    """
    started = time.perf_counter()
    store = store if store is not None else _objects()
    key = _key_of(llvm_ir, cpu)
    found = store.get(key)
    if found is None:
        code = _compile(llvm_ir, store, underway, cpu)
        head = f"{len(code.shared_object)} {code.parts}\n".encode()
        store.put(key, head + code.shared_object + code.assembly.encode())
    else:
        head, _, rest = found.partition(b"\n")
        size, parts = map(int, head.split())
        code = MachineCode(rest[:size], rest[size:].decode(), parts, cpu)
    seconds = time.perf_counter() - started
    return replace(code, guards=safeguards(llvm_ir), seconds=seconds)


def unoptimised(llvm_ir: str) -> bytes:
    """A shared object of the code as it stands: no pass of LLVM's looks at it."""
    store = _objects()
    tools = (*PLAIN_LLC, *LINK, *runtime_parts(llvm_ir), tool_versions())
    key = digest("as it stands", llvm_ir, *tools)
    found = store.get(key)
    if found is None:
        assembly = piped(PLAIN_LLC, llvm_ir.encode()).decode()
        found = assembled(assembly, llvm_ir).shared_object
        store.put(key, found)
    return found


@contextmanager
def begun(llvm_ir: str, cpu: str = NATIVE) -> Generator[Sequence[Underway]]:
    """The tools at the parts of this module, if the cache does not hold it; they are through when
    this context ends.
    """
    known = _objects().get(_key_of(llvm_ir, cpu)) is not None
    with ExitStack() as stack:
        yield () if known else _begin(llvm_ir, stack, cpu)


def _key_of(llvm_ir: str, cpu: str) -> str:
    commands = (*opt_command(LlvmPart(llvm_ir), cpu), *llc_command(cpu), *LINK)
    tools = (*commands, *runtime_parts(llvm_ir), tool_versions())
    return digest("machine code and parts", llvm_ir, *tools)


def assembly_command(
    source: str, result: str, *, parts: int, guards: Sequence[str], cpu: str = NATIVE
) -> str:
    """The line that makes the assembly `result` from the LLVM IR in `source`."""
    if parts > 1:
        return f"python -m avial_lab.compiler.backends.llvm{_for(cpu)} {source} -o {result}"
    opt, llc = opt_with(guards, cpu=cpu), llc_command(cpu)
    return f"{shlex.join(opt)} {source} | {shlex.join(llc)} -o {result}"


def optimised_command(
    source: str, result: str, *, parts: int, guards: Sequence[str], cpu: str = NATIVE
) -> str:
    """The line that makes the text of what llc gets."""
    if parts > 1:
        return f"python -m avial_lab.compiler.backends.llvm -S{_for(cpu)} {source} -o {result}"
    return f"{shlex.join(opt_with(guards, cpu=cpu))} {source} -S -o {result}"


def _for(cpu: str) -> str:
    return "" if cpu == NATIVE else f" --cpu-target {shlex.quote(cpu)}"


def optimised(llvm_ir: str, cpu: str = NATIVE) -> str:
    """The LLVM IR that opt makes of `llvm_ir` for such a CPU, as text to read; one part after the
    other.
    """
    made = _beside(
        lambda part: piped([*opt_command(part, cpu), "-S"], part.llvm_ir.encode()),
        _divided(llvm_ir),
    )
    return b"\n".join(made).decode()


def bitcode(llvm_ir: str, cpu: str = NATIVE) -> list[bytes]:
    """The same as llc gets it. (Text forgets the order of uses, and llc's choices with it.)"""
    return _beside(lambda part: _bitcode_of(part, cpu), _divided(llvm_ir))


def assembly_of(code: Sequence[bytes], *more: str, cpu: str = NATIVE) -> str:
    """What llc makes of bitcode; `more` are options that change no instruction."""
    return joined(_beside(lambda part: piped((*llc_command(cpu), *more), part).decode(), code))


def _divided(llvm_ir: str) -> tuple[LlvmPart, ...]:
    return parts_of(llvm_ir, EXPORTED)


def _bitcode_of(part: LlvmPart, cpu: str) -> bytes:
    return piped(opt_command(part, cpu), part.llvm_ir.encode())


def _beside(make: Callable[[T], Made], parts: Sequence[T]) -> list[Made]:
    """What is made of each, at the same time: the work is that of other processes."""
    if len(parts) == 1:
        return [make(parts[0])]
    with ThreadPoolExecutor(len(parts), thread_name_prefix="tools") as pool:
        return list(pool.map(make, parts))


def verify_command() -> tuple[str, ...]:
    """What tells whether LLVM IR is valid."""
    return ("opt", "-passes=verify", "-disable-output")


def assemble_command() -> tuple[str, ...]:
    """What tells whether assembly is valid."""
    return ("llvm-mc", "-filetype=null")


def assembled(assembly: str, llvm_ir: str) -> MachineCode:
    """Machine code of assembly written by hand; `llvm_ir` tells what is linked to it."""
    store = _objects()
    objects = {"program": _assembled(assembly), **runtime_object(llvm_ir, store)}
    return MachineCode(_linked(objects), assembly)


def _compile(llvm_ir: str, store: Cache, underway: Sequence[Underway], cpu: str) -> MachineCode:
    """The shared object and the assembly it is assembled from, each part by itself."""
    with ExitStack() as stack:
        parts = underway or _begin(llvm_ir, stack, cpu)
        runtime = runtime_object(llvm_ir, store, cpu)
        assemblies, objects = zip(*(part.result() for part in parts), strict=True)
    named = {f"program{k}": code for k, code in enumerate(objects)}
    return MachineCode(_linked({**named, **runtime}), joined(assemblies), len(parts), cpu)


def _begin(llvm_ir: str, stack: ExitStack, cpu: str) -> Sequence[Underway]:
    return [stack.enter_context(_begun(part, cpu)) for part in _divided(llvm_ir)]


@contextmanager
def _begun(part: LlvmPart, cpu: str) -> Generator[Underway]:
    """The tools at this part. They hand it on by themselves: this process, which has other things
    to do, would let them wait.
    """
    # As where they are piped: from their standard input, whose name stands in what they make.
    compiled = (opt_command(part, cpu), "ll", "bc"), (llc_command(cpu), "bc", "s")
    steps = (*compiled, (ASSEMBLE, "s", "o"))
    line = " && ".join(
        f"echo {command[0]} >tool && {_spelled(command)} <part.{given} -o part.{made}"
        for command, given, made in steps
    )
    with tempfile.TemporaryDirectory(prefix="avial-build-") as directory:
        folder = Path(directory)
        (folder / "part.ll").write_text(part.llvm_ir, encoding="utf-8")
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen(
                ["sh", "-c", line],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        try:
            yield Underway(process, folder)
        finally:
            process.wait()


def _linked(objects: Mapping[str, bytes]) -> bytes:
    """The shared object of a program and what it needs besides, by the names of their files."""
    with tempfile.TemporaryDirectory(prefix="avial-build-") as directory:
        folder = Path(directory)
        for name, code in objects.items():
            (folder / f"{name}.o").write_bytes(code)
        run_tool([*LINK, "-o", "program.so", *(f"{name}.o" for name in objects), "-lm"], folder)
        return (folder / "program.so").read_bytes()


def _assembly_for(llvm_ir: str, cpu: str) -> str:
    return assembly_of(bitcode(llvm_ir, cpu), cpu=cpu)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make assembly of LLVM IR, as programs are compiled."""
    parser = NearestWords(
        prog="python -m avial_lab.compiler.backends.llvm", description=main.__doc__
    )
    parser.add_argument("file")
    parser.add_argument("-S", dest="halfway", action="store_true", help="what opt makes, as text")
    parser.add_argument("--cpu-target", default=NATIVE, help="as opt and llc name it")
    parser.add_argument("-o", dest="output", required=True)
    options = parser.parse_args(arguments)
    cpu = options.cpu_target
    llvm_ir = Path(options.file).read_text(encoding="utf-8")
    made = optimised if options.halfway else _assembly_for
    Path(options.output).write_text(made(llvm_ir, cpu), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
