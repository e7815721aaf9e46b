"""A bundle where there is nothing but Python and NumPy: it runs, and finds what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from avial_lab.bundle.pack import pack, wishes
from avial_lab.core.errors import BindError
from avial_lab.runtime.bare.contents import CASES, Bundle
from tests.runtime.native.builds import built, write_sources

SOURCES = Path(__file__).parents[1] / "runtime" / "native" / "devices" / "c"

PYTHON = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}")
"""Not the environment's, which has all that there is."""

NAME = "steps/own/1"

STEPS = """
func.func @steps(%a: memref<20x30xf64>, %b: memref<20x30xf64>) {
  affine.for %t = 0 to 3 {
    affine.for %i = 1 to 19 {
      affine.for %j = 0 to 30 {
        %p = affine.load %a[%i - 1, 29 - %j] : memref<20x30xf64>
        %q = affine.load %a[%i + 1, %j] : memref<20x30xf64>
        %s = arith.addf %p, %q : f64
        affine.store %s, %b[%i, %j] : memref<20x30xf64>
      }
    }
    affine.for %i = 1 to 19 {
      affine.for %j = 0 to 30 {
        %p = affine.load %b[%i, %j] : memref<20x30xf64>
        affine.store %p, %a[%i, %j] : memref<20x30xf64>
      }
    }
  }
  return
}
"""

NOT_THERE = ("mlir", "islpy", "psutil", "IPython", "ipyparallel", "ml_dtypes", "yaml", "pygments")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one program, for this Python."""
    folder = tmp_path_factory.mktemp("bundle") / "one"
    program = folder.parent / "steps.mlir"
    program.write_text(STEPS)
    contents = pack(folder, [str(program)], race=False, pythons=())
    assert not contents.refused
    assert [case.name for case in contents.cases] == [NAME, "steps/own/2"]
    assert [form.name for form in contents.forms] == [f"{NAME} on cpu", "steps/own/2 on cpu"]
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which NumPy is all that is installed, beside another MPI's library."""
    folder = tmp_path_factory.mktemp("bare")
    root = Path(np.__file__).parent
    (folder / "numpy").symlink_to(root)
    if (libs := root.parent / "numpy.libs").is_dir():
        (folder / "numpy.libs").symlink_to(libs)
    for name in NOT_THERE:
        (folder / f"{name}.py").write_text(f"raise ImportError('{name} is not to be needed')")
    (folder / "other.c").write_text("int ompi_mpi_comm_self, MPI_Get_version;\n")
    assert built(["-shared", "-o", "libmpi.so", "other.c"], folder) == ""
    known = {"LD_LIBRARY_PATH": str(folder)}
    return {**known, "PATH": os.defpath, "PYTHONPATH": str(folder), "HOME": str(folder)}


def run(
    bundle: Path, bare: dict[str, str], out: Path, *arguments: str, driver: str = "apart"
) -> dict[str, Any]:
    command = [PYTHON, "-s", str(bundle / "run.py"), "-o", str(out), "--driver", driver]
    done = subprocess.run(
        [*command, *arguments], env=bare, capture_output=True, text=True, check=False
    )
    facts = json.loads((out / "results.json").read_text())
    return {**facts, "code": done.returncode, "printed": done.stdout + done.stderr}


@pytest.mark.mpi
def test_it_runs_where_nothing_is_installed(
    bundle: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    found = run(bundle, bare, tmp_path, "--only", "present,values,copies,ranks,faults")
    assert found["code"] == 0, found["printed"]
    parts = found["parts"]
    assert [(name, part["state"]) for name, part in parts.items()] == [
        ("present", "done"), ("values", "done"), ("copies", "done"),
        ("arrays", "left out"), ("ranks", "done"), ("faults", "done"), ("race", "left out"),
    ]  # fmt: skip
    assert found["machine"]["device"]["name"] == "emulated GPU"
    assert [row["seed"] for row in parts["values"]["rows"]] == [0, 7]  # late, in a drawn order
    ways = [row["way"] for row in parts["ranks"]["rows"]]
    assert [way.partition(":")[0].rpartition(" go ")[2] for way in ways] == [
        "straight from their memory", "through the memory of their hosts",
    ]  # fmt: skip
    assert "found all bytes right, both ways" in ways[0]
    assert parts["ranks"]["ways"] == ways
    assert ways[0] in found["printed"]
    for row in (*parts["values"]["rows"], *parts["ranks"]["rows"]):
        assert row["said"] == "bit for bit"
        assert row["copies_as_planned"]
        assert row["sent_as_planned"]
    assert parts["copies"]["copied_bytes"] > 0
    faults = parts["faults"]
    said = {row["fault"]: row["said"] for row in faults["rows"]}
    assert all(row["ok"] for row in faults["rows"]), said
    assert "2048 threads" in said["2048 threads in a block"]
    assert "a kernel that never ends" in faults["waits_for_hardware"]


@pytest.fixture(scope="module")
def files(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packed inputs, a.npy and b.npy."""
    folder = tmp_path_factory.mktemp("files")
    for name, array in Bundle.at(bundle).arrays(NAME, "in").items():
        np.save(folder / f"{name}.npy", array)
    return folder


def run_on_files(
    bundle: Path, bare: dict[str, str], files: Path, arguments: str, *, ranks: int = 1
) -> subprocess.CompletedProcess[str]:
    """As a user would, there; `ranks` by the bundle's own mpiexec."""
    mpiexec = [str(bundle / "mpi" / "bin" / "mpiexec"), "-launcher", "fork", "-iface", "lo"]
    started = [*mpiexec, "-n", str(ranks)] if ranks > 1 else []
    command = [*started, PYTHON, "-s", str(bundle / "run.py"), *arguments.split()]
    return subprocess.run(
        command, env=bare | {"TMPDIR": str(files)}, cwd=files, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("on", ["cpu", "gpu"])
def test_a_program_runs_on_files(
    bundle: Path, bare: dict[str, str], files: Path, ranks: int, on: str
) -> None:
    given = "--in a=a.npy --in b=b.npy --out a=x.npy --out b=y.npy --trace t.json"
    command = f"{given} --on {on} --driver apart"
    done = run_on_files(bundle, bare, files, command, ranks=ranks)
    assert done.returncode == 0, done.stderr
    answers = Bundle.at(bundle).arrays(NAME, "out")
    assert np.array_equal(np.load(files / "x.npy"), answers["a"])
    assert np.array_equal(np.load(files / "y.npy"), answers["b"])
    trace = json.loads((files / "t.json").read_text())
    rows = {event["pid"] for event in trace["traceEvents"] if event.get("ph") == "X"}
    assert len(rows) >= ranks
    assert not list(files.glob("avial-*"))  # of the journals


@pytest.mark.quick("--in b=b.npy-1*", "--program other*")
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("arguments", "ranks", "said"),
    [
        ("--in b=b.npy", 1, "the program reads array 'a' (20x30xf64), and no file of it is given"),
        ("--in a=nix.npy", 2, "--in a: cannot read nix.npy: No such file or directory"),
        ("--in a=a.npy --out z=z.npy", 1, "the program has no array 'z'"),
        ("--in a=a.npy --out a=/nix/z.npy", 1, "cannot write /nix/z.npy"),
        ("--out a", 1, "'a' is not NAME=FILE.npy"),
        ("--program steps", 3, "no program of this bundle is for 3 ranks; there are some for 1, 2"),
        ("--program other", 1, "this bundle has no program 'other'"),
        ("", 2, "The checks start their own ranks, and this is one of several"),
    ],
)
def test_what_a_run_on_files_lacks_is_told(
    bundle: Path, bare: dict[str, str], files: Path, arguments: str, ranks: int, said: str
) -> None:
    done = run_on_files(bundle, bare, files, arguments, ranks=ranks)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_value_and_a_copy_too_many_are_found(
    bundle: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    """The answers in the bundle are others than the program's, and so is the plan."""
    wrong = tmp_path / "wrong"
    subprocess.run(["cp", "-r", str(bundle), str(wrong)], check=True)
    answers = Bundle.at(wrong).arrays(NAME, "out")
    answers["a"][3, 4] = np.nextafter(answers["a"][3, 4], 9)
    with zipfile.ZipFile(wrong / CASES) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    data = BytesIO()
    np.save(data, answers["a"])
    members[f"{NAME}/out/a.npy"] = data.getvalue()
    with zipfile.ZipFile(wrong / CASES, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    index = json.loads((wrong / "bundle.json").read_text())
    index["cases"][0]["copies"][0][3] += 8
    (wrong / "bundle.json").write_text(json.dumps(index))
    found = run(wrong, bare, tmp_path / "out", "--only", "values,copies")
    assert found["code"] == 1
    said = {row["said"] for row in found["parts"]["values"]["rows"]}
    assert {words.partition(":")[0] for words in said} == {
        "1 of 600 elements of a differ, first at [3, 4]"
    }
    assert [row["case"] for row in found["parts"]["copies"]["rows"]] == [NAME] * 2
    assert "first at [3, 4]" in found["printed"]


def test_what_a_real_driver_refuses_is_told(
    bundle: Path, bare: dict[str, str], tmp_path: Path
) -> None:
    """A stand-in for NVIDIA's, which takes one kernel alone: no program is right, all are told."""
    driver = tmp_path / "driver"
    fake = SOURCES / "fake_cuda.c"
    flags = ["-shared", "-I", ".", "-o", "libcuda.so.1", str(fake)]
    assert built(flags, write_sources(driver)) == ""
    mine = bare | {"LD_LIBRARY_PATH": str(driver)}
    found = run(bundle, mine, tmp_path / "out", "--only", "present,values", driver="cuda")
    assert found["code"] == 1
    assert found["machine"]["device"]["name"] == "Fake GPU"
    assert found["machine"]["device"]["capability"] == 90
    values = found["parts"]["values"]
    assert [row["case"] for row in values["rows"]] == [NAME]
    assert "the driver does not take the kernels" in values["rows"][0]["said"]


@pytest.mark.slow
def test_the_race_is_rehearsed_with_numpy(bare: dict[str, str], tmp_path: Path) -> None:
    """The same programs small, on the emulated device: their answers, and that there are times."""
    program = tmp_path / "steps.mlir"
    program.write_text(STEPS)
    contents = pack(tmp_path / "b", [str(program)], ranks=(1,), race=True, pythons=())
    assert not contents.refused
    race = run(tmp_path / "b", bare, tmp_path / "out", "--only", "race")["parts"]["race"]
    assert race["state"] == "done"
    known = {racer.name for racer in contents.racers if racer.rehearsal and racer.on_device}
    assert {row["racer"] for row in race["rows"]} == known
    assert all(row["ok"] and row["agree"] and row["peer_s"] > 0 for row in race["rows"])


def test_kernels_are_packed_small_and_for_more_blocks_than_one() -> None:
    names = [wish.name for wish in wishes(["kernels/gemm"], (1, 2), None)]
    assert names == [
        "gemm/f32/1", "gemm/f32/2", "gemm/f64/1", "gemm/f64/2", "gemm/f32 small/1",
    ]  # fmt: skip
    assert [wish.name for wish in wishes(["gemm"], (3,), "LARGE")] == [
        "gemm/f32 large/3", "gemm/f64 large/3",
    ]  # fmt: skip


def test_a_python_without_numpy_is_told(bundle: Path) -> None:
    command = [PYTHON, "-S", "-s", str(bundle / "run.py")]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "NumPy is needed, and this Python has none\n")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BindError, match="holds something that is no bundle"):
        pack(tmp_path, ["steps.mlir"])
    assert (tmp_path / "thesis.tex").exists()
