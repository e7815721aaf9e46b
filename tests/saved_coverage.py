"""A plugin of coverage.py: what a process ran is saved each second: most of ours end by SIGKILL."""

from __future__ import annotations

import contextlib
import threading
import time

from coverage import Coverage


def coverage_init(*_: object) -> None:
    threading.Thread(target=_save_each_second, name="coverage", daemon=True).start()


def _save_each_second() -> None:
    while True:
        time.sleep(1.0)
        current = Coverage.current()
        # Lines that other threads add meanwhile disturb it: they are saved the next time.
        with contextlib.suppress(Exception):
            if current is not None:
                current.save()
