"""What happened when: the one trace type for measured and simulated runs, and what follows from it.

events.py: what a trace is. analysis.py: shares, overlap, the critical path as measured. chrome.py:
the file that Perfetto opens.
"""

from avial_lab.trace.events import (
    Copy,
    Described,
    Event,
    EventColumns,
    EventKind,
    Move,
    Total,
    Trace,
)

__all__ = ["Copy", "Described", "Event", "EventColumns", "EventKind", "Move", "Total", "Trace"]
