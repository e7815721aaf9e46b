"""What a process loads when it imports a part of avial_lab (design.md, decisions 1 and 2).

The layers say what may be imported; here a real interpreter says what is.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Everything that the notebook's process or an engine holds.
WITHOUT_MLIR = (
    "avial_lab",
    "avial_lab.core.errors",
    "avial_lab.machine.topology",
    "avial_lab.core.buffers",
    "avial_lab.planning.task_graph",
    "avial_lab.planning.schedule",
    "avial_lab.compiler.catalogue",
    "avial_lab.compiler.backends.llvm",
    "avial_lab.cli.doctor",
    "avial_lab.plot",
    "avial_lab.plot.page.passes",
    "avial_lab.program.program",
    "avial_lab.runtime.rank.engine",
    "avial_lab.runtime.launch.cluster",
    "avial_lab.notebook",
    "avial_lab.cli.main",
)

#: What starts within a few tenths of a second: a cluster's client and the colours of code are
#: loaded where they are used.
QUICK = (
    "avial_lab.cli.main",
    "avial_lab.program.program",
    "avial_lab.program.reference_run",
    "avial_lab.program.timing",
)

#: What an engine does without: it starts fast, and runs where neither is installed.
ENGINE = "avial_lab.runtime.rank.engine"
NOT_IN_AN_ENGINE = ("mlir", "ipyparallel", "IPython", "graphviz", "pygments")


def loaded_by(module: str) -> set[str]:
    """Top-level names in `sys.modules` of a new interpreter that imported `module`."""
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    child = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    return set(child.stdout.split())


@pytest.mark.parametrize("module", WITHOUT_MLIR)
def test_it_loads_no_mlir(module: str) -> None:
    assert "mlir" not in loaded_by(module)


def test_an_engine_loads_little() -> None:
    assert not loaded_by(ENGINE) & set(NOT_IN_AN_ENGINE)


@pytest.mark.parametrize("module", QUICK)
def test_it_loads_no_cluster(module: str) -> None:
    assert not loaded_by(module) & {"ipyparallel", "IPython", "pygments", "tornado"}


def test_this_test_sees_mlir_where_it_is_loaded() -> None:
    assert "mlir" in loaded_by("avial_lab.compiler.frontends.mlir")


def test_importing_the_package_loads_next_to_nothing() -> None:
    """Exports are lazy: an engine imports `avial_lab` first, whatever part of it it wants."""
    assert not loaded_by("avial_lab") & {"numpy", "mlir", "IPython", "ipyparallel", "mpi4py"}


@pytest.mark.parametrize("package", ["avial_lab", "avial_lab.plot"])
def test_every_exported_name_is_there_and_none_is_a_module(package: str) -> None:
    """`avial_lab.compiler.frontends.mlir` would be the function or the module, by who imported what
    before.
    """
    code = f"""if True:
        import importlib.util, {package} as package
        assert package.__all__
        for name in package.__all__:
            getattr(package, name)
            assert importlib.util.find_spec(f"{package}.{{name}}") is None, name
    """
    child = subprocess.run(
        (sys.executable, "-c", code), capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
