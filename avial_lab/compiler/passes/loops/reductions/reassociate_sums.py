"""Sums over an innermost loop that vectors may compute: in several parts, added at the end.

Functions of loops in their last order -> the same, with LLVM's leave on exactly the operations that
add up a sum or product, and on the function how many terms the longest has.

In program order each addition waits for the one before, four cycles or so on any machine, and no
vector helps. Everywhere else that order costs nothing: where the innermost loop goes over elements
and not over terms, each vector lane adds up an element of its own, and the bits stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.accesses.no_alias import functions_of_tasks
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests, innermost_loops
from avial_lab.compiler.analysis.parallelism.sums import links_of, longest_of, may_sum, terms_on_one
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.ir.remarks import add_remark, loop_name, note_terms
from avial_lab.machine.cpu import this_cpu

NAME = "reassociate-sums"


@dataclass(frozen=True)
class ReassociateSums:
    """Let LLVM add up the terms of an innermost loop in any order.

    before:  affine.for %k { %s = affine.load %C[%i] …  %t = math.fma %a, %b, %s : f64
                             affine.store %t, %C[%i] }
    after:   affine.for %k { %s = affine.load %C[%i] …  %p = arith.mulf %a, %b fastmath<contract>
                             %t = arith.addf %s, %p fastmath<reassoc,contract>
                             affine.store %t, %C[%i] }

    Only where the loop is parallel but for such sums and meets elements that lie side by side, as
    else there is nothing to win with vectors. LLVM's vectoriser knows a fused sum as two operations
    that may be contracted, not as one. Nothing is said of NaN, infinities and the sign of zero:
    they stay what they are. A strict module stays as it is, a nest that a pass before wrote, and
    sums of fewer terms than a vector has lanes.
    """

    def __call__(self, module: ir.Operation) -> None:
        if is_strict(module):
            return
        with module.context:
            for function in functions_of_tasks(module):
                terms = max(map(_reorder, free_nests(function)), default=0)
                note_terms(function, terms)

    def __str__(self) -> str:
        return NAME


def _reorder(nest: ir.Operation) -> int:
    """How many terms the longest sum has that is reordered in `nest`; 0 where none is."""
    loops = [loop for loop in innermost_loops(nest) if may_sum(loop)]
    scop = read_scop(nest) if loops else None
    terms = 0
    for loop in loops:
        assert scop is not None
        (own,) = scop.loops_of(loop)
        links_of_sums = links_of(own, scop)
        longest = longest_of(own, scop) if links_of_sums else 0
        if not any(_fills_a_vector(longest, op.results[0].type) for op in links_of_sums):
            continue
        add_remark(loop, NAME, f"sums over {loop_name(loop)} are reassociated, as vectors")
        for op in links_of_sums:
            _allow(op)
        terms = max(terms, terms_on_one(own, scop, longest))
    return terms


def _fills_a_vector(terms: int, kind: ir.Type) -> bool:
    """With fewer, each sum would take the way around the vectors, and be longer for that."""
    return terms >= this_cpu().lanes(itemsize_of(kind))


def _allow(op: ir.Operation) -> None:
    both = ir.Attribute.parse("#arith.fastmath<reassoc,contract>")
    if op.name != "math.fma":
        op.attributes["fastmath"] = both
        return
    a, b, old = op.operands
    with ir.InsertionPoint(op), op.location:
        product = arith.mulf(a, b, fastmath=ir.Attribute.parse("#arith.fastmath<contract>"))
        total = arith.addf(old, product, fastmath=both)
    op.results[0].replace_all_uses_with(total)
    op.erase()
