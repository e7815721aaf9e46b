"""avial_lab's clusters on this machine: which there are, whose they are, and how to end one.

Folders -> Records. A cluster's folder holds everything of it and is its record: it goes with it.

    TMPDIR/avial-cluster-ID-XXXXXXXX/    0700
        cluster.json        this record, written by its owner when the engines are up
        guardian.socket     who would own it, or end it, asks there (guardian.py)
        left                it has no owner now, and until when it waits for one
        profile/ …          controller and engines; what the ranks are doing (journal.py)
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from avial_lab.core.errors import ClusterError
from avial_lab.core.words import brief, rough_seconds
from avial_lab.runtime.launch.guardian import LEFT, end_from_outside
from avial_lab.runtime.launch.hosts import Machine, this_machine
from avial_lab.runtime.launch.processes import is_alive, kill_all, private_folder

PREFIX = "avial-cluster-"
_FILE = "cluster.json"


@dataclass(frozen=True)
class Known:
    """A process, distinguished from a later one of the same id."""

    pid: int
    born_s: float

    @classmethod
    def of(cls, process: psutil.Process) -> Known:
        return cls(process.pid, process.create_time())

    def found(self) -> psutil.Process | None:
        """The process, where it is still there."""
        try:
            process = psutil.Process(self.pid)
            return process if is_alive(process) and process.create_time() == self.born_s else None
        except psutil.NoSuchProcess:
            return None


@dataclass(frozen=True)
class Record:
    """A cluster: `launchers` are mpiexec and the controller, `engines` the ranks on that machine.

    `owner_name` is what its owner is to a user: a notebook, a script. machine: where the
    processes are that it names. `nodes`: where its ranks are.
    """

    id: str
    folder: Path
    gpus: int
    keep_s: float
    timeout_s: float
    started_s: float
    owner: Known
    owner_name: str
    launchers: tuple[Known, ...]
    engines: tuple[Known, ...]
    ranks: int
    machine: Machine = field(default_factory=this_machine)
    hub: Known | None = None
    controller: Known | None = None
    where: dict[str, Any] | None = None
    lease_s: float = 0.0
    nodes: tuple[str, ...] = ()

    @property
    def here(self) -> bool:
        """Whether its launchers are on this machine, since its last boot: only then its process
        ids say something. A folder may lie on a file system that others share.
        """
        return self.machine == this_machine()

    @property
    def owned(self) -> bool:
        """Whether it belongs to somebody, who lives; of another machine's nobody here can say."""
        if not self.here:
            return True
        return not (self.folder / LEFT).exists() and self.owner.found() is not None

    @property
    def left_s(self) -> float:
        """Seconds until it ends by itself; infinite as long as it is owned."""
        try:
            return max(0.0, float((self.folder / LEFT).read_text(encoding="utf-8")) - time.time())
        except (FileNotFoundError, ValueError):
            return float("inf")

    def __str__(self) -> str:
        age = rough_seconds(time.time() - self.started_s)
        if not self.here:
            return (
                f"{self.id}  {self.ranks} engines, {age} old, of user {self.machine.user} on "
                f"{self.machine.host}: to be stopped there"
            )
        whose = f"{Path(self.owner_name).name}, pid {self.owner.pid}"
        state = f"owned by {whose}"
        if not self.owned:
            left = self.left_s
            rest = f"; stops automatically in {rough_seconds(left)}" if left < float("inf") else ""
            state = f"abandoned by {whose}{rest}"
        pids = " ".join(str(process.pid) for process in (*self.launchers, *self.engines))
        on = f" on {', '.join(self.nodes)}" if self.hub else ""
        return f"{self.id}  {self.ranks} engines{on}, {age} old, {state}; pids {pids}"

    def __repr__(self) -> str:
        return brief(self, f"of cluster {self}")


def new_folder(cluster_id: str) -> Path:
    """A private folder (0700) for a set of engines of that cluster."""
    return private_folder(f"{PREFIX}{cluster_id}-")


def this_owner() -> tuple[Known, str]:
    """This process, and what it is to a user."""
    name = os.environ.get("JPY_SESSION_NAME") or sys.argv[0] or "python"
    return Known.of(psutil.Process()), name


def write_record(record: Record) -> None:
    """Into the record's folder; a reader sees all of it or nothing."""
    fields = asdict(replace(record, folder=Path())) | {"folder": ""}
    partial = record.folder / f"{_FILE}.partial"
    partial.write_text(json.dumps(fields), encoding="utf-8")
    partial.rename(record.folder / _FILE)


def clusters() -> tuple[Record, ...]:
    """Every cluster of this user on this machine that lives, the oldest first."""
    living = [r for r in _records() if r.here and any(p.found() for p in _processes(r))]
    return tuple(sorted(living, key=lambda record: record.started_s))


def clusters_elsewhere() -> tuple[Record, ...]:
    """Those of this user whose folders are seen here, and whose processes are on other machines.
    Whether they live, only those machines know.
    """
    others = [record for record in _records() if not record.here]
    return tuple(sorted(others, key=lambda record: record.started_s))


def cluster_called(cluster_id: str) -> Record:
    """The one of that id; "" for the only one without an owner."""
    known = clusters()
    if cluster_id:
        fitting = [record for record in known if record.id == cluster_id]
    else:
        fitting = [record for record in known if not record.owned]
    if len(fitting) == 1:
        return fitting[0]
    what = f"no cluster '{cluster_id}'" if cluster_id else f"{len(fitting)} clusters without owner"
    there = "\n".join(map(str, known)) or "there is none"
    raise ClusterError(f"{what}; on this machine:\n{there}", hint="name one of them by its id")


def stop_clusters(records: Iterable[Record]) -> None:
    """No process of theirs is left, nor file."""
    for record in records:
        end_from_outside(record.folder)
        # mpiexec takes its ranks with it, soon; a guardian may have been killed before.
        kill_all([p for known in _processes(record) if (p := known.found()) is not None])
        shutil.rmtree(record.folder, ignore_errors=True)


def remove_traces() -> int:
    """Remove the folders of clusters of this machine that are gone; how many those were."""
    living = {record.folder for record in clusters()}
    gone = [r.folder for r in _records() if r.here and r.folder not in living]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    return len(gone)


def _records() -> list[Record]:
    """What is in the folders of this user; another's could name processes to be killed."""
    found: list[Record] = []
    for parent in dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp"))):
        for file in parent.glob(f"{PREFIX}*/{_FILE}"):
            try:
                if file.parent.stat().st_uid == os.getuid():
                    found.append(_record(file.parent, json.loads(file.read_text(encoding="utf-8"))))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # it is just going, or is no record of this version
    return found


def _record(folder: Path, fields: dict[str, Any]) -> Record:
    fields |= {"folder": folder, "owner": Known(**fields["owner"])}
    fields["machine"] = Machine(**fields["machine"])
    for name in ("launchers", "engines"):
        fields[name] = tuple(Known(**process) for process in fields[name])
    for name in ("hub", "controller"):
        fields[name] = Known(**fields[name]) if fields[name] else None
    fields["nodes"] = tuple(fields["nodes"])
    return Record(**fields)


def _processes(record: Record) -> tuple[Known, ...]:
    return (*record.launchers, *record.engines)
