"""By how much an access goes on with a loop, while all the other loops stay.

Access, dimension of its iterations -> change of its subscripts.

    for i, j: A[i, 2 * j]      with i: (1, 0)      with j: (0, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.budget import remembered
from avial_lab.compiler.analysis.polyhedral.scop import Access
from avial_lab.compiler.ir.operations import lies_whole

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def move_of(access: Access, dim: int) -> int | None:
    """0 where it stays at its element, 1 where it goes to the one beside, None for any other."""
    stride = stride_of(access, dim)
    return None if stride is None else abs(stride)


def stride_of(access: Access, dim: int) -> int | None:
    """0 where it stays at its element, 1 or -1 where it goes to the one after or before, None for
    any other.
    """
    factors = factors_of(access, dim)
    if factors is None or any(factors[:-1]):
        return None
    last = factors[-1] if factors else 0
    return last if abs(last) <= 1 else None


def walks(access: Access, dim: int) -> bool:
    """Whether it stays at its element or goes to the one beside in memory; also where that begins
    a new row, as in a view of several dimensions as one.
    """
    return stride_in_memory(access, dim) is not None


def stride_in_memory(access: Access, dim: int) -> int | None:
    """As `stride_of`, and the same where a row ends and the next begins right behind it."""
    if (stride := stride_of(access, dim)) is not None:
        return stride
    array = access.array
    shape = [extent for extent in array.shape if extent is not None]
    if factors_of(access, dim) is not None or len(shape) < array.rank:
        return None
    if array.value is None or not lies_whole(ir.MemRefType(array.value.type)):
        return None
    factor = _factors(access.relation.apply_range(_addresses(access.relation, shape)), dim)
    return factor[0] if factor is not None and abs(factor[0]) <= 1 else None


def _addresses(relation: isl.Map, shape: Sequence[int]) -> isl.Map:
    """{ A[i, j] -> [n * i + j] } for an array of these extents that `relation` goes to."""
    elements = relation.get_space().range()
    address = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(elements))
    for k in range(len(shape)):
        address = address.set_coefficient_val(IN, k, isl.Val(prod(shape[k + 1 :])))
    return isl.Map.from_aff(address)


def factors_of(access: Access, dim: int) -> tuple[int, ...] | None:
    """By how much each subscript changes with every value of the loop; None where that varies."""
    return _factors(access.relation, dim)


@remembered
def _factors(relation: isl.Map, dim: int) -> tuple[int, ...] | None:
    rank = relation.dim(OUT)
    found: list[int] = []
    for place in range(rank):
        rest = relation.project_out(OUT, place + 1, rank - place - 1).project_out(OUT, 0, place)
        if not rest.is_single_valued():
            return None
        pieces = isl.PwMultiAff.from_map(rest).get_pw_aff(0).get_pieces()
        factors = {_factor(aff, dim) for _, aff in pieces}
        factor = factors.pop() if len(factors) == 1 else None
        if factor is None:
            return None
        found.append(factor)
    return tuple(found)


def _factor(aff: isl.Aff, dim: int) -> int | None:
    """By how much the subscript changes with every value of the loop; None where that varies."""
    divs = isl.dim_type.div
    for k in range(aff.dim(divs)):
        fixed = not aff.get_div(k).involves_dims(IN, dim, 1)
        if not (fixed or aff.get_coefficient_val(divs, k).is_zero()):
            return None
    return aff.get_coefficient_val(IN, dim).to_python()
