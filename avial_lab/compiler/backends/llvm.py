"""The artifact: a shared object, its PTX and a manifest (`manifest.py`) that says how to run it.

LLVM IR -> Binary, content-addressed. Needs no MLIR: engines import the types from here.
"""

from __future__ import annotations

import argparse
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import TypeVar

from avial_lab.artifact.manifest import Manifest
from avial_lab.compiler.backends.llvm_parts import LlvmPart, joined, parts_of
from avial_lab.core.cache import Cache, digest, spelled
from avial_lab.core.errors import InternalError
from avial_lab.core.files import cache_folder
from avial_lab.core.toolchain import tool
from avial_lab.core.words import brief, count, format_bytes, listed
from avial_lab.machine.cpu import has_slow_gathers, instruction_sets
from avial_lab.runtime.native import ownership, sources

EXPORTED = (
    "_mlir_ciface_main",
    "avial_comm",
    "avial_byte",
    "avial_status_ignore",
    "avial_error",
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
    "-mcpu=native",
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
    "-mcpu=native",
    "-relocation-model=pic",
    "-fp-contract=off",
    "-x86-cmov-converter=false",
)
"""No contraction by LLVM, whose choice depends on the code around: which product and sum are
rounded at once stands in the IR (`compiler/passes/arithmetic/contract_fma.py`), the same for every
rank. And what the text chooses between is no branch, which data of any kind mispredict: tables of
alignments and the like take half as long.
"""

RUNTIME = ("cc", "-O2", "-fPIC", "-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-c")
"""What is linked to programs in C. The ownership runtime combines partial results: as the program,
without contraction.
"""

ASSEMBLE = ("llvm-mc", "-filetype=obj")

LINK = ("cc", "-shared")

NO_GATHERS = "-mattr=+prefer-no-gather"
"""For opt and llc, where elements that lie apart are faster loaded one by one."""

T = TypeVar("T")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Binary:
    """`key` is the SHA-256 of everything the artifact was made from."""

    key: str
    shared_object: bytes
    ptx: dict[str, str]
    manifest: Manifest

    @property
    def summary(self) -> str:
        """`3f2a91c0, 24.1 KiB of machine code, PTX of task3`."""
        ptx = f", PTX of {listed(list(self.ptx))}" if self.ptx else ""
        return f"{self.key[:8]}, {format_bytes(len(self.shared_object))} of machine code{ptx}"

    def __str__(self) -> str:
        return f"binary {self.summary}\n{self.manifest}"

    def __repr__(self) -> str:
        return brief(self, f"{self.summary}; {self.manifest.summary}")


@dataclass(frozen=True)
class MachineCode:
    """What the tools make of LLVM IR, in so many parts: a shared object, and the assembly in it for
    people to read.
    """

    shared_object: bytes
    assembly: str
    parts: int = 1
    seconds: float = field(compare=False, default=0.0)

    def __repr__(self) -> str:
        size = format_bytes(len(self.shared_object))
        return brief(self, f"of {size} in {count(self.parts, 'part')}")


@dataclass(frozen=True)
class Underway:
    """opt, llc and llvm-mc at work on a part, one after the other, in a folder of their own."""

    process: subprocess.Popen[bytes]
    folder: Path

    def result(self) -> tuple[str, bytes]:
        """Its assembly, and what that is assembled to, once they are through."""
        code = self.process.wait()
        if code != 0:
            name = (self.folder / "tool").read_text().strip()
            said = (self.folder / "said").read_text(errors="replace")[:2000]
            raise InternalError(f"{name} ended with {code}: {said}")
        return (self.folder / "part.s").read_text(), (self.folder / "part.o").read_bytes()


def binary_of(code: MachineCode, manifest: Manifest, *, ptx: Mapping[str, str]) -> Binary:
    """What engines run: machine code of this machine, PTX and what has to be known of them."""
    manifest = replace(manifest, instruction_sets=tuple(sorted(instruction_sets())))
    parts = [item for pair in sorted(ptx.items()) for item in pair]
    key = digest(code.shared_object, spelled(manifest), *parts)
    return Binary(key, code.shared_object, dict(ptx), manifest)


def compile_llvm_ir(
    llvm_ir: str, *, store: Cache | None = None, underway: Sequence[Underway] = ()
) -> MachineCode:
    """Optimised machine code for this host's CPU; what the cache holds is verified before it is
    used. Where its parts are `underway` they are waited for.
    """
    started = time.perf_counter()
    store = store if store is not None else _objects()
    key = _key_of(llvm_ir)
    found = store.get(key)
    if found is None:
        code = _compile(llvm_ir, store, underway)
        head = f"{len(code.shared_object)} {code.parts}\n".encode()
        store.put(key, head + code.shared_object + code.assembly.encode())
    else:
        head, _, rest = found.partition(b"\n")
        size, parts = map(int, head.split())
        code = MachineCode(rest[:size], rest[size:].decode(), parts)
    return replace(code, seconds=time.perf_counter() - started)


@contextmanager
def begun(llvm_ir: str) -> Generator[Sequence[Underway]]:
    """The tools at the parts of this module, if the cache does not hold it; they are through when
    this context ends.
    """
    known = _objects().get(_key_of(llvm_ir)) is not None
    with ExitStack() as stack:
        yield () if known else _begin(llvm_ir, stack)


def _objects() -> Cache:
    return Cache(cache_folder() / "objects")


def _key_of(llvm_ir: str) -> str:
    tools = (*_opt(), *_llc(), *LINK, *_parts(llvm_ir), tool_versions())
    return digest("machine code and parts", llvm_ir, *tools)


def assembly_command(source: str, result: str, *, parts: int) -> str:
    """The line that makes the assembly `result` from the LLVM IR in `source`."""
    if parts > 1:
        return f"python -m avial_lab.compiler.backends.llvm {source} -o {result}"
    return f"{shlex.join(_opt())} {source} | {shlex.join(_llc())} -o {result}"


def optimised_command(source: str, result: str, *, parts: int) -> str:
    """The line that makes the text of what llc gets."""
    if parts > 1:
        return f"python -m avial_lab.compiler.backends.llvm -S {source} -o {result}"
    return f"{shlex.join(_opt())} {source} -S -o {result}"


def optimised(llvm_ir: str) -> str:
    """The LLVM IR that opt makes of `llvm_ir` for this host, as text to read; of one part after the
    other.
    """
    made = _beside(
        lambda part: _piped([*_opt(part), "-S"], part.llvm_ir.encode()), _divided(llvm_ir)
    )
    return b"\n".join(made).decode()


def bitcode(llvm_ir: str) -> list[bytes]:
    """The same as llc gets it. (Text forgets the order of uses, and llc's choices with it.)"""
    return _beside(_bitcode_of, _divided(llvm_ir))


def assembly_of(code: Sequence[bytes], *more: str) -> str:
    """What llc makes of bitcode; `more` are options that change no instruction."""
    return joined(_beside(lambda part: _piped((*_llc(), *more), part).decode(), code))


def _divided(llvm_ir: str) -> tuple[LlvmPart, ...]:
    return parts_of(llvm_ir, EXPORTED)


def _bitcode_of(part: LlvmPart) -> bytes:
    return _piped(_opt(part), part.llvm_ir.encode())


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
    objects = {"program": _assembled(assembly), **_runtime(llvm_ir, store)}
    return MachineCode(_linked(objects), assembly)


def _compile(llvm_ir: str, store: Cache, underway: Sequence[Underway]) -> MachineCode:
    """The shared object and the assembly it is assembled from, each part by itself."""
    with ExitStack() as stack:
        parts = underway or _begin(llvm_ir, stack)
        runtime = _runtime(llvm_ir, store)
        assemblies, objects = zip(*(part.result() for part in parts), strict=True)
    named = {f"program{k}": code for k, code in enumerate(objects)}
    return MachineCode(_linked({**named, **runtime}), joined(assemblies), len(parts))


def _begin(llvm_ir: str, stack: ExitStack) -> Sequence[Underway]:
    return [stack.enter_context(_begun(part)) for part in _divided(llvm_ir)]


@contextmanager
def _begun(part: LlvmPart) -> Generator[Underway]:
    """The tools at this part. They hand it on by themselves: this process, which has other things
    to do, would let them wait.
    """
    # As where they are piped: from their standard input, whose name stands in what they make.
    steps = ((_opt(part), "ll", "bc"), (_llc(), "bc", "s"), (ASSEMBLE, "s", "o"))
    line = " && ".join(
        f"echo {command[0]} >tool && {_spelled(command)} <part.{given} -o part.{made}"
        for command, given, made in steps
    )
    with tempfile.TemporaryDirectory(prefix="avial-build-") as directory:
        folder = Path(directory)
        (folder / "part.ll").write_text(part.llvm_ir)
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


def _spelled(command: Sequence[str]) -> str:
    """As a shell takes it."""
    return shlex.join([str(tool(command[0])), *command[1:]])


def _linked(objects: Mapping[str, bytes]) -> bytes:
    """The shared object of a program and what it needs besides, by the names of their files."""
    with tempfile.TemporaryDirectory(prefix="avial-build-") as directory:
        folder = Path(directory)
        for name, code in objects.items():
            (folder / f"{name}.o").write_bytes(code)
        _run([*LINK, "-o", "program.so", *(f"{name}.o" for name in objects), "-lm"], folder)
        return (folder / "program.so").read_bytes()


def _assembled(assembly: str) -> bytes:
    return _piped(ASSEMBLE, assembly.encode())


def _runtime(llvm_ir: str, store: Cache) -> dict[str, bytes]:
    """The object files of what a program is linked to."""
    found: dict[str, bytes] = {}
    if _needs_bfloat16(llvm_ir):
        code = _piped(("opt",), _bfloat16().encode())
        found["bfloat16"] = _assembled(_piped(_llc(), code).decode())
    if _needs_ownership(llvm_ir):
        found["ownership"] = compile_ownership(store=store)
    for part, needs in _IN_C.items():
        if needs(llvm_ir):
            found[part] = _compile_c(part, store)
    return found


def get_ready() -> None:
    """Find out and make what every program needs and no program changes: what the tools and the CPU
    are, and the runtime in C, which takes 2 s where the cache does not have it yet.
    """
    store = _objects()
    has_fma()
    compile_ownership(store=store)
    for part in _IN_C:
        _compile_c(part, store)


def compile_ownership(*, store: Cache) -> bytes:
    """The ownership runtime as an object file; every program that needs it has the same."""
    return _compile_c("ownership", store)


def _compile_c(name: str, store: Cache) -> bytes:
    """The object file of a part in C; who asks for it while it is made waits."""
    with _COMPILING[name]:
        key = digest(name, _text_of(name), *RUNTIME, tool_versions())
        found = store.get(key)
        if found is not None:
            return found
        with tempfile.TemporaryDirectory(prefix="avial-build-") as directory:
            folder = Path(directory)
            sources.write(sources.texts(name), folder)
            _run([*RUNTIME, sources.MAIN[name], "-o", f"{name}.o"], folder)
            compiled = (folder / f"{name}.o").read_bytes()
        store.put(key, compiled)
        return compiled


def _parts(llvm_ir: str) -> tuple[str, ...]:
    """The sources of what is linked to the program."""
    return (
        _bfloat16() if _needs_bfloat16(llvm_ir) else "",
        *((_text_of("ownership"), *RUNTIME) if _needs_ownership(llvm_ir) else ()),
        *(
            word
            for part, needs in _IN_C.items()
            if needs(llvm_ir)
            for word in (_text_of(part), *RUNTIME)
        ),
    )


def _needs_bfloat16(llvm_ir: str) -> bool:
    return "bfloat" in llvm_ir


def _needs_ownership(llvm_ir: str) -> bool:
    return f"@{ownership.BEGIN}" in llvm_ir


def _needs_threads(llvm_ir: str) -> bool:
    return "@__kmpc_fork_call" in llvm_ir


def _needs_memory(llvm_ir: str) -> bool:
    return "@avial_take" in llvm_ir or "@avial_give" in llvm_ir


def _needs_blas(llvm_ir: str) -> bool:
    return "@avial_gemm_" in llvm_ir


_IN_C = {"threads": _needs_threads, "memory": _needs_memory, "blas": _needs_blas}
"""Parts of the runtime by the names of their files, and which programs call them."""

_COMPILING = {name: Lock() for name in ("ownership", *_IN_C)}
"""One lock for each C source: a thread waits only for the source that it needs."""


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        [str(tool(command[0])), *command[1:]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[:2000]
        raise InternalError(f"{command[0]} ended with {done.returncode}: {said}")


def _piped(command: Sequence[str], code: bytes) -> bytes:
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


@cache
def _bfloat16() -> str:
    return resources.files("avial_lab.compiler.backends").joinpath("bfloat16.ll").read_text()


def _text_of(part: str) -> str:
    """All that the part is compiled from: the constants it shares with Python, too."""
    return "\0".join(word for file in sources.texts(part).items() for word in file)


def _opt(part: LlvmPart | None = None) -> tuple[str, ...]:
    """OPT for this host. Our modules name no triple, and without one opt knows of no vector
    registers.
    """
    *first, exported = OPT
    exported = ",".join([exported, *(part.shared if part is not None else ())])
    return (*first, exported, f"-mtriple={host_triple()}", *_tuning())


def _llc() -> tuple[str, ...]:
    return (*LLC, *_tuning())


def _tuning() -> tuple[str, ...]:
    """What LLVM does not know of this host's CPU."""
    return (NO_GATHERS,) if has_slow_gathers() else ()


@cache
def has_fma() -> bool:
    """Whether this host multiplies and adds in one instruction; where it does not, llc calls libm's
    fma, which is slow.
    """
    asked = "declare double @llvm.fma.f64(double, double, double)\n"
    asked += "define double @f(double %a, double %b, double %c) {\n"
    asked += "%d = call double @llvm.fma.f64(double %a, double %b, double %c)\nret double %d }\n"
    return not re.search(r"\bfma\b", _piped(LLC, asked.encode()).decode())


def host_triple() -> str:
    """What LLVM calls this kind of machine."""
    return next(
        line.partition(":")[2].strip()
        for line in _version("llc").splitlines()
        if line.strip().startswith("Default target:")
    )


@cache
def tool_versions() -> str:
    """What the machine code depends on besides its source: LLVM, the linker's driver, this host's
    CPU.
    """
    return "\n".join([_version("llc"), _version("cc"), platform.machine(), _cpu_flags()])


@cache
def _version(name: str) -> str:
    """What a tool says of itself."""
    said = subprocess.run(
        [str(tool(name)), "--version"], capture_output=True, text=True, check=True
    )
    return said.stdout


def _cpu_flags() -> str:
    """The instruction sets the kernel lets us use; two machines of one CPU name may differ in
    them.
    """
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return ""
    lines = path.read_text().splitlines()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make assembly of LLVM IR, as programs are compiled."""
    parser = argparse.ArgumentParser(
        prog="python -m avial_lab.compiler.backends.llvm", description=main.__doc__
    )
    parser.add_argument("file")
    parser.add_argument("-S", dest="halfway", action="store_true", help="what opt makes, as text")
    parser.add_argument("-o", dest="output", required=True)
    options = parser.parse_args(arguments)
    llvm_ir = Path(options.file).read_text()
    made = optimised(llvm_ir) if options.halfway else assembly_of(bitcode(llvm_ir))
    Path(options.output).write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
