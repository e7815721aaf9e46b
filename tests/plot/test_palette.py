"""Colours: told apart without colour vision, and readable."""

from __future__ import annotations

import pytest

from avial_lab.plot import svg
from avial_lab.plot.page.code import PAPER, PaperStyle
from avial_lab.plot.palette import (
    LOOKS,
    MESSAGE,
    RANKS,
    contrast,
    rank_colour,
    tinted,
)

OKABE_ITO = {
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
}  # fmt: skip


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_is_readable_and_okabe_itos(look: object) -> None:
    assert look.colour in OKABE_ITO
    assert contrast(look.colour, svg.PAPER) >= 3  # WCAG 1.4.11: shapes
    assert contrast(svg.INK, look.tint) >= 7
    assert contrast(svg.QUIET, look.tint) >= 4.5


def test_looks_differ_without_their_colour() -> None:
    signs = [(look.letter, look.cut_corners, look.dash) for look in LOOKS]
    assert len(set(signs)) == len(LOOKS)


def test_words_and_messages_are_readable() -> None:
    assert contrast(MESSAGE, svg.PAPER) >= 3
    assert contrast("#00664a", svg.BAND) >= 4.5
    assert contrast(svg.QUIET, svg.BAND) >= 4.5
    assert contrast("#000000", "#ffffff") == 21


def test_every_ink_of_the_code_is_readable() -> None:
    inks = {f"#{style['color']}" for _, style in PaperStyle if style["color"]}
    assert len(inks) > 5
    for ink in inks:
        assert contrast(ink, PAPER) >= 4.5, ink


def test_contrast_is_symmetric() -> None:
    assert contrast("#123456", "#fedcba") == contrast("#fedcba", "#123456")


def test_a_ranks_number_is_readable_on_its_colour() -> None:
    assert len(set(RANKS)) == 8
    for rank in range(16):
        assert contrast(svg.INK, tinted(rank_colour(rank), 0.55)) >= 4.5, rank
