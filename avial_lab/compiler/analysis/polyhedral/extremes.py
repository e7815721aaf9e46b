"""The first and the last of the points that each point of a map is related to.

isl.Map -> isl.Map with one image for each point, in lexicographic order.
"""

from __future__ import annotations

import islpy as isl


def first_of(relation: isl.Map) -> isl.Map:
    return _plain(relation).lexmin()


def last_of(relation: isl.Map) -> isl.Map:
    return _plain(relation).lexmax()


def _plain(relation: isl.Map) -> isl.Map:
    """Without equalities that only inequalities imply: with some of these isl's answer is one of
    the points, and not the extreme one (seen in islpy 2026.2.2).
    """
    return relation.detect_equalities()
