"""`avial-lab kernel`, `export` and `lab`: what concerns JupyterLab."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from avial_lab.cli.commands.models import export_model
from avial_lab.cli.question import check_folders, print_to_stderr, writing_to
from avial_lab.compiler.frontends.onnx import SUFFIX
from avial_lab.core.errors import BindError


def install_kernel_command(options: argparse.Namespace) -> int:
    prefix = sys.prefix if options.sys_prefix else options.prefix
    install = _kernelspec().install_kernel
    folder = install(options.name, cpu=options.cpu, gpu=options.gpu, prefix=prefix)
    print(f"kernel '{options.name}' is in {folder}")
    return 0


def remove_kernel_command(options: argparse.Namespace) -> int:
    print(f"removed {_kernelspec().remove_kernel(options.name)}")
    return 0


def _kernelspec() -> ModuleType:
    try:
        from avial_lab.notebook import kernelspec
    except ImportError as error:
        raise BindError(
            f"a kernel needs {error.name}, which is not installed",
            hint='in the clone: pip install -e ".[lab]"',
        ) from None
    return kernelspec


def export_command(options: argparse.Namespace) -> int:
    if options.source.suffix in (SUFFIX, ".mlir"):
        return export_model(options)
    try:
        from avial_lab.notebook import export
    except ImportError as error:
        raise BindError(
            f"a notebook is exported with {error.name}, which is not installed",
            hint='in the clone: pip install -e ".[lab]"',
        ) from None
    source, output = options.source, options.output
    notebook = export.read_notebook(source)
    copy = options.to == "ipynb"
    if output is None:
        output = source.with_suffix(".student.ipynb" if copy else ".html")
    if output.resolve() == source.resolve():
        raise BindError(f"{output} would overwrite the notebook", hint="name another with -o")
    check_folders(output)
    if options.execute:
        export.execute(notebook, source.parent)
    elif not (copy or export.has_outputs(notebook)):
        print_to_stderr(
            f"{source} has no outputs, so the page has no pictures; --execute runs it first"
        )
    text = (
        export.student_copy(notebook, solutions=options.solutions)
        if copy
        else export.page(notebook, solutions=options.solutions, name=source.stem)
    )
    with writing_to(output):
        output.write_text(text, encoding="utf-8")
    print(output)
    return 0


def lab_command(options: argparse.Namespace) -> int:
    folder = Path(__file__).parents[2] / "notebooks"
    root = folder if folder.is_dir() else Path.cwd()
    return subprocess.call([sys.executable, "-m", "jupyter", "lab", str(root), *options.rest])
