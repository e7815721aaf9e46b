"""Which way messages between GPUs go: a self-test in processes of its own says so. An MPI that
claims to take GPUs' memory and does not is one that is put in front of the real one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import avial_lab
from avial_lab.core.toolchain import find_tool
from avial_lab.runtime.rank import device_messages

BROKEN = r"""
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const void *spoiled(const void *data, long count)
{
    const char *how = getenv("BROKEN");
    if (!strcmp(how, "crash")) raise(SIGSEGV);
    if (!strcmp(how, "hang")) for (;;) pause();
    if (strcmp(how, "wrong") || count != 65537) return data;
    char *other = calloc(1, (size_t)count);
    return memcpy(other, data, (size_t)count - 9);
}

#define SEND(name, Count)                                                           \
    int name(const void *data, Count count, int type, int peer, int tag, int comm)  \
    {                                                                               \
        int (*send)(const void *, Count, int, int, int, int);                       \
        *(void **)&send = dlsym(dlopen("libmpi.so.12", RTLD_NOW), #name);           \
        return send(spoiled(data, (long)count), count, type, peer, tag, comm);      \
    }
SEND(MPI_Send, int)
SEND(MPI_Send_c, long)
"""

WAYS = {
    "": "go straight from their memory: the self-test of MPICH",
    "wrong": "go through the memory of their hosts: the self-test of MPICH",
    "crash": "ended its processes (",
    "hang": "did not end within",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cc = find_tool("cc")
    if cc is None or sys.platform != "linux":
        pytest.skip("there is no C compiler to make such an MPI with")
    folder = tmp_path_factory.mktemp("mpi")
    (folder / "broken.c").write_text(BROKEN)
    made = folder / "broken.so"
    subprocess.run(
        [str(cc), "-shared", "-fPIC", "-o", str(made), str(folder / "broken.c"), "-ldl"], check=True
    )
    return made


@pytest.mark.mpi
@pytest.mark.quick("wrong")
@pytest.mark.parametrize("how", WAYS)
def test_an_mpi_that_only_claims_it(
    how: str, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(device_messages, "LIMIT_S", 3.0 if how == "hang" else 60.0)
    if how:
        monkeypatch.setenv("BROKEN", how)
        monkeypatch.setenv("LD_PRELOAD", str(broken))
    way = device_messages.way_here("apart")
    assert WAYS[how] in str(way)
    assert way.direct == (not how)
    if how == "wrong":
        assert "of 65,537 bytes" in way.why
    monkeypatch.setattr(device_messages, "_self_test", pytest.fail)
    assert device_messages.way_here("apart") == way  # remembered
    monkeypatch.setattr(device_messages, "_self_test", lambda driver: f"was not for {driver}")
    assert "was not for cuda" in device_messages.way_here("cuda").why  # another driver's is not


@pytest.mark.mpi
def test_a_process_that_is_a_rank_starts_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its own mpiexec told it is not handed on."""
    ours = {"PMI_RANK": "1", "HYDI_CONTROL_FD": "7", "SLURM_JOB_ID": "3", "PATH": "/bin"}
    told = device_messages._environment(ours)
    assert told == {
        "PATH": "/bin", "HYDRA_LAUNCHER": "fork", "HYDRA_RMK": "user", "HYDRA_IFACE": "lo",
    }  # fmt: skip


TURNED = """
func.func @turned(%A: memref<NxNxf64>, %B: memref<NxNxf64>, %C: memref<NxNxf64>) {
  affine.for %i = 0 to N {
    affine.for %j = 0 to N {
      %a = affine.load %A[%i, %j] : memref<NxNxf64>
      %b = arith.addf %a, %a : f64
      affine.store %b, %B[%i, %j] : memref<NxNxf64>
    }
  }
  affine.for %i = 0 to N {
    affine.for %j = 0 to N {
      %a = affine.load %B[%j, %i] : memref<NxNxf64>
      %b = arith.addf %a, %a : f64
      affine.store %b, %C[%i, %j] : memref<NxNxf64>
    }
  }
  return
}"""


@pytest.mark.mpi
@pytest.mark.quick("13-2-2-direct", "13-2-2-host")
@pytest.mark.parametrize("way", ["direct", "host"])
@pytest.mark.parametrize(
    ("n", "ranks", "gpus"), [(13, 2, 2), (13, 3, 3), (13, 2, 4), (13, 3, 2), (2100, 2, 2)]
)
def test_boxes_from_gpu_to_gpu(
    n: int, ranks: int, gpus: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns, which are packed; of the large array 8 MiB and more, in pieces. Whichever way it
    goes the run moves what was planned, and no host gets it.
    """
    monkeypatch.setenv(device_messages.VARIABLE, way)
    a = np.arange(n * n, dtype=np.float64).reshape(n, n)
    arrays = {"A": a, "B": np.zeros((n, n)), "C": np.zeros((n, n))}
    program = avial_lab.compile(
        TURNED.replace("N", str(n)), arrays=arrays, ranks=ranks, gpus=gpus, on="gpu"
    )
    assert program.plan is not None
    for seed in (0, 7):
        for name in "BC":
            np.asarray(program.arrays[name])[...] = -1
        trace = program.run(device_seed=seed)
        assert (np.asarray(program.arrays["C"]) == 4 * a.T).all()
        assert sorted(map(repr, trace.moves)) == sorted(map(repr, program.plan.moves))
        assert sorted(map(repr, trace.copies)) == sorted(map(repr, program.plan.copies))
        assert f"{device_messages.VARIABLE} is {way}" in trace.note
    if gpus >= ranks:
        assert all(move.devices for move in trace.moves)
        assert not any(copy.phase and copy.dest.startswith("cpu") for copy in trace.copies)


TASKS = """
avial.schedule %x, %y, %z {
  %gpu = avial.target {arch = "sm_80"}
  avial.task %gpu, %x {
    affine.for %h = 0 to N { affine.for %i = 0 to N {
    affine.for %j = 0 to N { affine.for %k = 0 to N {
      %u = affine.load %x[%h, %i, %j, %k]
      %v = arith.addf %u, %u
      affine.store %v, %x[%h, %i, %j, %k]
    } } } }
  }
  avial.task %gpu, %y {
    affine.for %h = 0 to N { affine.for %i = 0 to N {
    affine.for %j = 0 to N { affine.for %k = 0 to N {
      %u = affine.load %y[%h, %i, %j, %k]
      %v = arith.mulf %u, %u
      affine.store %v, %y[%h, %i, %j, %k]
    } } } }
  }
  avial.task %gpu, %x, %y, %z {
    affine.for %h = 0 to N - 2 { affine.for %i = 0 to N - 2 {
    affine.for %j = 0 to N - 3 { affine.for %k = 0 to N - 4 {
      %u = affine.load %x[%h + 1, %i + 1, %j + 2, %k + 3]
      %w = affine.load %y[%h + 2, %i + 2, %j + 3, %k + 4]
      %v = arith.addf %u, %w
      affine.store %v, %z[%h, %i, %j, %k]
    } } } }
  }
}
"""


@pytest.mark.mpi
@pytest.mark.quick("9-2-2-direct")
@pytest.mark.parametrize("way", ["direct", "host"])
@pytest.mark.parametrize(("n", "ranks", "gpus"), [(9, 2, 2), (9, 3, 3), (32, 2, 2)])
def test_boxes_of_tasks_from_gpu_to_gpu(
    n: int, ranks: int, gpus: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inner boxes, with gaps in each dimension, of what a task wrote on another rank's GPU."""
    monkeypatch.setenv(device_messages.VARIABLE, way)
    text = TASKS
    for less in (2, 3, 4):
        text = text.replace(f"N - {less}", str(n - less))
    given = [np.arange(float(n**4)).reshape(n, n, n, n) + k for k in range(3)]
    arrays = dict(zip("xyz", (each.copy() for each in given), strict=True))
    program = avial_lab.compile(text.replace("N", str(n)), arrays=arrays, ranks=ranks, gpus=gpus)
    x, y = 2 * given[0], given[1] ** 2
    wanted = given[2].copy()
    inner = slice(1, n - 1), slice(1, n - 1), slice(2, n - 1), slice(3, n - 1)
    wanted[: n - 2, : n - 2, : n - 3, : n - 4] = x[inner] + y[2:, 2:, 3:, 4:]
    assert program.plan is not None
    for seed in (0, 7):
        for name, before in zip("xyz", given, strict=True):
            np.asarray(program.arrays[name])[...] = before
        trace = program.run(device_seed=seed)
        for name, right in zip("xyz", (x, y, wanted), strict=True):
            np.testing.assert_array_equal(program.arrays[name], right, err_msg=name)
        assert set(trace.moves) == set(program.plan.moves)
        assert set(trace.copies) == set(program.plan.copies)
        assert trace.taken_bytes == program.plan.taken_bytes
    assert trace.moves
    assert all(move.devices for move in trace.moves)
