"""The compiler's process: holds MLIR, answers questions until its pipe closes.

Pipe -> the answers (`answers.py`) to what comes through it, in its order.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import subprocess
import sys
import tempfile
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from avial_lab.compiler.backends.c_runtime import get_ready
from avial_lab.core.errors import AvialError
from avial_lab.core.underway import tell, tell_done, tell_in


def main(arguments: list[str]) -> None:
    pipe = Connection(int(arguments[0]))
    limit = int(arguments[1])
    # Where the process may have less already (`ulimit -v`), it goes on with that.
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    tell_in(Path(tempfile.gettempdir()))  # of this worker alone
    tell("the compiler starts")
    threading.Thread(target=_get_ready, name="ready", daemon=True).start()
    from avial_lab.compiler.worker.answers import (
        answer,  # MLIR and all passes: meanwhile the tools are asked
    )

    gc.freeze()  # what was loaded stays: no collection has to go through it
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        # A question makes many objects and few cycles: collect between questions, not during one.
        gc.disable()
        tell_done("")
        answered = answer(question)
        tell_done("")
        pipe.send(answered)
        gc.enable()
        gc.collect()


def _get_ready() -> None:
    """While this process loads what it needs. What stands in the way is told to who asks for
    machine code.
    """
    with contextlib.suppress(AvialError, OSError, subprocess.SubprocessError):
        get_ready()


if __name__ == "__main__":
    main(sys.argv[1:])
