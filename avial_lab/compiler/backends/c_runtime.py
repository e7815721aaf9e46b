"""The runtimes in C that programs are linked with, compiled for this host."""

from __future__ import annotations

import tempfile
from functools import cache
from importlib import resources
from pathlib import Path
from threading import Lock

from avial_lab.compiler.backends.host_target import has_fma, tool_versions
from avial_lab.compiler.backends.tools import assembled, llc_command, objects, piped, run_tool
from avial_lab.core.cache import Cache, digest
from avial_lab.machine.cpu import NATIVE
from avial_lab.runtime.native import ownership, sources

RUNTIME = ("cc", "-O2", "-fPIC", "-std=c11", "-ffp-contract=off", "-Wall", "-Wextra", "-c")
"""What is linked to programs in C. The ownership runtime combines partial results: as the program,
without contraction.
"""


def _needs_blas(llvm_ir: str) -> bool:
    return "@avial_gemm_" in llvm_ir


def _needs_memory(llvm_ir: str) -> bool:
    return "@avial_take" in llvm_ir or "@avial_give" in llvm_ir


def _needs_threads(llvm_ir: str) -> bool:
    return "@__kmpc_fork_call" in llvm_ir


def _needs_devices(llvm_ir: str) -> bool:
    return "@avial_launch" in llvm_ir or "@avial_step_copy" in llvm_ir


_IN_C = {
    "threads": _needs_threads,
    "memory": _needs_memory,
    "blas": _needs_blas,
    "devices": _needs_devices,
}
"""Parts of the runtime by the names of their files, and which programs call them."""

_COMPILING = {name: Lock() for name in ("ownership", *_IN_C)}
"""One lock for each C source: a thread waits only for the source that it needs."""


def runtime_object(llvm_ir: str, store: Cache, cpu: str = NATIVE) -> dict[str, bytes]:
    """The object files of what a program is linked to."""
    found: dict[str, bytes] = {}
    if _needs_bfloat16(llvm_ir):
        code = piped(("opt",), _bfloat16().encode())
        found["bfloat16"] = assembled(piped(llc_command(cpu), code).decode())
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
    store = objects()
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
            run_tool([*RUNTIME, sources.MAIN[name], "-o", f"{name}.o"], folder)
            compiled = (folder / f"{name}.o").read_bytes()
        store.put(key, compiled)
        return compiled


def runtime_parts(llvm_ir: str) -> tuple[str, ...]:
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


@cache
def _bfloat16() -> str:
    return (
        resources.files("avial_lab.compiler.backends")
        .joinpath("bfloat16.ll")
        .read_text(encoding="utf-8")
    )


def _text_of(part: str) -> str:
    """All that the part is compiled from: the constants it shares with Python, too."""
    return "\0".join(word for file in sources.texts(part).items() for word in file)
