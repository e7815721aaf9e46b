"""The kernel "Avial (MPI)": Python with the extension loaded, and a cluster that starts meanwhile.

Numbers of engines -> a kernelspec where Jupyter looks for it; its name -> gone.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

from avial_lab.core.errors import BindError

NAME = "avial-mpi"
_OURS = "avial"
"""In a spec's metadata: it is one of these, and for how many engines."""

_LOGO = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">
<rect width="64" height="64" rx="10" fill="#0072b2"/>
<path d="M19 24 29 42M45 24 35 42" stroke="#fff" stroke-width="3"/>
<circle cx="18" cy="18" r="9" fill="#fff"/>
<rect x="37" y="9" width="18" height="18" fill="#f0e442"/>
<path d="M32 58 21 39h22z" fill="#fff"/></svg>
"""


def kernel_spec(name: str, *, cpu: int = 2, gpu: int = 1) -> dict[str, Any]:
    """The content of kernel.json. The start of the cluster returns at once: the kernel is there
    before it, and also where it fails.
    """
    start = f"%avial cluster start --background --cpu={cpu} --gpu={gpu}"
    kernel = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    return {
        "argv": [*kernel, "--ext=avial_lab", f"--IPKernelApp.exec_lines={start}"],
        "display_name": "Avial (MPI)" if name == NAME else f"Avial (MPI), {name}",
        "language": "python",
        "metadata": {"debugger": True, _OURS: {"cpu": cpu, "gpu": gpu}},
    }


def install_kernel(
    name: str = NAME, *, cpu: int = 2, gpu: int = 1, prefix: str | None = None
) -> Path:
    """The folder of the spec; by default the user's. One that avial_lab installed is replaced."""
    if cpu < 0 or gpu < 0 or cpu + gpu < 1:
        raise BindError(f"a cluster of {cpu} CPU and {gpu} GPU engines is not possible")
    manager = KernelSpecManager()
    if name in manager.find_kernel_specs() and not _is_ours(manager, name):
        raise BindError(
            f"there is a kernel '{name}' that avial_lab did not install", hint="give another --name"
        )
    with tempfile.TemporaryDirectory(prefix="avial-kernel-") as folder:
        spec = kernel_spec(name, cpu=cpu, gpu=gpu)
        Path(folder, "kernel.json").write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")
        Path(folder, "logo-svg.svg").write_text(_LOGO, encoding="utf-8")
        Path(folder).chmod(0o755)  # what is copied with it
        try:
            found = manager.install_kernel_spec(
                folder, kernel_name=name, user=prefix is None, prefix=prefix
            )
        except (OSError, ValueError) as error:
            raise BindError(f"the kernel was not installed: {error}") from None
    return Path(found)


def remove_kernel(name: str = NAME) -> Path:
    """The removed folder; only one that avial_lab installed."""
    manager = KernelSpecManager()
    if not _is_ours(manager, name):
        ours = [known for known in manager.find_kernel_specs() if _is_ours(manager, known)]
        there = f"there are: {', '.join(ours)}" if ours else "none is installed"
        raise BindError(f"there is no kernel '{name}' of avial_lab", hint=there)
    return Path(manager.remove_kernel_spec(name))


def _is_ours(manager: KernelSpecManager, name: str) -> bool:
    try:
        return _OURS in manager.get_kernel_spec(name).metadata
    except NoSuchKernel:
        return False
