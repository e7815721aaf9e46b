"""The CPU that programs are compiled for: its vector registers, caches, instructions, and cores.

This machine, as its kernel describes it -> Cpu. Sizes in passes come from here, who runs on which
core, and whether machine code of another machine would run on this one.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from avial_lab.core.errors import ClusterError
from avial_lab.machine.constants import VECTOR_UNITS

SYSTEM = Path("/sys/devices/system/cpu")
CACHES = SYSTEM / "cpu0/cache"
KIB = 1024


@dataclass(frozen=True)
class Cpu:
    """Bytes of the caches that a core has or shares, bytes and number of its vector registers;
    `fma`: a product and a sum rounded once, in hardware. `cores`: those that programs may have.
    `halves`: a vector goes through its units in two halves, so that those of half the bytes are as
    fast. `long_integers`: vectors of 64-bit integers are multiplied and converted in hardware.
    `own_adders`: sums have as many units again as products and fused multiply-adds.
    """

    vector_bytes: int = 16
    vector_registers: int = 16
    fma: bool = False
    l1_bytes: int = 32 * KIB
    l2_bytes: int = 512 * KIB
    last_bytes: int = 8 * KIB * KIB
    cores: int = 1
    halves: bool = False
    long_integers: bool = False
    own_adders: bool = False

    @property
    def unit_bytes(self) -> int:
        """What each of its vector units takes at once."""
        return self.vector_bytes // 2 if self.halves else self.vector_bytes

    @property
    def flops_per_cycle(self) -> int:
        """Of a core, on f64, at its peak."""
        return VECTOR_UNITS * max(1, self.unit_bytes // 8) * (2 if self.fma else 1)

    def lanes(self, itemsize: int) -> int:
        """Elements of that many bytes in one vector register."""
        return max(1, self.vector_bytes // itemsize)


@cache
def this_cpu() -> Cpu:
    """The one we run on. What the kernel does not report is assumed small."""
    known = cpu_of(platform.machine(), _flags(), data_caches(CACHES))
    return replace(
        known, cores=len(cores_of(allowed())), halves=has_halves(), own_adders=has_own_adders()
    )


def cpu_of(
    machine: str, flags: frozenset[str], caches: dict[int, tuple[int, int]] | None = None
) -> Cpu:
    """The CPU of that architecture with these instruction sets, as the kernel of Linux names them.

    `caches`: as from `data_caches`.

    >>> cpu_of("x86_64", frozenset({"avx", "fma"})).vector_bytes
    32
    >>> cpu_of("aarch64", frozenset({"asimd"})).vector_registers
    32
    """
    sizes = {level: nbytes for level, (nbytes, _) in (caches or {}).items()}
    l1, l2 = sizes.get(1, Cpu.l1_bytes), sizes.get(2, Cpu.l2_bytes)
    last = sizes[max(sizes)] if sizes else Cpu.last_bytes
    wide, registers, fma = _vectors(machine, flags)
    long_integers = "avx512dq" in flags
    return Cpu(wide, registers, fma, l1, l2, max(last, l2), long_integers=long_integers)


def _vectors(machine: str, flags: frozenset[str]) -> tuple[int, int, bool]:
    if machine.lower() in ("aarch64", "arm64"):
        return 16, 32, True
    if "avx512f" in flags:
        return 64, 32, True
    if "avx" in flags:
        return 32, 16, "fma" in flags
    return 16, 16, "fma" in flags


USED = re.compile(
    # x86-64
    r"pni|ssse3|sse4_[12]|cx16|movbe|popcnt|abm|bmi[12]|adx|f16c|fma|avx\w*|gfni|vaes|vpclmulqdq"
    # AArch64
    r"|asimd\w*|atomics|fphp|jscvt|fcma|i?lrcpc|flagm2?|frint|i8mm|bf16|sve\w*|sme\w*"
)
"""Instruction sets, as Linux names them, that a compiler may use for loops over numbers; the others
are for the kernel or for cryptography.
"""


def instruction_sets() -> frozenset[str]:
    """What machine code made for this CPU may use of it; empty if the kernel does not say."""
    return used_of(_flags())


def used_of(flags: Iterable[str]) -> frozenset[str]:
    """Those of a CPU's flags that machine code may use."""
    return frozenset(flag for flag in flags if USED.fullmatch(flag))


NATIVE = "native"
"""The kind of CPU that this machine has."""

_V2 = frozenset({"pni", "ssse3", "sse4_1", "sse4_2", "cx16", "popcnt"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}

LEVELS = {
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
"""Levels of x86-64 (its psABI, 3.1.1), as compilers name them: what a CPU of one has, of `USED`."""


def instruction_sets_of(cpu: str) -> frozenset[str]:
    """What machine code for that kind of CPU, a level or this machine's, may use."""
    return LEVELS[cpu] if cpu in LEVELS else instruction_sets()


def check_instruction_sets(needed: Iterable[str]) -> None:
    """ClusterError for machine code that this CPU does not understand; it would die of SIGILL."""
    here = instruction_sets()
    missing = sorted(set(needed) - here)
    if here and missing:
        level = greatest_level(here)
        cure = f": --cpu-target {level}" if level else ""
        raise ClusterError(
            f"the CPU of {platform.node()} lacks {', '.join(missing)}, "
            "which the program was compiled for",
            hint=f"compile it on that machine, or for what all machines have{cure}",
        )


def greatest_level(sets: frozenset[str]) -> str:
    """Of `LEVELS`, the greatest that a CPU with those instruction sets has; empty for none."""
    return next((name for name in reversed(LEVELS) if LEVELS[name] <= sets), "")


def level_for(machines: Iterable[frozenset[str]]) -> str:
    """The greatest of `LEVELS` that this CPU has and those of machines with these instruction sets
    (empty where nobody knows); "" where they run what is made for this one, or have none in common.
    """
    here, known = instruction_sets(), [sets for sets in machines if sets]
    alike = all(here <= sets for sets in known)
    return "" if alike else greatest_level(here.intersection(*known))


def has_slow_gathers() -> bool:
    """Whether this CPU loads the lanes of a vector faster one by one than with the instruction for
    it, which AMD's do (Zen 5: 4 times, for 8 lanes that are in L1 and L2).
    """
    return re.search(r"^vendor_id\s*: (AuthenticAMD|HygonGenuine)$", _cpuinfo(), re.M) is not None


def has_own_adders() -> bool:
    """Whether this CPU adds in other units than it multiplies in, as AMD's do since Zen (uops.info:
    ADDPD in units 2 and 3, MULPD and FMA in 0 and 1).
    """
    family = re.search(
        r"^vendor_id\s*: (?:AuthenticAMD|HygonGenuine)\ncpu family\s*: (\d+)$", _cpuinfo(), re.M
    )
    return family is not None and int(family[1]) >= _ZEN


_ZEN = 0x17


def has_halves() -> bool:
    """Whether this CPU's vectors of 512 bits go through units of 256, as a Zen 4's do."""
    family = re.search(r"^vendor_id\s*: AuthenticAMD\ncpu family\s*: 25$", _cpuinfo(), re.M)
    return family is not None and "avx512f" in _flags()


@cache
def _flags() -> frozenset[str]:
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", _cpuinfo(), re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


@cache
def _cpuinfo() -> str:
    """What Linux reports about the first processor; "" elsewhere."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return ""


def data_caches(folder: Path) -> dict[int, tuple[int, int]]:
    """Bytes of the cache of each level that holds data, and how many hardware threads share it, as
    a CPU's folder in Linux's `/sys` has it.
    """
    levels: dict[int, tuple[int, int]] = {}
    for index in sorted(folder.glob("index*")):
        try:
            if (index / "type").read_text(encoding="utf-8").strip() == "Instruction":
                continue
            level = int((index / "level").read_text(encoding="utf-8"))
            size = re.fullmatch(
                r"(\d+)([KMG]?)", (index / "size").read_text(encoding="utf-8").strip()
            )
            shared = len(numbers_in((index / "shared_cpu_list").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
        if size is not None:
            levels[level] = int(size[1]) * KIB ** " KMG".index(size[2] or " "), shared
    return levels


def numbers_in(text: str) -> tuple[int, ...]:
    """Of a list as Linux writes them. ValueError for what is none.

    >>> numbers_in("0-3,8")
    (0, 1, 2, 3, 8)
    """
    ends = [part.split("-") for part in text.strip().split(",")]
    return tuple(n for end in ends for n in range(int(end[0]), int(end[-1]) + 1))


def listed_numbers(numbers: Iterable[int]) -> str:
    """The list of them.

    >>> listed_numbers((0, 1, 2, 3, 8))
    '0-3,8'
    """
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


NUMA = Path("/sys/devices/system/node")


def domains_of(
    cores: Sequence[Core], system: Path = NUMA
) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The memory domains of a machine: which of these cores are near (by their places in `cores`),
    and how many bytes each has; those without a core are none of ours.
    """
    found: list[tuple[tuple[int, ...], int]] = []
    folders = sorted(system.glob("node[0-9]*"), key=lambda each: int(each.name[4:]))
    for folder in folders:
        try:
            threads = set(numbers_in((folder / "cpulist").read_text(encoding="utf-8")))
            memory = re.search(
                r"MemTotal:\s*(\d+) kB", (folder / "meminfo").read_text(encoding="utf-8")
            )
        except (OSError, ValueError):
            continue
        own = tuple(k for k, core in enumerate(cores) if core[0] in threads)
        if own:
            found.append((own, int(memory[1]) * KIB if memory else 0))
    return tuple(found)


def boot_id() -> str:
    """Of this machine's present boot, which no other has (Linux; else empty)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


Core = tuple[int, ...]
"""The hardware threads of a core, by the numbers that the system has for them."""


def allowed() -> tuple[int, ...]:
    """The hardware threads that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


@cache
def cores_of(threads: tuple[int, ...], system: Path = SYSTEM) -> tuple[Core, ...]:
    """These hardware threads, core by core."""
    cores: dict[str, list[int]] = {}
    for thread in threads:
        try:
            core = (system / f"cpu{thread}/topology/thread_siblings_list").read_text(
                encoding="utf-8"
            )
        except OSError:
            core = str(thread)
        cores.setdefault(core, []).append(thread)
    return tuple(map(tuple, cores.values()))


def in_turn(cores: Sequence[Core]) -> tuple[int, ...]:
    """Their hardware threads in the order in which work is given to them: one of each core first.

    >>> in_turn([(0, 4), (1,), (2, 6)])
    (0, 1, 2, 4, 6)
    """
    deepest = max(map(len, cores), default=0)
    return tuple(core[k] for k in range(deepest) for core in cores if k < len(core))
