"""Arrays in files: which ones are, what a rank reads of them, and when it must not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.core.errors import ClusterError
from avial_lab.core.regions import Box
from avial_lab.runtime.rank.array_files import ArrayFile, FilePart, _file_of, joined
from avial_lab.runtime.rank.relay import Seen, unlike


def saved(folder: Path, array: np.ndarray) -> Path:
    path = folder / "a.npy"
    np.save(path, array)
    return path


def file_of(array: np.ndarray) -> ArrayFile | None:
    return _file_of("a", {"a": array})


def whole(file: ArrayFile) -> np.ndarray:
    return FilePart(file, Box.whole(file.shape)).read()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@given(st.data())
def test_a_part_is_what_is_in_the_box(folder: Path, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=0, max_size=4))
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    low = [data.draw(st.integers(0, extent - 1)) for extent in shape]
    high = [data.draw(st.integers(k + 1, n)) for k, n in zip(low, shape, strict=True)]
    box = Box(tuple(low), tuple(high))
    path = saved(folder, array)
    start = path.stat().st_size - array.nbytes
    file = ArrayFile("a", str(path), start, array.shape, 4, Seen.of(str(path)))
    read = FilePart(file, box).read().view(np.int32)
    np.testing.assert_array_equal(read, array[box.slices].reshape(-1))


@pytest.mark.parametrize("mode", ["r", "c"])
@pytest.mark.parametrize("rows", [slice(None), slice(700, 1900)], ids=["all", "some"])
def test_a_mapped_array_is_in_its_file(tmp_path: Path, mode: str, rows: slice) -> None:
    array = np.random.default_rng(0).random((2000, 30))
    mapped = np.load(saved(tmp_path, array), mmap_mode=mode)[rows]  # type: ignore[call-overload]
    file = file_of(np.asarray(mapped))
    assert file is not None
    np.testing.assert_array_equal(whole(file).view(float), array[rows].reshape(-1))


def test_what_has_other_values_than_its_file_is_not_in_it(tmp_path: Path) -> None:
    array = np.random.default_rng(0).random((2000, 30))
    path = saved(tmp_path, array)
    mapped = np.load(path, mmap_mode="c")
    mapped[7, 7] = 0
    assert file_of(mapped) is None
    assert file_of(np.load(path, mmap_mode="r+")) is None
    assert file_of(np.load(path, mmap_mode="r").T) is None
    assert file_of(np.load(path)) is None
    assert file_of(np.load(path, mmap_mode="r") + 1) is None


def test_another_file_of_that_name_is_told_apart(tmp_path: Path) -> None:
    path = saved(tmp_path, np.zeros(1000))
    seen = Seen.of(str(path))
    assert unlike(str(path), seen) == ""
    saved(tmp_path, np.ones(1000))
    assert unlike(str(path), seen) == "is another file"
    saved(tmp_path, np.zeros(1000))
    os.utime(path, (0, 0))
    assert unlike(str(path), seen) == "is another file"
    path.unlink()
    assert unlike(str(path), seen) == "cannot be read: No such file or directory"


def test_a_file_that_changes_ends_the_run(tmp_path: Path) -> None:
    path = saved(tmp_path, np.zeros(1000))
    file = file_of(np.load(path, mmap_mode="r"))
    assert file is not None
    saved(tmp_path, np.ones(1000))
    with pytest.raises(ClusterError, match="any more: is another file"):
        whole(file)
    os.truncate(path, 500)
    with pytest.raises(ClusterError, match="any more: it ends too soon"):
        whole(file)


def test_pieces_come_in_their_order(tmp_path: Path) -> None:
    file = file_of(np.load(saved(tmp_path, np.arange(4.0)), mmap_mode="r"))
    assert file is not None
    parts = {k: FilePart(file, Box((at,), (at + 1,))) for k, at in ((2, 1), (0, 3))}
    sent = [np.full(1, 10.0).view(np.uint8), np.full(1, 11.0).view(np.uint8)]
    every = [float(piece.view(float)[0]) for piece in joined(sent, parts)]
    assert every == [3.0, 10.0, 1.0, 11.0]
