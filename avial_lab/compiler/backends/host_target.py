"""What this host's compiler and processor can do."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

from avial_lab.compiler.backends.tools import llc_command, piped, version_of


@cache
def has_fma() -> bool:
    """Whether this host multiplies and adds in one instruction; where it does not, llc calls libm's
    fma, which is slow.
    """
    asked = "declare double @llvm.fma.f64(double, double, double)\n"
    asked += "define double @f(double %a, double %b, double %c) {\n"
    asked += "%d = call double @llvm.fma.f64(double %a, double %b, double %c)\nret double %d }\n"
    return not re.search(r"\bfma\b", piped(llc_command(), asked.encode()).decode())


@cache
def tool_versions() -> str:
    """What the machine code depends on besides its source: LLVM, the linker's driver, this host's
    CPU.
    """
    return "\n".join([version_of("llc"), version_of("cc"), platform.machine(), _cpu_flags()])


def _cpu_flags() -> str:
    """The instruction sets the kernel lets us use; two machines of one CPU name may differ in
    them.
    """
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
