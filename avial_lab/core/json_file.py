"""A file of JSON, as others write them.

Path -> an object's members, or what is wrong with the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from avial_lab.core.errors import AvialError, CellSpan
from avial_lab.core.files import text_of


def read_json(path: Path, *, lists: bool = False) -> dict[str, Any]:
    """The object that the file holds; with `lists` a list is taken for one of `traceEvents`, which
    Chrome's traces may be.

    Raises AvialError, with line and column where it is no JSON.
    """
    text = text_of(path)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        span = CellSpan(str(path), text, error.lineno, error.colno)
        raise AvialError(f"{path} is not JSON: {error.msg}", span=span) from None
    except RecursionError:
        raise AvialError(f"{path} is nested too deep") from None
    except ValueError:
        raise AvialError(f"{path} has a number of thousands of digits") from None
    if lists and isinstance(found, list):
        return {"traceEvents": found}
    if not isinstance(found, dict):
        raise AvialError(f"{path} holds {type(found).__name__}, not an object of JSON")
    return cast("dict[str, Any]", found)
