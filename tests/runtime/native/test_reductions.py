"""The runtime's arithmetic on partial results, element by element, for every operation and type."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest

from avial_lab.core.runtime_constants import ELEMENT_BITS, KEY_SHIFT, ElementCode, Reduction
from tests.runtime.native.builds import built, write_sources
from tests.runtime.native.ownership.test_reductions import TYPES, values

ENTRIES = """
#include "ownership/runtime.c"
bool can(i64 operation) { run.array_count = 3; return can_combine(operation); }
void combine(i64 operation, char *into, const char *from, i64 n) {
    combine_elements(operation, into, from, n);
}
void fill(i64 operation, i64 itemsize, i64 n, char *memory) {
    Array a = {.nd = 1, .itemsize = itemsize, .operation = operation, .whole = {0, n}};
    fill_identity(&a, memory, (i64[]){0, n});
}
void better(i64 operation, const char *old, const char *from, i64 n, bool *found) {
    find_better(operation, old, from, n, found);
}
"""

KEYS = (Reduction.ARGMIN, Reduction.ARGMAX, Reduction.UNSIGNED_ARGMIN, Reduction.UNSIGNED_ARGMAX)
PLAIN = [(name, label) for name in TYPES for label in TYPES[name][4]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = write_sources(tmp_path_factory.mktemp("reductions"))
    (folder / "entries.c").write_text(ENTRIES)
    flags = ["-O2", "-ffp-contract=off", "-shared"]
    assert built([*flags, "entries.c", "-o", "entries.so", "-lm"], folder) == ""
    loaded = ctypes.CDLL(str(folder / "entries.so"))
    loaded.can.restype = ctypes.c_bool
    return loaded


def code(reduction: int, element: int) -> ctypes.c_int64:
    return ctypes.c_int64(reduction << ELEMENT_BITS | element)


def unaligned(array: np.ndarray) -> np.ndarray:
    """Its bytes, one byte beside where they would be aligned."""
    room = np.zeros(array.nbytes + 64, np.uint8)
    start = 1 - room.ctypes.data % 16 + 16
    room[start : start + array.nbytes] = array.view(np.uint8).ravel()
    return room[start : start + array.nbytes]


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of special values, and others."""
    dtype = np.dtype(TYPES[name][1])
    if dtype.kind == "f":
        some = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.0, np.finfo(dtype).max]
    elif dtype.kind == "b":
        some = [False, True]
    else:
        limits = np.iinfo(dtype)
        some = [limits.min, limits.min + 1, -1, 0, 1, 7, limits.max - 1, limits.max]
    x, y = (np.array(each, dtype) for each in zip(*product(some, repeat=2), strict=True))
    return (np.concatenate([x, values(name, 5, 50)]), np.concatenate([y, values(name, 6, 50)]))


def same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got, want)
    if got.dtype.kind == "f":
        numbers = ~np.isnan(got)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize(("name", "label"), PLAIN)
def test_each_pair_as_mlir_has_it(name: str, label: str, library: ctypes.CDLL) -> None:
    number, *_, operations = TYPES[name]
    x, y = pairs(name)
    with np.errstate(all="ignore"):
        want = [operations[label].meaning(a, b) for a, b in zip(x, y, strict=True)]
    from_ = unaligned(y)
    library.combine(
        code(operations[label].kind, number), ctypes.c_void_p(x.ctypes.data),
        ctypes.c_void_p(from_.ctypes.data), ctypes.c_int64(len(x)),
    )  # fmt: skip
    same(x, np.array(want, x.dtype))


@pytest.mark.parametrize(("name", "label"), PLAIN)
def test_the_identity_changes_nothing(name: str, label: str, library: ctypes.CDLL) -> None:
    number, *_, operations = TYPES[name]
    x, _ = pairs(name)
    neutral, operation = np.empty_like(x), code(operations[label].kind, number)
    neutral.view(np.uint8)[:] = 0xAA  # nothing is left as it was
    library.fill(
        operation, ctypes.c_int64(x.itemsize), ctypes.c_int64(len(x)),
        ctypes.c_void_p(neutral.ctypes.data),
    )  # fmt: skip
    got = neutral.copy()
    library.combine(
        operation, ctypes.c_void_p(got.ctypes.data), ctypes.c_void_p(x.ctypes.data),
        ctypes.c_int64(len(x)),
    )  # fmt: skip
    same(got, x)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", [name for name in TYPES if name != "i1"])
def test_a_key_is_replaced_by_what_is_strictly_better(
    name: str, key: Reduction, library: ctypes.CDLL
) -> None:
    x, y = pairs(name)
    is_unsigned = key >= Reduction.UNSIGNED_ARGMIN
    if is_unsigned and x.dtype.kind == "f":
        assert not library.can(code(key, TYPES[name][0]))
        return
    kind = np.dtype(f"u{x.dtype}") if is_unsigned else x.dtype
    least = key in (Reduction.ARGMIN, Reduction.UNSIGNED_ARGMIN)
    old, new = x.view(kind), y.view(kind)
    with np.errstate(invalid="ignore"):
        want = new < old if least else new > old
    found = np.zeros(len(x), bool)
    first, second = unaligned(x), unaligned(y)
    library.better(
        code(key, TYPES[name][0]), ctypes.c_void_p(first.ctypes.data),
        ctypes.c_void_p(second.ctypes.data), ctypes.c_int64(len(x)),
        ctypes.c_void_p(found.ctypes.data),
    )  # fmt: skip
    np.testing.assert_array_equal(found, want)


def test_what_can_be_combined(library: ctypes.CDLL) -> None:
    """Of f16 and bf16 nothing: such a phase runs on one rank."""
    has = {
        (TYPES[name][0], operation.kind) for name in TYPES for operation in TYPES[name][4].values()
    }
    has |= {
        (TYPES[name][0], key)
        for name in TYPES
        for key in KEYS
        if name != "i1" and not (name in ("f32", "f64") and key >= Reduction.UNSIGNED_ARGMIN)
    }
    for element, reduction in product(range(1 << ELEMENT_BITS), range(40)):
        if reduction != Reduction.PAYLOAD:
            can = bool(library.can(code(reduction, element)))
            assert can == ((element, reduction) in has), (element, reduction)
    assert not any(element in (ElementCode.F16, ElementCode.BF16) for element, _ in has)
    assert not library.can(ctypes.c_int64(-1))
    assert not library.can(ctypes.c_int64(Reduction.SUM | ElementCode.I8 | 1 << KEY_SHIFT))


@pytest.mark.parametrize(("key", "fits"), [(-1, False), (0, True), (2, True), (3, False)])
def test_a_payload_belongs_to_an_array_there_is(key: int, fits: bool, library: ctypes.CDLL) -> None:
    operation = Reduction.PAYLOAD << ELEMENT_BITS | (key + 1) << KEY_SHIFT
    assert library.can(ctypes.c_int64(operation)) == fits
