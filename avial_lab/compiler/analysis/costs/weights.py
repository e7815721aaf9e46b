"""What operations weigh: one table with two measures of arithmetic that must not be mixed.

Name of an operation -> `Weight`, of one element.

**flops** (and `integers`) are counted by convention, as papers and vendors count them: an addition,
a multiplication, a comparison, a square root, a call of `math.exp` are one each, a fused
multiply-add is two. GFLOP/s, arithmetic intensity and the roofline are in these, so that figures
compare with others'.

**additions** measure time: as how many additions of the same type it keeps the core busy. A fused
multiply-add is one (it takes the slot of one addition), a division eight. Decisions are made with
these: is a loop long enough for threads, for ranks?

The times are rounded, not measured here: decisions compare them with thresholds that lie factors
apart. Where a time is set against a peak in flops (two in each slot, `in_flops_of_peak`), a fused
multiply-add counts as the two flops that it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Weight:
    """Of one element: `flops` and `integers` by convention, `additions` by time."""

    flops: int = 0
    integers: int = 0
    additions: int = 1

    @property
    def in_flops_of_peak(self) -> int:
        """Its time, in flops of a core that does nothing but fused multiply-adds."""
        return max(self.flops, self.additions)


_FLOATS = ("addf", "subf", "mulf", "remf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf",
           "cmpf")  # fmt: skip
_INTEGERS = ("addi", "subi", "muli", "divui", "remui", "andi", "ori", "xori", "shli", "shrsi",
             "shrui", "maxsi", "maxui", "minsi", "minui", "cmpi")  # fmt: skip
_FREE = ("arith.constant", "affine.apply", "affine.yield", "scf.yield", "arith.index_cast")

WEIGHTS = {
    **{f"arith.{name}": Weight(flops=1) for name in _FLOATS},
    **{f"arith.{name}": Weight(integers=1) for name in _INTEGERS},
    # Not pipelined: a vector of four doubles takes 8 cycles on Intel's cores since Skylake, and
    # roots some more (uops.info: VDIVPD, VSQRTPD); what a loop does beside them hides the rest.
    "arith.divf": Weight(flops=1, additions=8),
    "math.sqrt": Weight(flops=1, additions=8),
    # 64 bits, and no vector has one: 10 to 40 cycles by core (uops.info: IDIV).
    "arith.divsi": Weight(integers=1, additions=16),
    "arith.remsi": Weight(integers=1, additions=16),
    # A product and a sum by convention, one instruction by time.
    "math.fma": Weight(flops=2, additions=1),
    # Constants and addresses become operands of other instructions.
    **{name: Weight(additions=0) for name in _FREE},
}

FUNCTION = Weight(flops=1, additions=16)
"""Any other function of `math`: a polynomial of 10 to 20 fused multiply-adds (`elementary/`)."""

OTHER = Weight()
"""A load, a store, a conversion: no arithmetic, and a slot."""

MOVED = Weight(additions=8)
"""A value that is loaded from an array and stored to a panel: it comes from farther away."""


def weight_of(operation: str) -> Weight:
    """Of an operation by its name.

    >>> weight_of("math.fma"), weight_of("math.exp").additions, weight_of("affine.load").additions
    (Weight(flops=2, integers=0, additions=1), 16, 1)
    """
    return WEIGHTS.get(operation, FUNCTION if operation.startswith("math.") else OTHER)
