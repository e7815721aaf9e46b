"""Wide quotients rounded down are right in all their bits. (MLIR's own JIT cannot divide them: no
`__divti3`; so the golden case is not run.)
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.arithmetic.scalars import ENDS, run_and_reference


@pytest.mark.parametrize(("width", "divisor"), [(65, 7), (80, -7), (128, -3), (66, 2)])
@pytest.mark.parametrize("shift", [0, 63])
def test_every_bit_is_right(width: int, divisor: int, shift: int) -> None:
    """MLIR's arith-expand adds 2^64 - 1 where it means -1."""
    body = f"""
      %wide = arith.extsi %i : i64 to i{width}
      %two = arith.constant 2 : i{width}
      %a = arith.muli %wide, %two : i{width}
      %d64 = arith.constant {divisor} : i64
      %d = arith.extsi %d64 : i64 to i{width}
      %q = arith.floordivsi %a, %d : i{width}
      %by = arith.constant {shift} : i{width}
      %s = arith.shrsi %q, %by : i{width}
      %e = arith.trunci %s : i{width} to i64
    """
    numbers = [(int(x) * 2 // divisor) >> shift for x in ENDS]
    want = np.array([number & (2**64 - 1) for number in numbers], np.uint64).view(np.int64)
    run_and_reference(body, ENDS, want, result="%e")
