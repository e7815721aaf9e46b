"""Devices by themselves, in C: the emulated one finds a forgotten copy or wait, places keep their
order, and NVIDIA's driver is asked for what it should be (a stand-in answers, on the host).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.runtime.native.builds import (
    SANITIZERS,
    built,
    lacks_sanitizers,
    write_sources,
)

SOURCES = Path(__file__).parent / "c"
TESTS = (
    "memory is apart and poisoned", "late", "seeded", "the host's memory is read late",
    "what no device can launch", "a box there and back", "from device to device",
    "a copy in again", "between ranks", "what is not ours", "memory is taken again",
    "memory is kept", "what a run wrote is undone", "a limit", "memory by granules", "null counts",
    "cuda copies and launches",
    "cuda: packed boxes", "cuda: machine code", "cuda: memory by granules", "cuda: events",
    "cuda: memory and streams of others", "cuda: newer ptx",
    "cuda: another device", "cuda: no driver",
)  # fmt: skip


def build(
    folder: Path, *flags: str, broken: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> Path:
    """broken: in a file of `devices/`, a text in place of another one."""
    write_sources(folder)
    for name, (old, new) in broken.items():
        source = folder / "devices" / name
        assert old in source.read_text()
        source.write_text(source.read_text().replace(old, new))
    where = ["-I", str(folder)]
    fake = ["-shared", "-o", "libfakecuda.so", str(SOURCES / "fake_cuda.c")]
    assert built([*flags, *where, *fake], folder) == ""
    main = [str(SOURCES / "main.c"), "-o", "devices_test", "-ldl"]
    assert built([*flags, *where, *main], folder) == ""
    return folder / "devices_test"


@pytest.fixture(scope="module", params=["as built", "sanitized"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    if request.param == "sanitized":
        if lacks_sanitizers():
            pytest.skip(lacks_sanitizers())
        flags = [*SANITIZERS]
    return build(tmp_path_factory.mktemp("devices"), *flags)


def run(program: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), name], cwd=program.parent, capture_output=True, text=True, check=False,
        env={**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"},
    )  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_device(name: str, program: Path) -> None:
    done = run(program, name)
    assert done.returncode == 0, done.stderr


def test_no_test_is_forgotten(program: Path) -> None:
    said = subprocess.run([str(program)], cwd=program.parent, capture_output=True, text=True)
    assert tuple(said.stdout.splitlines()) == TESTS


BROKEN = {
    "a copy in that does not wait for what is read":
        ("!wait_for(p, QUEUE_IN, a->read) ||\n        !wait_for(p, QUEUE_IN, a->out)",
         "!wait_for(p, QUEUE_IN, a->out)"),
    "a copy out that does not wait for the launch":
        ("!wait_for(p, QUEUE_OUT, a->written)", "!true"),
    "a launch that does not wait for the copy":
        ("if (!wait_for(p, QUEUE_KERNELS, a->in)) return false;", ""),
    "a launch that does not wait for who reads what it writes":
        ("if (a->writes && !wait_for(p, QUEUE_KERNELS, a->out)) return false;", ""),
    "a copy in that does not wait for what fills the host's memory":
        ("!wait_for_host(p, QUEUE_IN, true)", "!true"),
    "a host that does not wait":
        ("if (!went(here.driver->synchronise(p->device, written ? p->fills : p->reads))) "
         "return false;", "(void)written;"),
    "a granule that is not mapped":
        ("to->runs[2 * k] = rows[4 * k + 2],", "to->runs[2 * k] = rows[4 * k + 2] + 1,"),
    "a copy of the caller's array that comes too late":
        ("a->out = d->record(p->device, QUEUE_OUT);\n    return true;", "return true;"),
    "a box that is a row short": ("offset += box[d] * stride;", "offset += 0;"),
    "a box packed before its launch":
        ("queue, out ? a->written : a->read", "queue, out ? 0 : a->read"),
    "a box packed before what was copied there":
        ("queue, out ? a->in : a->out", "queue, out ? 0 : a->out"),
    "a box unpacked before what reads the old one":
        ("queue, out ? a->written : a->read", "queue, out ? a->written : 0"),
    "a box unpacked over what is being sent":
        ("queue, out ? a->in : a->out", "queue, out ? a->in : 0"),
    "a stage that is used again too early":
        ("if (!avial_stage_wait(s, k)) return NULL;", ""),
    "a packed box that nobody waits for":
        ("stage->marked[slot] = here.driver->record(p->device, out ? QUEUE_OUT : QUEUE_IN)",
         "stage->marked[slot] = out ? 0 : here.driver->record(p->device, QUEUE_IN)"),
    "a launch over what is being packed": ("if (out) a->out = event;", "if (out) (void)event;"),
    "a launch before what came": ("else a->in = event;", ""),
}  # fmt: skip


BROKEN_PACKING = {
    "a half that is filled before it is empty":
        ("error = cu.cuStreamWaitEvent(first, p->empty[half], 0);", "error = 0;"),
    "a second that does not wait for the first":
        ("if (!error) error = cu.cuStreamWaitEvent(second, p->full[half], 0);", ""),
    "a host that does not wait for the queue":
        ("if (!m.error) m.error = cu.cuStreamWaitEvent(p->host, p->begun, 0);", ""),
    "a queue that does not wait for the host":
        ("m.error = cu.cuStreamWaitEvent(stream, p->empty[(m.pieces - 1) % 2], 0);",
         "m.error = 0;"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN_PACKING)
def test_a_dropped_wait_of_packed_boxes_is_found(what: str, tmp_path: Path) -> None:
    old, new = BROKEN_PACKING[what]
    program = build(tmp_path, "-O1", broken={"cuda.c": (old, new)})
    assert run(program, "cuda: packed boxes").returncode


@pytest.mark.parametrize("what", BROKEN)
def test_a_dropped_wait_is_found(what: str, tmp_path: Path) -> None:
    """Each of them makes a value wrong in one of the tests at least."""
    program = build(tmp_path, "-O1", broken={"places.c": BROKEN[what]})
    found = (
        "what a run wrote is undone", "a box there and back", "from device to device",
        "a copy in again", "between ranks", "memory by granules",
    )  # fmt: skip
    assert any(run(program, name).returncode for name in found)
