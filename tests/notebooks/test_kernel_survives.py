"""A real kernel: what goes wrong in a cell costs that cell, not the session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.waiting import LONG_S, wait_until, with_limits

WAIT_S = LONG_S

SETUP = """
%load_ext avial_lab
import os, signal, threading, time
import numpy as np
import avial_lab
from avial_lab.program.compiler_client import shared_compiler
a, b = np.arange(20, dtype=np.int32), np.zeros(20, np.int32)
precious = {"kept": [1, 2, 3]}
"""


def program(options: str, body: str) -> str:
    """A cell whose task has the index %k."""
    return f"""%%avial {options}
avial.schedule %a, %b {{
  %cpu = avial.target {{arch = "cpu"}}
  %t = avial.task %cpu, %a, %b {{
    %k = arith.constant 3 : index
    {body}
  }}
}}"""


COPY = "%x = memref.load %a[%k]\n    memref.store %x, %b[%k]"
LAYOUT = "memref<4xi32, affine_map<(d0) -> (d0 mod 2)>>"
ABORT = f"{COPY}\n    %q = memref.alloc() : {LAYOUT}\n    memref.store %x, %q[%k] : {LAYOUT}"
DIVIDE = """%first = arith.constant 0 : index
    %zero = memref.load %a[%first]
    %x = memref.load %a[%k]
    %y = arith.divsi %x, %zero
    memref.store %y, %b[%k]"""
FOREVER = """scf.while : () -> () {
      %yes = arith.constant true
      scf.condition(%yes)
    } do {
      %x = memref.load %a[%k]
      memref.store %x, %b[%k]
      scf.yield
    }"""


class Session:
    """A kernel of its own, cell by cell."""

    def __init__(self, client: BlockingKernelClient, manager: KernelManager) -> None:
        self._client, self._manager = client, manager

    def run(self, cell: str) -> tuple[str, str]:
        """What the cell shows as text, and its error as the page shows it; one is empty."""
        return self.finish(self.begin(cell))

    def begin(self, cell: str) -> str:
        return self._client.execute(cell)

    def finish(self, asked: str) -> tuple[str, str]:
        shown, error = [], ""
        while True:
            message = self._client.get_iopub_msg(timeout=WAIT_S)
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return "".join(shown), error
            if kind == "error":
                error = "\n".join(content["traceback"])
            elif kind == "stream":
                shown.append(content["text"])
            elif kind in ("execute_result", "display_data", "update_display_data"):
                shown.append(content["data"]["text/plain"] + "\n")

    def value(self, expression: str) -> str:
        shown, error = self.run(f"print({expression})")
        assert error == ""
        return shown.strip()

    def wait_for_process(self, words: str) -> None:
        """Until the kernel has started, directly or not, one with `words` in its command."""
        wait_until(lambda: self.has_process(words))

    def has_process(self, words: str) -> bool:
        assert self._manager.provisioner is not None
        return any(words in command for command in _commands(self._manager.provisioner.pid))

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def assert_well(self) -> None:
        """The variables are what they were, and a program compiles."""
        assert self.value("precious, list(a) == list(range(20))") == "{'kept': [1, 2, 3]} True"
        shown, error = self.run(program("--show=dag", COPY))
        assert error == ""
        assert "1 task" in shown


def _commands(pid: int) -> Iterator[str]:
    """Of all processes that this one started, directly or not."""
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            yield " ".join(child.cmdline())


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One kernel for all cells of this file, as in a session: each has to leave it well."""
    folder = tmp_path_factory.mktemp("kernel")
    root = str(Path(__file__).parents[2])
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(
        cwd=str(folder),
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).strip(":"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "IPYTHONDIR": str(folder / "ipython"),
        },
    )
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=WAIT_S)
        started = Session(client, manager)
        _, error = started.run(SETUP)
        assert error == ""
        started.run(program("-q", COPY))  # the compiler is warm
        yield started
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


@pytest.fixture(autouse=True)
def _session_is_well(session: Session) -> Iterator[None]:
    pid = session.value("__import__('os').getpid()")
    yield
    session.assert_well()
    assert session.value("__import__('os').getpid()") == pid, "this is another kernel"


def test_a_mistake(session: Session) -> None:
    shown, error = session.run(program("-q", "%x = memref.laod %a[%k]"))
    assert shown == ""
    assert "Traceback" not in error
    lines = error.splitlines()
    assert lines[0] == "ParseError: unknown operation 'memref.laod'"
    assert lines[1].endswith(":6:10")
    assert lines[1].startswith("In [")
    assert lines[2:] == [
        "    %x = memref.laod %a[%k]",
        "         ^",
        "Hint: did you mean memref.load?",
    ]


def test_a_variable_that_is_no_array(session: Session) -> None:
    session.run("saved, a = a, [1, 2]")
    _, error = session.run(program("-q", COPY))
    session.run("a = saved")
    lines = error.splitlines()
    assert lines[0] == "BindError: 'a' is not a NumPy array, but a list"
    assert lines[1].endswith(":2:16")
    assert lines[3] == "               ^"


def test_an_option_there_is_not(session: Session) -> None:
    shown, _ = session.run(program("--rnaks=3", COPY))
    assert "UsageError: unrecognized arguments: --rnaks=3" in shown


def test_the_compiler_aborts(session: Session) -> None:
    _, error = session.run(program("-q", ABORT))
    assert "CompilerCrash: the compiler's process was killed by SIGABRT" in error
    assert "Traceback" not in error
    crashes = session.value("sorted(__import__('pathlib').Path('cache').glob('*/crashes/*/*'))")
    assert "program.avial" in crashes


def test_the_compiler_is_killed(session: Session) -> None:
    """Between two cells, as by the system when memory runs out."""
    session.run(
        "pid = shared_compiler().pid\n"
        "os.kill(pid, signal.SIGKILL)\n"
        "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)"
    )


def test_the_compiler_takes_too_long(session: Session) -> None:
    """Its worker is stopped, so that it answers nothing."""
    _, error = session.run(
        "os.kill(shared_compiler().pid, signal.SIGSTOP)\navial_lab.compile('', timeout=0.3)"
    )
    assert "CompilerTimeout: the compiler took longer than 0.3 s and was stopped" in error


def test_the_stop_button_during_a_compile(session: Session, tmp_path: Path) -> None:
    """Linking never ends, and is ended together with the compiler."""
    endless = tmp_path / "cc"
    endless.write_text("#!/bin/sh\nexec sleep 12345\n")
    endless.chmod(0o700)
    session.run(f"os.environ['CC'] = {str(endless)!r}; shared_compiler().stop()")
    asked = session.begin(program("-q", f"{COPY}  // not built before"))
    session.wait_for_process("sleep 12345")
    session.interrupt()
    _, error = session.finish(asked)
    session.run("del os.environ['CC']; shared_compiler().stop()")
    assert "KeyboardInterrupt" in error
    assert not session.has_process("sleep 12345")


def test_a_check_that_ends_the_compiler(session: Session) -> None:
    _, error = session.run(program("-q --check", DIVIDE))
    assert "the sequential reference run ended in task 't'" in error
    assert "killed by SIGFPE" in error


@pytest.mark.mpi
def test_a_crash_of_a_rank(session: Session) -> None:
    _, error = session.run(program("-q --run", DIVIDE))
    assert error.startswith("RunError: rank 0 of 2 died of SIGFPE in task 't'")
    assert session.value("b.any()") == "False"


@pytest.mark.mpi
def test_a_run_that_never_ends(session: Session) -> None:
    _, error = session.run(program("-q --run --timeout=1", FOREVER))
    assert error.startswith("RunError: the run did not finish within 1 s")
    assert session.value("b.any()") == "False"


@pytest.mark.mpi
def test_the_stop_button_during_a_run(session: Session) -> None:
    asked = session.begin(program("-q --run", FOREVER))
    session.wait_for_process("avial_lab.runtime.rank.engine")
    session.interrupt()
    _, error = session.finish(asked)
    assert error.startswith("KeyboardInterrupt: the run was stopped after")
    assert "Traceback" not in error
    assert session.value("b.any()") == "False"


@pytest.mark.slow
@pytest.mark.mpi
def test_a_cluster_that_loses_engines(session: Session) -> None:
    """By a crash, by a kill: the next run has fresh ones."""
    _, error = session.run("%avial cluster start --cpu=2 --gpu=0")
    assert error == ""
    magics = "get_ipython().magics_manager.registry['AvialMagics']"
    session.run(f"cluster = {magics}.cluster")
    try:
        _, error = session.run(program("-q --run", DIVIDE))
        assert error.startswith("RunError: rank 0 of 2 died of SIGFPE in task 't'")
        parts: list[str] = []

        def attempt(limit_s: float) -> str:
            parts.append(session.run(program(f"--run --show=none --timeout={limit_s}", FOREVER))[0])
            return parts[-1]

        running = "0 of 1 tasks done; running: t"
        shown = with_limits(attempt, lambda shown: shown.count(running) >= 2)
        assert "waiting for new engines" in parts[0]
        assert shown.count(running) >= 2
        assert "stopped: t; the run did not finish" in shown
        assert "rank 0: in task 't' on cpu0\n" in shown, "what stays, as text"
        session.run(
            "with cluster.turn() as (engines, number):\n"
            "    pass\n"
            "def kill():\n"
            "    while (at := engines.entry(0)) is None or (at.run, at.step) != (number + 1, 0):\n"
            "        time.sleep(0.01)\n"
            "    os.kill(engines.facts[0].pid, signal.SIGKILL)\n"
            "threading.Thread(target=kill).start()"
        )
        _, error = session.run(program("-q --run", FOREVER))
        assert error.startswith("RunError: rank 0 of 2 died of SIGKILL in task 't'")
        assert session.value("b.any()") == "False"
        _, error = session.run(program("-q --run --check", COPY))
        assert error == ""
        assert session.value("b[3]") == "3"
    finally:
        session.run("%avial cluster stop\nb[:] = 0")
