"""Accesses that are certain to leave their array are errors before anything runs.

Module of a plain function -> the same, or VerifyError with the access and the size.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.out_of_bounds import out_of_bounds
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.ir.program import program_function
from avial_lab.core.errors import VerifyError


@dataclass(frozen=True)
class CheckAccesses:
    """Refuse `A[i + 1]` for i = 0 to 10 where A has 10 elements.

    What hangs on data or on numbers without a value is not proved here; `--check` looks at it.
    """

    def __call__(self, module: ir.Operation) -> None:
        found = out_of_bounds(read_scop(program_function(module)))
        if found:
            raise VerifyError(
                str(found[0]),
                span=found[0].span,
                hint="make the array longer, or the loop shorter",
            )

    def __str__(self) -> str:
        return "check-accesses"
