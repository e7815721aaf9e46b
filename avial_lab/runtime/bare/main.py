"""`python3 run.py --minutes 8 -o OUT`: every part in its turn, each with its own time.

What is asked to read or write arrays runs a program instead (`file_run.py`).

A bundle -> OUT/results.json, whole at any moment, and a table on the screen.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from avial_lab.core.command_line import NearestWords
from avial_lab.core.errors import AvialError
from avial_lab.runtime.bare import file_run
from avial_lab.runtime.bare.children import Ended, environment, has_mpi, ranks_command, run_child
from avial_lab.runtime.bare.contents import LIB, Bundle, Case
from avial_lab.runtime.bare.faults import FAULTS, Fault, judged
from avial_lab.runtime.bare.report import Report
from avial_lab.runtime.bare.table import table
from avial_lab.runtime.rank.copies import copies
from avial_lab.runtime.rank.device_messages import VARIABLE as WAY

PACKAGE = "avial_lab.runtime.bare"

PATIENCE_S = 30.0
"""How long a case may take before its ranks are ended."""

FAULT_S = 20.0
ENDLESS_S = 6.0


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    refusal = _unfit()
    if refusal:
        print(refusal, file=sys.stderr)
        return 2
    folder = Path(__file__).resolve().parents[4]
    if file_run.wanted(arguments):
        return file_run.main(folder, arguments, _usual_driver())
    parser = NearestWords(
        description="Check and race what this bundle has.",
        epilog="With --in, --out, --trace or --program it runs a program on arrays from files: "
        "mpiexec -n 2 python3 run.py --in a=a.npy --out b=b.npy --trace t.json; "
        "run.py --program NAME --help says more.",
    )
    parser.add_argument("--minutes", type=float, default=8.0, help="for all of it together")
    parser.add_argument("-o", "--output", type=Path, default=Path("results"), metavar="OUT")
    parser.add_argument("--driver", choices=("cuda", "apart"), help="default: cuda where there is")
    parser.add_argument("--only", default="", metavar="PARTS", help=f"of {', '.join(PARTS)}")
    options = parser.parse_args(arguments)
    chosen = [name for name in options.only.split(",") if name] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}'; there are {', '.join(PARTS)}")
    if copies()[0] > 1:
        print(
            "The checks start their own ranks, and this is one of several. A program is run with "
            "--in NAME=FILE.npy, --out NAME=FILE.npy, --trace FILE.json or --program NAME.",
            file=sys.stderr,
        )
        return 2
    try:
        bundle = Bundle.at(folder)
    except AvialError as error:
        print(error, file=sys.stderr)
        return 2
    driver = options.driver or _usual_driver()
    command = f"python3 run.py --minutes {options.minutes:g} --driver {driver}"
    made = {**asdict(bundle.contents.made), "command": command}
    try:
        report = Report(options.output, made)
    except OSError as error:
        print(f"{options.output} cannot be made: {error.strerror}", file=sys.stderr)
        return 2
    run = _Run(bundle, driver, report, time.monotonic() + 60 * options.minutes)
    for name, part in PARTS.items():
        run.begin(name, part, wanted=name in chosen)
    if bundle.contents.refused:
        report.facts["refused"] = dict(bundle.contents.refused)
    report.save()
    print(table(report.facts))
    print(f"\nall of it: {report.path}")
    return 0 if all(_well(part) for part in report.facts["parts"].values()) else 1


def _well(part: dict[str, Any]) -> bool:
    return part["state"] != "failed" and all(row.get("ok", True) for row in part["rows"])


def _unfit() -> str:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"the programs in here are for Linux on x86-64, not {platform.platform()}"
    return ""


def _usual_driver() -> str:
    try:
        return "cuda" if ctypes.CDLL("libcuda.so.1") else "apart"
    except OSError:
        return "apart"


@dataclass
class _Run:
    bundle: Bundle
    driver: str
    report: Report
    deadline: float
    limit: float = 0.0
    part: str = ""

    @property
    def left(self) -> float:
        """Seconds of the part."""
        return self.limit - time.monotonic()

    def begin(self, name: str, part: _Part, *, wanted: bool) -> None:
        self.part = name
        self.report.put(name, what=part.what)
        if not wanted:
            return
        now = time.monotonic()
        room = self.deadline - now
        self.limit = now + min(part.share * room, part.most_s)
        if self.left < 2:
            return
        state = "failed"
        try:
            state = part.run(self)
        except Exception as error:  # the other parts are still to be run
            self.report.put(name, error=f"{type(error).__name__}: {error}")
        finally:
            seconds = round(time.monotonic() - now, 2)
            self.report.put(name, state=state, seconds=seconds)
            print(f"{name}: {state}, {seconds:.1f} s", flush=True)

    def child(
        self,
        command: Sequence[str],
        seconds: float,
        told: Callable[[dict[str, Any]], None],
        *,
        patience: float = 1e9,
        variables: Mapping[str, str] | None = None,
    ) -> Ended:
        limit = min(seconds, self.left)
        folder = self.bundle.folder
        where = environment(folder, variables or {})
        return run_child(command, limit, told, where, cwd=folder / LIB, patience=patience)

    def module(self, name: str, *arguments: str) -> list[str]:
        return ranks_command(
            self.bundle.folder, 1, f"{PACKAGE}.{name}", str(self.bundle.folder), self.driver,
            *arguments,
        )  # fmt: skip


# The parts ----------------------------------------------------------------------------------------


def _present(run: _Run) -> str:
    found: dict[str, Any] = {}
    ended = run.child(run.module("present"), run.left, found.update)
    run.report.facts["machine"] = found.get("machine", {"device": {"missing": ended.words}})
    run.report.save()
    if "machine" not in found:
        run.report.put(run.part, error=f"{ended.words}\n{ended.printed}".strip())
        return "failed"
    return "failed" if "missing" in found["machine"]["device"] else "done"


def _cases(run: _Run, seeds: Sequence[int], *, ranks: Callable[[Case], bool], way: str = "") -> str:
    cases = [case for case in run.bundle.contents.cases if ranks(case)]
    if any(case.ranks > 1 for case in cases) and not has_mpi(run.bundle.folder):
        run.report.put(run.part, error=f"no mpi4py for Python {platform.python_version()} in here")
        return "left out"
    missing: list[str] = []
    for seed in seeds:
        for count in sorted({case.ranks for case in cases}):
            names = [case.name for case in cases if case.ranks == count]
            missing += _through(run, names, count, seed, way)
    run.report.put(run.part, not_run=missing)
    if not cases:
        return "left out"
    return "cut short" if missing else "done"


def _through(run: _Run, names: Sequence[str], ranks: int, seed: int, way: str) -> list[str]:
    """Runs the cases; where one ends the ranks, the others are run by new ones. Returns those that
    there was no time for. way: that messages between GPUs go; empty: as a self-test of today says.
    """
    waiting = list(names)
    while waiting and run.left > 1:
        begun: list[str] = []

        def hear(fact: dict[str, Any], begun: list[str] = begun) -> None:
            if "began" in fact:
                begun.append(fact["began"])
            elif "case" in fact:
                begun.clear()
                waiting.remove(fact["case"])
                run.report.add(run.part, {"seed": seed, **fact})

        command = ranks_command(
            run.bundle.folder, ranks, f"{PACKAGE}.values", str(run.bundle.folder), run.driver,
            str(seed), ",".join(waiting),
        )  # fmt: skip
        before = len(waiting)
        cache = run.report.path.parent.resolve() / "cache"
        more = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", WAY: way, "XDG_CACHE_HOME": str(cache)}
        ended = run.child(command, run.left, hear, patience=PATIENCE_S, variables=more)
        if ended.late and run.left < 1:
            break
        if begun and begun[0] in waiting:
            waiting.remove(begun[0])
            said = f"{ended.words}\n{ended.printed}".strip()
            row = {"seed": seed, "case": begun[0], "ok": False, "said": said}
            run.report.add(run.part, row)
        elif len(waiting) == before:
            raise RuntimeError(f"{ranks} ranks did not come up: {ended.words}\n{ended.printed}")
    return waiting


def _values(run: _Run) -> str:
    seeds = (0,) if run.driver == "cuda" else (0, 7)
    return _cases(run, seeds, ranks=lambda case: case.ranks == 1)


def _two_ranks(run: _Run) -> str:
    """First the way between GPUs that the self-test allows, then through the hosts' memory."""
    for way in ("", "host"):
        state = _cases(run, (0,), ranks=lambda case: case.ranks > 1, way=way)
        if state != "done":
            break
    rows = run.report.facts["parts"][run.part]["rows"]
    run.report.put(run.part, ways=list(dict.fromkeys(filter(None, (r.get("way") for r in rows)))))
    _count_copies(run, run.part)
    return state


def _copies(run: _Run) -> str:
    """Of what has been run on one rank."""
    return "done" if _count_copies(run, "values") else "left out"


def _count_copies(run: _Run, part: str) -> int:
    """Tells what the runs of a part copied, and those that copied or sent something else than was
    planned; how many runs there are.
    """
    rows = [row for row in run.report.facts["parts"][part]["rows"] if "copies" in row]
    planned = {case.name: case for case in run.bundle.contents.cases}
    for row in rows:
        if row["copies_as_planned"] and row["sent_as_planned"]:
            continue
        case = planned[row["case"]]
        said = (
            f"copied {row['copies']} and sent {row['sent_bytes']} bytes; planned are "
            f"{list(case.copies)} and {case.sent_bytes}"
        )
        run.report.add(run.part, {"case": row["case"], "ok": False, "said": said})
    nbytes = sum(copy[3] for row in rows for copy in row["copies"])
    copies = sum(copy[2] for row in rows for copy in row["copies"])
    sent = sum(row["sent_bytes"] for row in rows)
    run.report.put(run.part, runs=len(rows), copies=copies, copied_bytes=nbytes, sent_bytes=sent)
    return len(rows)


def _in_place(run: _Run) -> str:
    if not run.bundle.contents.in_place:
        return "left out"
    missing: list[str] = []

    def hear(fact: dict[str, Any]) -> None:
        if "missing" in fact:
            missing.append(fact["missing"])
        else:
            run.report.add(run.part, fact)
        run.report.put(run.part, not_there=missing)

    ended = run.child(run.module("in_place"), run.left, hear)
    if not run.report.facts["parts"][run.part]["rows"]:
        run.report.put(run.part, error=f"{ended.words}\n{ended.printed}".strip())
        return "left out" if missing else "failed"
    return "cut short" if ended.late else "done"


def _faults(run: _Run) -> str:
    waits: list[str] = []
    missing: list[str] = []
    for fault in FAULTS:
        if fault.real and run.driver != "cuda":
            waits.append(fault.what)
        elif run.left < 2:
            missing.append(fault.what)
        else:
            run.report.add(run.part, _fault(run, fault))
            if fault.spoils:
                run.report.add(run.part, _afterwards(run, fault))
    run.report.put(run.part, waits_for_hardware=waits, not_run=missing)
    return "cut short" if missing else "done"


def _fault(run: _Run, fault: Fault) -> dict[str, Any]:
    told: list[dict[str, Any]] = []
    began = time.monotonic()
    seconds = ENDLESS_S if fault.endless else FAULT_S
    command = run.module("faults", fault.name)
    ended = run.child(command, seconds, told.append, variables=dict(fault.environment))
    words = f"{ended.words} {ended.printed[-600:]}".strip()
    facts = judged(fault, told, ended.late, words)
    return {"fault": fault.what, **facts, "seconds": round(time.monotonic() - began, 2)}


def _afterwards(run: _Run, fault: Fault) -> dict[str, Any]:
    """A program in a new process is right again: nobody else notices a fault."""
    name = next((c.name for c in run.bundle.contents.cases if c.ranks == 1 and c.copies), "")
    heard: list[dict[str, Any]] = []
    began = time.monotonic()
    command = run.module("values", "0", name)
    ended = run.child(command, FAULT_S, heard.append)
    well = any(fact.get("ok") for fact in heard)
    said = "a program afterwards is right" if well else f"{heard} {ended.words} {ended.printed}"
    seconds = round(time.monotonic() - began, 2)
    return {"fault": f"after {fault.what}", "ok": well, "said": said, "seconds": seconds}


def _race(run: _Run) -> str:
    if not run.bundle.contents.racers:
        return "left out"
    state: dict[str, Any] = {"notes": [], "not_run": [], "on_cpu": [], "bandwidth": {}}

    def hear(fact: dict[str, Any]) -> None:
        if "racer" in fact:
            row = {"ok": "failed" not in fact, **fact}
            run.report.add(run.part, row)
        elif "bandwidth" in fact:
            state["bandwidth"][fact["bandwidth"]] = fact["bytes_per_s"]
        elif "note" in fact:
            state["notes"].append(fact["note"])
        elif "left" in fact:
            state["not_run"].append(fact["left"])
        elif "on_cpu" in fact:
            state["on_cpu"].append(fact["on_cpu"])
        state["began"] = fact.get("began", "")
        run.report.put(run.part, **state)

    seconds = max(run.left - 10, 1)
    ended = run.child(run.module("race", f"{seconds:.0f}"), run.left, hear)
    if state.pop("began", ""):
        run.report.put(run.part, error=f"{ended.words}\n{ended.printed}".strip())
    if not run.report.facts["parts"][run.part]["rows"]:
        run.report.put(run.part, error=f"{ended.words}\n{ended.printed}".strip())
        return "failed"
    return "cut short" if ended.late or state["not_run"] else "done"


@dataclass(frozen=True)
class _Part:
    """share: of the time that is left when it begins, at most."""

    what: str
    run: Callable[[_Run], str]
    share: float
    most_s: float = 1e9


PARTS: dict[str, _Part] = {
    "present": _Part("what is there", _present, 0.5, 40),
    "values": _Part("values of all programs against the stored answers", _values, 0.35, 120),
    "copies": _Part("copies and bytes, counted and planned", _copies, 0.5),
    "arrays": _Part("arrays of CuPy and PyTorch, used where they lie", _in_place, 0.3, 60),
    "ranks": _Part("two ranks on one GPU", _two_ranks, 0.35, 90),
    "faults": _Part("faults, each in a process of its own", _faults, 0.45, 120),
    "race": _Part("the race against CuPy", _race, 0.98),
}
