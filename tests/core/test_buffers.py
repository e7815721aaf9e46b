"""Binding: which arrays share memory, and pieces of them in and out, whatever their strides."""

from __future__ import annotations

from itertools import combinations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.core.aliasing import sharing_memory
from avial_lab.core.buffers import bind_arrays, read_box, write_box
from avial_lab.core.element_types import ELEMENT_OF_DTYPE, dtype_of_element
from avial_lab.core.errors import BindError
from avial_lab.core.regions import Box


def groups(**arrays: np.ndarray) -> list[tuple[str, ...]]:
    return [storage.buffers for storage in bind_arrays(arrays).storages]


def test_overlapping_views_share_a_storage() -> None:
    x = np.arange(15, dtype=np.int32)
    binding = bind_arrays({"a": x[0:10], "b": x[5:15], "c": np.zeros(3)})
    assert [s.buffers for s in binding.storages] == [("a", "b"), ("c",)]
    shared = binding.storages[0]
    assert (shared.shape, shared.itemsize, shared.shared) == ((60,), 1, True)
    assert [b.offset_bytes for b in binding.buffers[:2]] == [0, 20]


def test_sharing_is_transitive_and_exact() -> None:
    x = np.zeros(30)
    assert groups(a=x[0:10], c=x[15:25], b=x[5:20]) == [("a", "c", "b")]
    # Every other element: the spans overlap, the elements do not.
    assert groups(even=x[::2], odd=x[1::2]) == [("even",), ("odd",)]
    assert groups(left=x[:15], right=x[15:]) == [("left",), ("right",)]


def test_the_same_array_twice_shares() -> None:
    x = np.zeros((3, 4))
    assert groups(a=x, b=x) == [("a", "b")]
    assert groups(a=x, b=x.T) == [("a", "b")]
    assert groups(a=x[:0], b=x) == [("a",), ("b",)]


def test_a_reversed_view_starts_at_its_highest_byte() -> None:
    x = np.arange(6, dtype=np.int16)
    reverse = bind_arrays({"a": x, "r": x[::-1]}).buffers[1]
    assert (reverse.offset_bytes, reverse.strides) == (10, (-1,))


@pytest.mark.parametrize("name", [*ELEMENT_OF_DTYPE])
def test_every_dtype_has_an_element_type_of_its_size(name: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    (buffer,) = bind_arrays({"a": np.zeros(3, dtype)}).buffers
    assert buffer.itemsize == dtype.itemsize
    back = dtype_of_element(buffer.element)
    assert back.itemsize == dtype.itemsize
    assert back.kind == dtype.kind or (back.kind, dtype.kind) == ("i", "u")


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(BindError, match=r"'a' is not a NumPy array, but a list"):
        bind_arrays({"a": [1, 2]})
    with pytest.raises(BindError, match=r"dtype <U1"):
        bind_arrays({"a": np.array(["x"])})
    with pytest.raises(BindError, match=r"dtype >i4"):
        bind_arrays({"a": np.zeros(2, ">i4")})


def test_elements_of_one_array_that_share_memory_are_refused_where_they_can_be_written() -> None:
    row = np.zeros(4)
    spread = np.lib.stride_tricks.as_strided(row, (3, 4), (0, 8), writeable=True)
    with pytest.raises(BindError, match="elements of array 'a' overlap in memory"):
        bind_arrays({"a": spread})
    assert not bind_arrays({"a": np.broadcast_to(row, (3, 4))}).buffers[0].writable


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    """A view of a small array: cut, strided, reversed, transposed."""
    base = np.arange(60, dtype=np.int32).reshape(draw(st.sampled_from([(60,), (6, 10), (3, 4, 5)])))
    cuts = tuple(
        slice(*draw(st.sampled_from([(None,), (1, -1), (None, None, 2), (None, None, -1)])))
        for _ in base.shape
    )
    view = base[cuts]
    return view.T if draw(st.booleans()) else view


@given(views(), st.data())
def test_a_box_goes_out_and_comes_back(view: np.ndarray, data: st.DataObject) -> None:
    binding = bind_arrays({"a": view})
    (storage,) = binding.storages
    ends = [
        sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n)))) for n in view.shape
    ]
    box = Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
    expected = view.copy()
    expected[box.slices] += 100
    piece = read_box({"a": view}, storage, box)
    assert piece.flags.c_contiguous
    write_box({"a": view}, storage, box, piece + 100)
    np.testing.assert_array_equal(view, expected)


def test_a_shared_storage_is_read_and_written_in_bytes() -> None:
    x = np.arange(15, dtype=np.int32)
    arrays = {"a": x[0:10], "b": x[5:15]}
    (storage,) = bind_arrays(arrays).storages
    piece = read_box(arrays, storage, Box((20,), (40,)))
    np.testing.assert_array_equal(piece.view(np.int32), [5, 6, 7, 8, 9])
    write_box(arrays, storage, Box((20,), (40,)), np.arange(5, dtype=np.int32).view(np.uint8))
    np.testing.assert_array_equal(x[4:11], [4, 0, 1, 2, 3, 4, 10])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(1, 3)), max_size=8))
def test_who_shares_memory_as_every_pair_says(windows: list[tuple[int, int, int]]) -> None:
    base = np.zeros(64)
    arrays = {f"w{k}": base[a : a + n * s : s] for k, (a, n, s) in enumerate(windows)}
    found = sharing_memory(arrays)
    assert sorted(name for group in found for name in group) == sorted(arrays)
    group_of = {name: k for k, group in enumerate(found) for name in group}
    for one, other in combinations(arrays, 2):
        if np.shares_memory(arrays[one], arrays[other]):
            assert group_of[one] == group_of[other]
