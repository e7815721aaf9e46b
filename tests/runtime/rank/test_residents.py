"""Memory of resident arrays."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from avial_lab.runtime.rank.residents import Residents

LARGE = 64 << 20


def flags(address: int) -> list[str]:
    """Of the mapping at that address, as the kernel tells them."""
    inside, found = False, list[str]()
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        first = line.split(maxsplit=1)[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(end, 16) for end in first.split("-"))
            inside = low <= address < high
        elif inside and first == "VmFlags:":
            found = line.split()[1:]
    return found


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="a system without large pages")
def test_a_ranks_own_rows_have_large_pages() -> None:
    if not Path("/sys/kernel/mm/transparent_hugepage").is_dir():
        pytest.skip("a kernel without large pages")
    memory = Residents(rank=1, ranks=2).memory(1, LARGE)
    address = memory.ctypes.data
    assert "hg" in flags(address + LARGE // 2)
    assert "hg" not in flags(address)


def test_the_memory_of_a_dropped_array_is_used_again() -> None:
    residents = Residents()
    address = residents.memory(1, 1 << 16).ctypes.data
    residents.drop([1, 7])
    assert residents.memory(2, 1 << 16).ctypes.data == address
