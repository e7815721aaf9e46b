"""Assertions of the program: the first that does not hold is recorded, and the program ends there.

Module with cf.assert -> the same with branches, and the texts among the sites of `check_bounds`.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, llvm, scf

from avial_lab.compiler.codegen.runtime_calls import add_runtime
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.core.runtime_constants import ASSERTED


def record_assertions(module: ir.Operation) -> None:
    """MLIR's own lowering prints the text and ends the process.

    before:  cf.assert %ok, "p has to be positive"
    after:   scf.if (not %ok) { call @avial.outside(site, -1, 0, 0) }
    """
    assertions = operations_named(module, "cf.assert")
    if not assertions:
        return
    add_runtime(module, ["avial.outside"])
    known = module.attributes
    with module.context:
        sites = list(ir.ArrayAttr(known["avial.sites"])) if "avial.sites" in known else []
        for op in assertions:
            with ir.InsertionPoint(op), op.location:
                _record(op.operands[0], len(sites))
            sites.append(ir.DictAttr.get({"text": op.attributes["msg"], "place": op.location.attr}))
            op.erase()
        known["avial.sites"] = ir.ArrayAttr.get(sites)


def _record(holds: ir.Value, site: int) -> None:
    i64 = ir.IntegerType.get_signless(64)
    fails = arith.xori(holds, arith.constant(holds.type, 1))
    with ir.InsertionPoint(scf.IfOp(fails).then_block):
        words = [arith.constant(i64, word) for word in (site, ASSERTED, 0, 0)]
        llvm.CallOp(None, words, [], [], callee=ir.FlatSymbolRefAttr.get("avial.outside"))
        scf.YieldOp([])
