"""What is taken for known of a machine stands in one module, with its units."""

from __future__ import annotations

import re
from pathlib import Path

import avial_lab
from avial_lab.machine import constants

ROOT = Path(avial_lab.__file__).parent

RATE = re.compile(r"^[A-Z_]*(_HZ|_PER_S|LATENCY\w*|LINE_BYTES|PAGE(_BYTES)?) *(:.*)?= *[\d.]", re.M)


def test_rates_and_sizes_of_machines_stand_in_one_module() -> None:
    found = [path.name for path in sorted(ROOT.rglob("*.py")) if RATE.search(path.read_text())]
    assert found == ["constants.py"]


def test_each_has_a_unit_and_a_source() -> None:
    text = (ROOT / "machine/constants.py").read_text()
    names = [name for name in vars(constants) if name.isupper()]
    units = re.compile(
        r"_(HZ|BYTES|PER_S|PER_CYCLE|S|CYCLES)$|^(BYTES|TERMS|ADDITIONS|REQUESTS|CORES)_"
    )
    # Counts, shares, and bytes per operation.
    bare = {"VECTOR_UNITS", "REACHED_OF_PEAK", "WRITE_COMBINING_STREAMS"}
    bare |= {"REACHED_OF_GPU_MEMORY", "GPU_CACHE_BYTES_PER_FLOP", "FOREIGN_CACHE_RATE"}
    assert {name for name in names if not units.search(name)} == bare
    for name in names:
        assert re.search(rf'^{name} = [^\n]*\n"""', text, re.M), f"{name} has no docstring"
