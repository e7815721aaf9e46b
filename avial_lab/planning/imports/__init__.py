"""Other people's task graphs: WfFormat (JSON), STG, Chrome traces.

Path -> Workflow. None of them needs the compiler.
"""

from __future__ import annotations

from pathlib import Path

from avial_lab.core.errors import AvialError
from avial_lab.core.json_file import read_json
from avial_lab.planning.imports.chrome import trace_graph
from avial_lab.planning.imports.stg import stg_graph
from avial_lab.planning.imports.wfformat import wfformat_graph
from avial_lab.planning.imports.workflow import Workflow

__all__ = ["NOT_READ", "Workflow", "load_graph"]

NOT_READ = (".dot", ".gv", ".dax")
"""Endings of task graphs in other forms (DOT, whose sizes have no unit; Pegasus' XML)."""

_KNOWN = "known are WfFormat (a 'workflow'), Chrome traces ('traceEvents'), and STG (text)"


def load_graph(path: str | Path) -> Workflow:
    """The task graph in that file, with the times given in it; the file's form is seen from what
    it holds.

    Raises AvialError for what is none of them, for cycles, for a file that is made twice, and for
    times that are none.
    """
    path = Path(path)
    if path.suffix in NOT_READ:
        raise AvialError(f"{path} is no task graph that is known", hint=_KNOWN)
    if path.suffix != ".json":
        return stg_graph(path)
    found = read_json(path, lists=True)
    if "workflow" in found:
        return wfformat_graph(found, path)
    if "traceEvents" in found:
        return trace_graph(found["traceEvents"], path)
    raise AvialError(f"{path} is no task graph that is known", hint=_KNOWN)
