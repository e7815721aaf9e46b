"""The file of results: whole at any moment, with everything known until then.

format     "avial-lab gpu"
version    1
made       commit, date, command … of the bundle; when and how it was run
machine    device, driver, processors, memory, packages
parts      by name: state (done, failed, cut short, left out, waits for hardware), seconds, rows
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT = "avial-lab gpu"
VERSION = 1
RESULTS = "results.json"


class Report:
    """What is known; `save` after each new fact."""

    def __init__(self, folder: Path, made: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / RESULTS
        date = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        self.facts: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "made": {**made, "run": date},
            "machine": {},
            "parts": {},
        }

    def put(self, part: str, **facts: Any) -> None:  # noqa: ANN401 (what JSON holds)
        self.facts["parts"].setdefault(part, {"state": "left out", "rows": []}).update(facts)
        self.save()

    def add(self, part: str, row: Mapping[str, Any]) -> None:
        self.facts["parts"][part]["rows"].append(dict(row))
        self.save()

    def save(self) -> None:
        """Renamed into place: a reader has all of it or the one before."""
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(self.facts, indent=1), encoding="utf-8")
        os.replace(partial, self.path)
