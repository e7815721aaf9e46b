"""Ctrl-C while compiled code runs in this process: Python sees it when the code has come back, so
the code is made to come back.

A pipe, whose one end compiled code rings when SIGINT comes (`native/ownership/stopping.c`); a
thread at its other end, which stops the run.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

AGAIN_S = 0.001
"""Between two signals to a run's threads: each may be where it cannot end, in malloc, say."""


@dataclass
class Interrupts:
    """`stop` is what ends the run that is under way: asks its threads, and says whether there are
    any still.
    """

    bell: int = -1
    stop: Callable[[], int] = lambda: 0
    _pid: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def bell_for(self, stop: Callable[[], int]) -> int:
        """The descriptor to ring; -1 in a thread that Ctrl-C does not go to."""
        if threading.current_thread() is not threading.main_thread():
            return -1
        if self._pid != os.getpid():  # the first run of this process, or of a fork of one
            self._listen()
        self.stop = stop
        return self.bell

    def _listen(self) -> None:
        with self._lock:
            ear, self.bell = os.pipe()
            os.set_blocking(self.bell, False)
            self._pid = os.getpid()
        name = "avial interrupts"
        threading.Thread(target=self._stops, args=(ear,), name=name, daemon=True).start()

    def _stops(self, ear: int) -> None:
        while os.read(ear, 1):
            while self.stop():
                time.sleep(AGAIN_S)


INTERRUPTS = Interrupts()
"""This process's."""
