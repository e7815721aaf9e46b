"""Rewrites of MLIR's own that are wrong in this release, and are off.

Name of one of MLIR's passes -> the same as its pass manager takes it here. Which passes are run,
and in which order, says `catalogue.py`; each runs with all its patterns but for those here.

What cannot be switched off by a name is kept from meeting what it gets wrong:

| wrong                                             | report           | instead              |
| ------------------------------------------------- | ---------------- | -------------------- |
| index.cmp of a difference with 0                  | llvm#216042      | `index-to-arith`     |
| index.ceildivs of the least number                | llvm PR 223127   | `index-to-arith`     |
| scf.index_switch of more than 32 bits             | tests/witness    | `switches-to-ifs`    |
| affine ceildiv of the least number (lower-affine) | llvm PR 215696   | `exact-affine`       |
| trunci of trunci hands promises on (its folder)   | llvm PR 189164   | `drop-promises`      |
| floordivsi of more than 64 bits (arith-expand)    | tests/witness    | `floor-wide-integers`|
| uitofp of narrow numbers with signs (LLVM's SLP)  | llvm PR 85966    | `backends/tools.py`  |
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Off:
    """A pattern by its name in MLIR's sources; who reported it, and what it does wrong."""

    pattern: str
    report: str
    why: str


_MERGED = "merges two constants and keeps the promise (nsw, nuw) that was made of each by itself"
_CUT = "takes a number that was cut to fewer bits for the whole one"

OFF: tuple[Off, ...] = (
    Off("WhileMoveIfDown", "llvm#219456",
        "moves an scf.if behind the loop's test, wrongly where its result is handed on twice"),
    Off("IndexCastOfIndexCast", "llvm#90296", _CUT),
    Off("IndexCastUIOfIndexCastUI", "llvm#90238", _CUT),
    Off("AddIAddConstant", "llvm PR 189164", _MERGED),
    Off("AddISubConstantRHS", "llvm PR 189164", _MERGED),
    Off("AddISubConstantLHS", "llvm PR 189164", _MERGED),
    Off("MulIMulIConstant", "llvm PR 189164", _MERGED),
    Off("SubILHSAddConstant", "llvm PR 189164", _MERGED),
    Off("SubIRHSSubConstantRHS", "llvm PR 189164", _MERGED),
    Off("SubIRHSSubConstantLHS", "llvm PR 189164", _MERGED),
    Off("SubILHSSubConstantRHS", "llvm PR 189164", _MERGED),
    Off("SubILHSSubConstantLHS", "llvm PR 189164", _MERGED),
)  # fmt: skip
"""Of `canonicalize`. What two index casts may be folded to instead, does `fold-index-casts`."""

_SCOPES = ("{anonymous}::", "(anonymous namespace)::")
"""Before the name, by the compiler that MLIR was built with."""


def spelled(name: str) -> str:
    """One of MLIR's passes (`canonicalize`), or several, as its pass manager takes it."""
    off = ",".join(f"{scope}{each.pattern}" for each in OFF for scope in _SCOPES)
    return name.replace("canonicalize", f"canonicalize{{disable-patterns='{off}'}}")
