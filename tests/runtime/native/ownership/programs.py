"""Structured programs in C, as the compiler would make them: another reading of the interface.

C text -> Binary. A program has phases with a `touches` each, and a body that runs on a range.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.artifact.plan import Plan
from avial_lab.compiler.backends.c_runtime import RUNTIME
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.cache import spelled
from avial_lab.core.toolchain import tool
from avial_lab.runtime.launch import mpiexec
from avial_lab.runtime.native import sources
from avial_lab.runtime.native.planned_run import plan_run
from avial_lab.runtime.rank.job import Options
from avial_lab.trace import Trace

MORE_FLAGS = "AVIAL_TEST_CFLAGS"
"""A variable of the environment: flags of the C compiler for the runtime and the programs."""

PRELUDE = """
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef int64_t i64;
typedef void (*touches_t)(const i64 *params, const i64 *range);
typedef struct { char *allocated, *aligned; i64 offset, rest[]; } memref;
extern i64 avial_begin(i64 id, i64 kind, touches_t, const i64 *params, const i64 *space);
extern void avial_range(i64 k, i64 *range);
extern void avial_end(void);
extern void avial_read(i64 array, const i64 *box);
extern void avial_write(i64 array, const i64 *box, i64 exact);
extern void avial_reduce(i64 array, const i64 *box, i64 op);
extern void avial_scratch(i64 array, void *memory);
extern i64 avial_live(void), avial_again(i64 condition);
extern void avial_unknown(void);
extern void avial_cost(i64 n, const i64 *weights);
extern void avial_layout(i64 block, i64 grid, i64 nranks, const i64 *ranks);
#define BOX(...) ((const i64[]){__VA_ARGS__})
#define SPACE(lb, ub, extent) \\
    ((const i64[]){(lb), (ub), 1, 0, (extent), 0, 1, 1, 0, 0})
enum { REPLICATE, TASK, EVERYWHERE };
/* One phase: the last argument runs on every range of this rank, with r = {lo0, hi0, lo1, hi1}. */
#define PHASE(id, kind, touches, params, space, ...) do { \\
    i64 r[4], n_ = avial_begin(id, kind, touches, params, space); \\
    for (i64 k_ = 0; k_ < n_; k_++) { avial_range(k_, r); __VA_ARGS__ } \\
    avial_end(); } while (0)
/* The same with a private accumulation of `array`, `size` bytes, in `acc`. */
#define REDUCTION(id, kind, touches, params, space, array, type, size, ...) do { \\
    i64 r[4], n_ = avial_begin(id, kind, touches, params, space); \\
    type *acc = avial_live() ? malloc(size) : 0; \\
    avial_scratch(array, acc); \\
    for (i64 k_ = 0; k_ < n_; k_++) { avial_range(k_, r); __VA_ARGS__ } \\
    avial_end(); free(acc); } while (0)
"""


@dataclass(frozen=True)
class Program:
    """`source` defines the touches, and `static void program(…)` with a `T *name` for each array.

    ctypes: the C type of each array's elements, by its name.
    """

    source: str
    arrays: tuple[str, ...]
    ctypes: tuple[str, ...]
    phases: tuple[str, ...]
    temporary: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def text(self) -> str:
        parameters = ", ".join(f"memref *{name}_" for name in self.arrays)
        passed = ", ".join(
            f"({kind} *){name}_->aligned"
            for name, kind in zip(self.arrays, self.ctypes, strict=True)
        )
        main = f"void _mlir_ciface_main({parameters}) {{ program({passed}); }}"
        return "\n".join([PRELUDE, self.source, main, ""])

    def binary(self, arrays: Mapping[str, np.ndarray], ranks: int) -> Binary:
        """The program for `ranks` ranks, its inputs as the plan has them."""
        binding = bind_arrays({name: arrays[name] for name in self.arrays})
        buffers = tuple(
            replace(buffer, temporary=buffer.name in self.temporary) for buffer in binding.buffers
        )
        plan = self.plan(arrays, ranks)
        manifest = DerivedMessages(
            entry="main", ranks=ranks, buffers=buffers, storages=binding.storages,
            inputs=plan.inputs, results=plan.results, uses_mpi=ranks > 1, phases=self.phases,
        )  # fmt: skip
        shared_object = compiled(self.text(), self.flags)
        key = hashlib.sha256(shared_object + spelled(manifest).encode()).hexdigest()
        return Binary(key, shared_object, {}, manifest)

    def plan(self, arrays: Mapping[str, np.ndarray], ranks: int) -> Plan:
        binding = bind_arrays({name: arrays[name] for name in self.arrays})
        shared_object = compiled(self.text(), self.flags)
        return plan_run(
            shared_object, binding.storages, ranks, temporary=self.temporary, phases=self.phases
        )

    def run(
        self, arrays: Mapping[str, np.ndarray], ranks: int, *, options: Options | None = None
    ) -> Trace:
        """Run it for real, results in `arrays`; what nobody gave is poisoned."""
        options = options or Options(traced=False, poison=True)
        return mpiexec.run(self.binary(arrays, ranks), arrays, options=options)


@cache
def runtime(flags: Sequence[str] = ()) -> bytes:
    """The object file of the runtime; `flags` for a build that is to be tried."""
    with tempfile.TemporaryDirectory() as folder:
        sources.write(sources.texts("ownership"), Path(folder))
        main = sources.MAIN["ownership"]
        command = [*RUNTIME, "-Werror", *flags, *_more_flags(), main, "-o", "ownership.o"]
        subprocess.run([tool("cc"), *command[1:]], cwd=folder, check=True)
        return Path(folder, "ownership.o").read_bytes()


@cache
def compiled(source: str, flags: Sequence[str] = ()) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.c").write_text(source)
        Path(folder, "ownership.o").write_bytes(runtime(tuple(flags)))
        options = ("-shared", "-fPIC", "-O1", "-ffp-contract=off", "-o", "program.so")
        command = [tool("cc"), *options, *_more_flags(), "program.c", "ownership.o", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        return Path(folder, "program.so").read_bytes()


def _more_flags() -> list[str]:
    return os.environ.get(MORE_FLAGS, "").split()
