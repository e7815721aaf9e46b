"""A workbench for distributed heterogeneous programs: drop a computation into a cell, declare its
target, run it.

>>> import avial_lab                                                       # doctest: +SKIP
>>> program = avial_lab.compile(text, arrays=dict(a=a, b=b), ranks=2)      # doctest: +SKIP
>>> program.run()                                                          # doctest: +SKIP

Names are loaded when they are first used: an engine that imports `avial_lab.runtime.rank.engine`
passes through here and must not pull in what it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avial_lab import ptensor as ptensor
    from avial_lab.compiler.frontends.python.calls import prange
    from avial_lab.compiler.frontends.python.tasks import converge, replicate, task
    from avial_lab.core.errors import AvialError
    from avial_lab.lessons.exercise import check
    from avial_lab.machine.measure import measure_ceilings
    from avial_lab.machine.topologies import topology_called
    from avial_lab.machine.topology import Topology
    from avial_lab.notebook import load_ipython_extension
    from avial_lab.planning.imports import load_graph
    from avial_lab.planning.planned import plan
    from avial_lab.plot.run.film import Film
    from avial_lab.plot.run.roofline import Point, Roofline
    from avial_lab.program.c_functions import from_c
    from avial_lab.program.compilation import Namespace, analyse, compile
    from avial_lab.program.export import export_onnx
    from avial_lab.program.functions import program as program
    from avial_lab.program.models import Model, load_onnx
    from avial_lab.program.program import Program
    from avial_lab.program.reference_run import OneProcess, start_or_reference
    from avial_lab.program.session import cluster
    from avial_lab.program.timing import Timing, timed
    from avial_lab.runtime.launch.cluster import Cluster

__version__ = "0.1.0"

_HOME = {
    "AvialError": "core.errors",
    "Cluster": "runtime.launch.cluster",
    "Film": "plot.run.film",
    "Namespace": "program.compilation",
    "Model": "program.models",
    "OneProcess": "program.reference_run",
    "Point": "plot.run.roofline",
    "Program": "program.program",
    "Roofline": "plot.run.roofline",
    "Timing": "program.timing",
    "Topology": "machine.topology",
    "analyse": "program.compilation",
    "check": "lessons.exercise",
    "cluster": "program.session",
    "compile": "program.compilation",
    "converge": "compiler.frontends.python.tasks",
    "export_onnx": "program.export",
    "from_c": "program.c_functions",
    "load_graph": "planning.imports",
    "load_ipython_extension": "notebook",
    "load_onnx": "program.models",
    "measure_ceilings": "machine.measure",
    "plan": "planning.planned",
    "prange": "compiler.frontends.python.calls",
    "replicate": "compiler.frontends.python.tasks",
    "start_or_reference": "program.reference_run",
    "task": "compiler.frontends.python.tasks",
    "timed": "program.timing",
    "topology_called": "machine.topologies",
}

__all__ = [
    "AvialError",
    "Cluster",
    "Film",
    "Model",
    "Namespace",
    "OneProcess",
    "Point",
    "Program",
    "Roofline",
    "Timing",
    "Topology",
    "analyse",
    "check",
    "cluster",
    "compile",
    "converge",
    "export_onnx",
    "from_c",
    "load_graph",
    "load_ipython_extension",
    "load_onnx",
    "measure_ceilings",
    "plan",
    "prange",
    "replicate",
    "start_or_reference",
    "task",
    "timed",
    "topology_called",
]


def __getattr__(name: str) -> object:
    if name in ("ptensor", "program"):
        return import_module(f"avial_lab.{name}")
    if name in _HOME:
        return getattr(import_module(f"avial_lab.{_HOME[name]}"), name)
    raise AttributeError(f"module 'avial_lab' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
