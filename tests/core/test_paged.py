"""Pages that boxes touch, against a look at every element."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab.core.buffers import Storage
from avial_lab.core.paged import paged_bytes
from avial_lab.core.regions import Box
from avial_lab.core.runtime_constants import PAGE
from tests.quick import examples


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Storage, list[Box]]:
    shape = tuple(draw(st.lists(st.sampled_from([1, 3, 40, 700]), min_size=0, max_size=3)))
    boxes = [
        Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
        for ends in draw(
            st.lists(
                st.tuples(
                    *(
                        st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted).map(tuple)
                        for n in shape
                    )
                ),
                max_size=3,
            )
        )
    ]
    return Storage("a", shape, draw(st.sampled_from([1, 8, 16])), ("a",)), boxes


@given(_cases())
@settings(max_examples=examples(40), deadline=None)
def test_pages_are_those_with_an_element(case: tuple[Storage, list[Box]]) -> None:
    storage, boxes = case
    if prod(storage.shape) * storage.itemsize > 1 << 24:
        return
    touched = np.zeros(storage.shape, bool)
    for box in boxes:
        touched[tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))] = True
    bytes_of = np.repeat(touched.ravel(), storage.itemsize)
    pages = [bytes_of[at : at + PAGE] for at in range(0, bytes_of.size, PAGE)]
    apart = sum(page.size for page in pages if page.any())
    # Between rows that begin in one page, or less than a page apart, all is taken for touched.
    found = paged_bytes(storage, boxes)
    assert apart <= found <= bytes_of.size
    if all(extent in (1, 700) for extent in storage.shape[1:]) and storage.itemsize == 8:
        assert found == apart
