"""A folder that runs where nothing is installed: programs, what runs them, MPI.

Programs, ranks, a folder -> the folder, filled (`runtime/bare/contents.py` says with what).
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import avial_lab
from avial_lab.benchmarks.kernel_suite import is_kernel, kernel_names, kernel_program
from avial_lab.bundle.elsewhere import CONTAINER, Job
from avial_lab.bundle.race_programs import RACES, Race
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.core.device_arrays import stand_ins
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import AvialError, BindError
from avial_lab.core.toolchain import tool
from avial_lab.core.version import version
from avial_lab.machine.presets import GPUS, gpu_node
from avial_lab.program import compilation
from avial_lab.program.inputs import Scalar, allocate_missing, random_arguments
from avial_lab.program.program import Program
from avial_lab.program.where import topology_on
from avial_lab.runtime.bare.contents import (
    DEVICES,
    INDEX,
    LIB,
    MPI,
    Case,
    Contents,
    Made,
    Packed,
    Packing,
    Racer,
    by_places,
)
from avial_lab.runtime.launch.hosts import Slurm
from avial_lab.runtime.native import sources
from avial_lab.trace import EventKind

CPU = "x86-64-v3"
"""What machines with GPUs have, and more; not AVX-512, which some lack."""

FOLDERS = ("core", "machine", "trace", "planning", "artifact", "runtime/native", "runtime/rank",
           "runtime/bare")  # fmt: skip
"""Of the package: what neither MLIR nor Jupyter is needed for, by the contracts on imports."""

RUN = '''"""Check and race what is in this folder: python3 run.py --minutes 8 -o OUT

Run a program of it: mpiexec -n 2 python3 run.py --in a=a.npy --out b=b.npy --trace t.json
"""

import importlib.util
import sys
from pathlib import Path

if sys.version_info < (3, 10):
    sys.exit(f"Python 3.10 or newer is needed, and this is {sys.version.split()[0]}")
if importlib.util.find_spec("numpy") is None:
    sys.exit("NumPy is needed, and this Python has none")
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))

from avial_lab.runtime.bare.main import main  # noqa: E402

sys.exit(main())
'''

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""Those whose mpi4py is packed, 2 MB each."""

TASKS = tuple(
    Path(__file__).with_name(name)
    for name in ("tasks.avial", "launches.avial", "elementary.mlir", "others.mlir", "warps.mlir")
)
"""Programs beside the kernels: of tasks for CPUs and GPUs, of elementary functions, and of kernels
as other compilers write them.
"""

_MIB = 1 << 20
MOST_BYTES = 64 * _MIB


@dataclass(frozen=True)
class Wish:
    """A program that is to be packed, in one element type. on: `gpu` for ranks that drive a GPU
    each, and with answers; `cpu` for runs on files alone. size: of a kernel.
    """

    program: str
    element: str
    ranks: int
    size: str = "MINI"
    on: str = "gpu"

    @property
    def name(self) -> str:
        stem = Path(self.program).stem
        size = "" if self.size == "MINI" else f" {self.size.lower()}"
        on = "" if self.on == "gpu" else f" on {self.on}"
        return f"{stem}/{self.element or 'own'}{size}/{self.ranks}{on}"


@dataclass(frozen=True)
class Given:
    """What named programs are given: arrays (their shapes count, and they are the inputs of
    checks), numbers, the function of a file with several. cpu: what machine code is made for.
    ranks_per_node: of programs on CPUs; None: all on one.
    """

    arrays: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    numbers: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    function: str | None = None
    cpu: str = CPU
    ranks_per_node: int | None = None


def wishes(
    programs: Sequence[str],
    ranks: Sequence[int],
    size: str | None,
    *,
    on: Sequence[str] = ("gpu",),
) -> Iterator[Wish]:
    """For each in f32 and f64, as far as it has them; all kernels, and on GPUs `TASKS`, where none
    is named. Without a size it is the smallest, and the next one for one rank, which needs several
    blocks of threads.
    """
    for kind in on:
        tasks = map(str, TASKS) if kind == "gpu" else ()
        named = programs or (*tasks, *kernel_names())
        every = _wishes(named, ranks, size if kind == "gpu" else size or "MINI")
        yield from (replace(wish, on=kind) for wish in every)


def _wishes(programs: Sequence[str], ranks: Sequence[int], size: str | None) -> Iterator[Wish]:
    for program in programs:
        if not is_kernel(program):
            yield from (Wish(program, "", count) for count in ranks)
            continue
        elements = kernel_program(program, size="MINI").kernel.elements
        chosen = [element for element in ("f32", "f64") if element in elements] or elements[:1]
        every = [(element, count) for element in chosen for count in ranks]
        yield from (Wish(program, *each, size=size or "MINI") for each in every)
        if size is None and 1 in ranks:
            yield Wish(program, chosen[0], 1, "SMALL")


def pack(
    folder: Path,
    programs: Sequence[str] = (),
    *,
    ranks: Sequence[int] = (1, 2),
    size: str | None = None,
    on: Sequence[str] = (),
    given: Given | None = None,
    seed: int = 0,
    race: bool | None = None,
    pythons: Sequence[str] = PYTHONS,
    job: Job | None = None,
    command: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> Contents:
    """Fills `folder`, which is made or was a bundle before. size: of kernels (`wishes`). on: by
    default `gpu`, and where programs are named `cpu` too. race: with the race's programs too, by
    default where no program is named. pythons: those that are to start several ranks. What cannot
    be compiled is named in `Contents.refused`.

    Raises BindError where the folder holds something else, and AvialError where it gets too large.
    """
    _empty(folder)
    _copy_package(folder / LIB)
    _copy_mpi(folder / MPI, pythons, say)
    _build_devices(folder / DEVICES)
    (folder / "run.py").write_text(RUN, encoding="utf-8")
    (folder / "Dockerfile").write_text(CONTAINER, encoding="utf-8")
    if job is not None:
        (folder / "job.sh").write_text(job.script(max(ranks)), encoding="utf-8")
        (folder / "job.sh").chmod(0o755)
    given = given or Given()
    packing = Packing(folder)
    cases: list[Case] = []
    forms: list[Packed] = []
    refused: dict[str, str] = {}
    for wish in wishes(programs, ranks, size, on=on or (("cpu", "gpu") if programs else ("gpu",))):
        try:
            if wish.on == "gpu":
                cases.append(_packed_case(packing, wish, given, seed=seed))
            else:
                forms.append(_packed(packing, wish, given, seed=seed))
            say(f"{wish.name}: packed")
        except AvialError as error:
            refused[wish.name] = error.message
            say(f"{wish.name}: {error.message}")
    racers: list[Racer] = []
    for race_, element, rehearsal in _races() if race or (race is None and not programs) else ():
        name = _race_name(race_, element, rehearsal=rehearsal)
        try:
            racers.append(_packed_race(packing, race_, element, rehearsal=rehearsal))
            say(f"{name}: packed")
        except AvialError as error:
            refused[name] = error.message
            say(f"{name}: {error.message}")
    placed = ""
    if racers or not programs:
        placed = IN_PLACE
        packing.add_binary(placed, _in_place().binary)
    made = Made(_commit(), time.strftime("%Y-%m-%d", time.gmtime()), version(), command, given.cpu)
    contents = Contents(made, tuple(cases), tuple(racers), refused, tuple(forms), placed)
    packing.close(contents)
    total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    say(
        f"{len(cases) + len(forms)} programs, {len(cases)} of them with answers to check, "
        f"{len(racers)} to race; {total / _MIB:.1f} MiB in {folder}"
    )
    if total > MOST_BYTES:
        raise AvialError(
            f"the bundle has {total / _MIB:.0f} MiB, more than {MOST_BYTES // _MIB}",
            hint="pack fewer programs, or smaller ones (--size MINI)",
        )
    return contents


def _empty(folder: Path) -> None:
    if folder.exists():
        if any(folder.iterdir()) and not (folder / INDEX).exists():
            raise BindError(
                f"{folder} holds something that is no bundle", hint="name another folder"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / INDEX).write_text("{}", encoding="utf-8")  # ours, also where packing breaks off


# Programs -----------------------------------------------------------------------------------------


def _packed(packing: Packing, wish: Wish, given: Given, *, seed: int) -> Packed:
    program = _program(wish, given, seed)
    packing.add_binary(wish.name, program.binary)
    ranks = program.binary.manifest.ranks
    return Packed(wish.name, wish.program, wish.element, ranks, wish.on)


def _packed_case(packing: Packing, wish: Wish, given: Given, *, seed: int) -> Case:
    program = _program(wish, given, seed)
    arrays = {name: array.copy() for name, array in program.arrays.items()}
    answers = program.answers()
    packing.add_binary(wish.name, program.binary)
    packing.add_arrays(wish.name, "in", arrays)
    packing.add_arrays(wish.name, "out", answers.arrays)
    plan, manifest = program.plan, program.binary.manifest
    return Case(
        name=wish.name,
        program=wish.program,
        element=wish.element,
        ranks=manifest.ranks,
        gpus=len(manifest.drivers),
        allowed=answers.allowed,
        copies=by_places(plan.copies),
        sent_bytes=plan.bytes_moved if program.of_loops and plan.complete else None,
        note="" if manifest.drivers else "nothing of it runs on a device",
    )


def _program(wish: Wish, given: Given, seed: int) -> Program:
    how = _how(wish, given)
    if is_kernel(wish.program):
        kernel = kernel_program(
            wish.program, size=wish.size, element=wish.element, seed=seed, numbers=given.numbers
        )
        kernel.replace(given.arrays)
        return compilation.compile(
            kernel.text,
            arrays=kernel.arrays,
            scalars=kernel.scalars,
            function=kernel.function,
            name=wish.program,
            **how,
        )
    path = Path(wish.program)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BindError(f"cannot read {path}: {error.strerror}") from None
    given_too = {"arrays": given.arrays, "scalars": given.numbers, "cell": str(path)}
    if holds_schedule(text):
        graph = compilation.analyse(text, **given_too).graph
        given_too["arrays"] = allocate_missing(graph, given.arrays)
    else:
        made = random_arguments(text, function=given.function, seed=seed, **given_too)
        given_too |= {"arrays": made.arrays, "scalars": made.scalars, "function": given.function}
    return compilation.compile(text, name=path.stem, **given_too, **how)


def _how(wish: Wish, given: Given) -> dict[str, Any]:
    """The machine that it is compiled for."""
    target = {"cpu_target": given.cpu}
    if wish.on == "gpu":
        return {"ranks": wish.ranks, "gpus": wish.ranks, "on": "gpu", **target}
    if given.ranks_per_node is None:
        return {"ranks": wish.ranks, **target}
    nodes = Slurm(-(-wish.ranks // given.ranks_per_node), given.ranks_per_node)
    return {"topology": topology_on(nodes, wish.ranks), **target}


IN_PLACE = "in place"


def _in_place() -> Program:
    """Of arrays that lie on the first GPU."""
    arrays = stand_ins({name: np.empty(1 << 20, np.float32) for name in "xy"})
    text = (Path(__file__).with_name("in_place.mlir")).read_text(encoding="utf-8")
    return compilation.compile(text, arrays=arrays, on="gpu", cpu_target=CPU)


def _races() -> Iterator[tuple[Race, str, bool]]:
    for rehearsal in (False, True):
        yield from (
            (race, element, rehearsal)
            for race in RACES
            for element in ("f32", "f64")
            if (race.kind, element) != ("launch", "f64")
        )


def _race_name(race: Race, element: str, *, rehearsal: bool) -> str:
    return f"race/{race.kind} {element}{' small' * rehearsal}"


def _packed_race(packing: Packing, race: Race, element: str, *, rehearsal: bool) -> Racer:
    large = race.large if element == "f32" else race.large_f64
    size = race.small if rehearsal else large
    shapes, dtype = race.shapes(size), dtype_of_element(element)
    arrays = {name: np.empty(shape, dtype) for name, shape in shapes.items()}
    turns = (20, 2) if rehearsal else race.turns
    name = _race_name(race, element, rehearsal=rehearsal)
    on_device = True
    predicted: dict[str, float] = {}
    for count in turns:
        program = compilation.compile(
            race.text(element, size, count), arrays=arrays, ranks=1, on="gpu", cpu_target=CPU
        )
        packing.add_binary(f"{name}/{count}", program.binary)
        on_device = on_device and bool(program.binary.manifest.drivers)
        if on_device and not rehearsal and count == min(turns):
            predicted = _predicted(program, count)
    largest = max(array.nbytes for array in arrays.values())
    return Racer(
        name=name,
        peer=race.peer,
        kind=race.kind,
        element=element,
        arrays={key: (shape, dtype.str) for key, shape in shapes.items()},
        turns=turns,
        bytes=race.sweeps * largest,
        launches=race.launches,
        rehearsal=rehearsal,
        whole=race.whole,
        on_device=on_device,
        predicted_s=predicted,
    )


def _predicted(program: Program, turns: int) -> dict[str, float]:
    """Seconds of a turn's kernels, as the planner has them on each card."""
    found: dict[str, float] = {}
    for card in GPUS:
        totals = program.predicted(gpu_node(card, 1)).totals
        tasks = sum(total.seconds for total in totals if total.kind is EventKind.TASK)
        found[card] = tasks / turns
    return found


# What runs them -----------------------------------------------------------------------------------


def _copy_package(lib: Path) -> None:
    root = Path(avial_lab.__file__).parent
    package = lib / "avial_lab"
    package.mkdir(parents=True)
    for file in (root / "__init__.py", root / "runtime" / "__init__.py"):
        to = package / file.relative_to(root)
        to.parent.mkdir(exist_ok=True)
        shutil.copy(file, to)
    for folder in FOLDERS:
        shutil.copytree(root / folder, package / folder, ignore=_left_out)


def _left_out(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or name.endswith((".pyc", ".c", ".h"))]


def _build_devices(to: Path) -> None:
    """The drivers as a library of their own, for what is tried without a program."""
    with tempfile.TemporaryDirectory() as folder:
        sources.write(sources.texts("devices"), Path(folder))
        command = [
            str(tool("cc")), "-O2", "-fPIC", "-std=c11", f"-march={CPU}", "-shared",
            "-o", str(to.resolve()), sources.MAIN["devices"], "-ldl",
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
    if done.returncode:
        raise AvialError(f"the drivers could not be built:\n{done.stderr[-2000:]}")


def _copy_mpi(to: Path, pythons: Sequence[str], say: Callable[[str], None]) -> None:
    """MPICH as its wheel put it here, without what only builds need, and mpi4py: this Python's own,
    and for others from the registry.
    """
    root = Path(sys.prefix)
    if not (root / "lib" / "libmpi.so.12").exists():
        raise AvialError(
            "MPICH's wheel is not installed here, which bundles take MPI from",
            hint="pip install mpich",
        )
    (to / "bin").mkdir(parents=True)
    for name in ("mpiexec.hydra", "hydra_pmi_proxy"):
        shutil.copy(root / "bin" / name, to / "bin" / name.removesuffix(".hydra"))
    (to / "lib").mkdir()
    shutil.copy(root / "lib" / "libmpi.so.12", to / "lib")
    shutil.copytree(root / "lib" / "mpich", to / "lib" / "mpich")
    for python in dict.fromkeys((_HERE, *pythons)):
        packages = to / f"py{python.replace('.', '')}"
        if python == _HERE:
            found = Path(importlib.import_module("mpi4py").__path__[0])
            shutil.copytree(found, packages / "mpi4py", ignore=_left_out)
        elif refusal := _fetch_mpi4py(python, packages):
            say(f"without mpi4py for Python {python}, where programs get one rank: {refusal}")
        for path in [*packages.rglob("*openmpi*"), *packages.rglob("include")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


_HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def _fetch_mpi4py(python: str, to: Path) -> str:
    """Its wheel, unpacked; why not, where it could not be had."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            _download(python, folder), capture_output=True, encoding="utf-8", check=False
        )
        found = sorted(Path(folder).glob("mpi4py-*.whl"))
        if done.returncode or not found:
            return (done.stderr.strip().splitlines() or ["pip found none"])[-1]
        shutil.unpack_archive(found[0], to, "zip")
    return ""


def _download(python: str, folder: str) -> list[str]:
    return [
        sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
        "--only-binary", ":all:", "--python-version", python, "--implementation", "cp",
        "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_17_x86_64",
        "--platform", "manylinux_2_5_x86_64", "-d", folder, "mpi4py>=4.1,<5",
    ]  # fmt: skip


def _commit() -> str:
    root = Path(avial_lab.__file__).parent.parent
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return avial_lab.__version__
