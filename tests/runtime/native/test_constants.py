"""Numbers that C and Python share: C has what Python has."""

from __future__ import annotations

import ctypes
import subprocess
from enum import Enum, IntEnum
from pathlib import Path

import pytest

from avial_lab.artifact.logs import LOGGED
from avial_lab.core import runtime_constants
from avial_lab.core.element_types import COMPANION_CODE, combines, operation_code
from avial_lab.core.runtime_constants import (
    ELEMENT_BITS,
    EVENT_FIELDS,
    EVENT_WORDS,
    KEY_SHIFT,
    PREFIXES,
    ElementCode,
    Reduction,
    Use,
    header,
)
from tests.runtime.native.builds import built, write_sources

NUMBERS = {name: value for name, value in vars(runtime_constants).items() if name.isupper()}
NUMBERS = {name: value for name, value in NUMBERS.items() if isinstance(value, int)}


def members() -> dict[str, int]:
    return {
        f"{prefix}_{member.name}": int(member.value)
        for kind, prefix in PREFIXES.items()
        for member in kind
    }


def test_c_has_every_number_by_its_name(tmp_path: Path) -> None:
    wanted = {**NUMBERS, **members()}
    prints = [f'printf("{name} %lld\\n", (long long){name});' for name in wanted]
    offsets = [f'printf("{field} %zu\\n", offsetof(Event, {field}));' for field in EVENT_FIELDS]
    text = "\n".join(
        ['#include "ownership/ownership.h"', "#include <stddef.h>", "#include <stdio.h>",
         "int main(void) {", *prints, *offsets, "return 0; }"]
    )  # fmt: skip
    (write_sources(tmp_path) / "print.c").write_text(text)
    assert built(["-O0", "-Werror", "print.c", "-o", "print"], tmp_path) == ""
    said = subprocess.run([str(tmp_path / "print")], capture_output=True, text=True, check=True)
    found = {line.split()[0]: int(line.split()[1]) for line in said.stdout.splitlines()}
    assert found == {**wanted, **{field: 8 * k for k, field in enumerate(EVENT_FIELDS)}}


def test_every_enumeration_is_in_the_header() -> None:
    kinds = {kind for kind in vars(runtime_constants).values() if isinstance(kind, type)}
    kinds = {kind for kind in kinds if issubclass(kind, Enum) and kind not in (Enum, IntEnum)}
    assert set(PREFIXES) == kinds
    assert len(members()) == sum(len(kind) for kind in kinds), "no two have the same name"


@pytest.mark.parametrize("prefix", ["MAX_DIMS", "EVENT_COPY", "ERROR_NOT_GIVEN", "PHASE_WIDE"])
def test_a_changed_number_is_another_header(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"{prefix} = " in header()
    monkeypatch.setattr(runtime_constants, "MAX_DIMS", 33)
    assert "MAX_DIMS = 33" in header()


def test_the_compiler_gives_reductions_the_runtimes_codes() -> None:
    """MLIR's names -> codes; what is not in this table the runtime cannot combine."""
    of = {
        Reduction.SUM: "addf addi subf subi fma", Reduction.PRODUCT: "mulf muli",
        Reduction.MINIMUM: "minsi minimumf", Reduction.MAXIMUM: "maxsi maximumf",
        Reduction.AND: "andi", Reduction.OR: "ori", Reduction.XOR: "xori",
        Reduction.UNSIGNED_MINIMUM: "minui", Reduction.UNSIGNED_MAXIMUM: "maxui",
        Reduction.MINIMUM_NUMBER: "minnumf", Reduction.MAXIMUM_NUMBER: "maxnumf",
        Reduction.ARGMIN: "argmin", Reduction.ARGMAX: "argmax",
        Reduction.UNSIGNED_ARGMIN: "argminui", Reduction.UNSIGNED_ARGMAX: "argmaxui",
    }  # fmt: skip
    assert set(of) == set(Reduction) - {Reduction.PAYLOAD}
    for reduction, names in of.items():
        for name in names.split():
            codes = {
                element: operation_code(f"arith.{name}", element.name.lower())
                for element in ElementCode
            }
            assert codes == {e: reduction << ELEMENT_BITS | e for e in ElementCode}
            assert operation_code(f"arith.{name}", "index") == codes[ElementCode.I64]
    assert COMPANION_CODE == Reduction.PAYLOAD << ELEMENT_BITS
    assert max(Reduction) < 1 << (KEY_SHIFT - ELEMENT_BITS)
    assert max(ElementCode) < 1 << ELEMENT_BITS
    assert not combines("arith.xori", "complex<f32>")


def test_events_and_their_kinds_are_known_to_the_engine() -> None:
    assert set(LOGGED) == set(runtime_constants.RunEvent)
    assert max(runtime_constants.RunEvent) < runtime_constants.EVENT_PARTIAL
    assert EVENT_WORDS * ctypes.sizeof(ctypes.c_int64) == 104
    assert [use for use in Use if not use.writes] == [Use.READ]
