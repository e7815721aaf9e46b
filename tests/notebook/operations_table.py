"""Writes avial_lab/notebook/operations.json from the rules of the short notation:
`python -m tests.notebook.operations_table`.
"""

from __future__ import annotations

import json
from pathlib import Path

import avial_lab.compiler.frontends.notation.programs  # noqa: F401  it fills RULES
from avial_lab.compiler.frontends.notation.rules import RULES, USAGE
from avial_lab.notebook import operations

TABLE = Path(operations.__file__).with_suffix(".json")


def table() -> str:
    return json.dumps({name: USAGE.get(name, "") for name in sorted(RULES)}, indent=0) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
