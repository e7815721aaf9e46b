"""The compiler's process dies, hangs, runs out of memory: the caller is told, and goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from avial_lab.compiler.requests import Analyse, Build, Source
from avial_lab.core.errors import CompilerCrash, VerifyError
from avial_lab.core.toolchain import ToolError
from avial_lab.program.compiler_client import Compiler
from avial_lab.runtime.launch.processes import is_alive
from tests.waiting import LONG_S, wait_until, with_limits

HEAD = "avial.schedule %a: memref<20xi32>, %b: memref<20xi32> {"
PROGRAM = (
    HEAD
    + """
  %cpu = avial.target {arch = "cpu"}
  %t = avial.task %cpu, %a, %b {
    %k = arith.constant 3 : index
    %x = memref.load %a[%k]
    memref.store %x, %b[%k]
    BODY
  }
}
"""
)
GOOD = Source(PROGRAM.replace("BODY", ""), "good")
ABORTING = Source(
    # A layout that no strides tell: the bindings of this MLIR abort where it is read.
    PROGRAM.replace(
        "BODY",
        "%q = memref.alloc() : memref<4xi32, affine_map<(d0) -> (d0 mod 2)>>\n"
        "memref.store %x, %q[%k] : memref<4xi32, affine_map<(d0) -> (d0 mod 2)>>",
    ),
    "In [4]",
)
TABLES = 48
HUGE = Source(
    # Tables of 16 MB, each of which alone may be part of a program: 768 MB.
    "\n".join(
        (
            *(
                f'memref.global "private" constant @t{k} : memref<2097152xi64> = dense<{k + 1}>'
                for k in range(TABLES)
            ),
            "func.func @f(%a: memref<20xi32>, %b: memref<20xi64>) {",
            "%zero = arith.constant 0 : index",
            "%x = memref.load %a[%zero] : memref<20xi32>",
            "%at = arith.index_cast %x : i32 to index",
            *(
                f"%g{k} = memref.get_global @t{k} : memref<2097152xi64>\n"
                f"%v{k} = memref.load %g{k}[%at] : memref<2097152xi64>\n"
                f"memref.store %v{k}, %b[%zero] : memref<20xi64>"
                for k in range(TABLES)
            ),
            "return",
            "}",
        )
    ),
    "In [5]",
)


@pytest.fixture(autouse=True)
def crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where reproducers go in this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "avial_lab" / "crashes"


@pytest.fixture(scope="module")
def shared() -> Iterator[Compiler]:
    """One of our own; nothing of it is left."""
    before = set(psutil.Process().children(recursive=True))
    compiler = Compiler()
    yield compiler
    compiler.stop()
    assert set(psutil.Process().children(recursive=True)) <= before


@pytest.fixture
def compiler(shared: Compiler) -> Compiler:
    """A warm one, whatever the test before did to it."""
    assert works(shared)
    return shared


def stopped(compiler: Compiler) -> int:
    """The pid of the worker, which from now on answers nothing."""
    pid = compiler.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    return pid


def works(compiler: Compiler) -> bool:
    """Whether it answers again, and rightly."""
    return [task.name for task in compiler.ask(Analyse(GOOD)).graph.tasks] == ["t"]


def left_of(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still live; a zombie only waits to be collected, by whoever does that here."""
    deadline = time.monotonic() + LONG_S
    while alive := [process for process in processes if is_alive(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return alive


def reproducer(crash: CompilerCrash) -> Path:
    found = re.search(r"a reproducer is in (\S+); your variables are untouched", crash.hint or "")
    assert found is not None
    return Path(found[1])


def test_killed_between_questions(compiler: Compiler) -> None:
    assert compiler.pid is not None
    worker = psutil.Process(compiler.pid)
    worker.kill()
    assert compiler._pipe is not None
    assert compiler._pipe.poll(LONG_S), (
        "its end of the pipe is closed, whether it is collected or not"
    )
    assert works(compiler)
    assert compiler.pid != worker.pid
    assert not psutil.pid_exists(worker.pid), "a zombie is left"


WITH_ITS_OWNER = "os.kill(os.getpid(), 9)"
ENDS = [
    "compiler.stop()",
    "compiler._process.kill(); compiler._process.wait(); compiler.start()",
    WITH_ITS_OWNER,
]


@pytest.mark.parametrize("end", ENDS)
def test_nothing_of_a_worker_in_the_middle_of_its_work_is_left_on_disk(
    end: str, tmp_path: Path
) -> None:
    """Its temporary files, which nobody else would remove."""
    owner = f"""if True:
        import os
        from avial_lab.program.compiler_client import Compiler
        compiler = Compiler()
        compiler.start()
        folder = compiler._folder
        (folder / "avial-build-x").mkdir()
        (folder / "avial-build-x" / "part.ll").write_text("x")
        {end}
        assert not folder.exists()
        compiler.stop()
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", owner], check=False, env=environment)
    assert done.returncode == (-signal.SIGKILL if end == WITH_ITS_OWNER else 0)
    wait_until(lambda: not list(tmp_path.glob("avial-worker-*")))


def test_the_worker_has_its_temporary_files_in_its_folder(compiler: Compiler) -> None:
    assert compiler.pid is not None
    assert psutil.Process(compiler.pid).environ()["TMPDIR"] == str(compiler._folder)


def test_killed_during_a_question(compiler: Compiler, crashes: Path) -> None:
    pid = stopped(compiler)
    killer = threading.Timer(0.1, os.kill, (pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(
        CompilerCrash, match=r"the compiler's process was killed by SIGKILL"
    ) as caught:
        compiler.ask(Analyse(GOOD))
    killer.join()
    folder = reproducer(caught.value)
    assert folder.parent == crashes
    assert (folder / "program.avial").read_text() == GOOD.text
    assert "killed by SIGKILL" in (folder / "report.txt").read_text()
    assert works(compiler)
    assert not psutil.pid_exists(pid)


def test_killed_in_the_middle_of_its_answer(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read then is neither an answer nor the end of the pipe."""

    pid = compiler.pid
    assert pid is not None

    def broken() -> object:
        os.kill(pid, signal.SIGKILL)
        raise OSError("got end of file during message")

    assert compiler._pipe is not None
    monkeypatch.setattr(compiler._pipe, "recv", broken)
    with pytest.raises(CompilerCrash):
        compiler.ask(Analyse(GOOD))
    assert works(compiler)


def test_an_assertion_of_mlir(compiler: Compiler) -> None:
    with pytest.raises(CompilerCrash, match=r"killed by SIGABRT: .*Assertion") as caught:
        compiler.ask(Build(ABORTING))
    folder = reproducer(caught.value)
    assert (folder / "program.avial").read_text() == ABORTING.text
    report = (folder / "report.txt").read_text()
    assert "asked: Build -n 2\ncell: In [4]" in report
    assert "Assertion" in report
    assert works(compiler)


@pytest.mark.slow
def test_out_of_memory() -> None:
    compiler = Compiler(memory_limit_bytes=3 << 28)
    try:
        compiler.ask(Analyse(GOOD))
        with pytest.raises(CompilerCrash, match=r"[Aa]llocation failed|MemoryError|bad_alloc"):
            compiler.ask(Build(HUGE))
        assert works(compiler)
    finally:
        compiler.stop()


def test_a_runaway_compile_is_stopped_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker waits for a tool that never ends; the time limit ends both."""
    endless = tmp_path / "cc"
    endless.write_text("#!/bin/sh\nexec sleep 1000\n")
    endless.chmod(0o700)
    monkeypatch.setenv("CC", str(endless))
    compiler = Compiler()
    try:
        compiler.ask(Analyse(GOOD))
        assert compiler.pid is not None
        worker = psutil.Process(compiler.pid)
        started: list[psutil.Process] = []
        looking = threading.Thread(
            target=wait_until, args=(lambda: started.extend(worker.children()) or started,)
        )
        looking.start()

        def stopped(limit_s: float) -> list[psutil.Process]:
            with pytest.raises(CompilerCrash, match=rf"longer than {limit_s:g} s and was stopped"):
                compiler.ask(Build(GOOD), timeout_s=limit_s)
            return started

        assert with_limits(stopped, bool), "the tool was not called: this shows nothing any more"
        looking.join()
        assert left_of(started) == []
        assert not worker.is_running()
        assert works(compiler)
    finally:
        compiler.stop()


def test_ctrl_c_during_a_question(compiler: Compiler) -> None:
    stopped(compiler)
    main_thread = threading.main_thread().ident
    pressed = threading.Timer(0.1, signal.pthread_kill, (main_thread, signal.SIGINT))
    pressed.start()
    with pytest.raises(KeyboardInterrupt):
        compiler.ask(Analyse(GOOD))
    pressed.join()
    assert works(compiler), "the answer that was owed must not answer the next question"


def test_what_it_is_at_is_told(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("avial_lab.program.compiler_client.QUIET_S", 0.001)
    monkeypatch.setattr("avial_lab.program.compiler_client.PERIOD_S", 0.001)
    told: list[str] = []
    compiler.ask(Build(GOOD), progress=told.append)
    assert any(re.fullmatch(r"after stage \w+, pass(es)? [\w -]+", words) for words in told), told
    assert any("after stage llvm" in words for words in told)
    told.clear()
    compiler.ask(Build(GOOD), progress=told.append)
    assert "after stage" not in told[0]


def test_a_mistake_costs_nothing(compiler: Compiler) -> None:
    pid = compiler.pid
    with pytest.raises(VerifyError):
        compiler.ask(Analyse(Source("", "In [4]")))
    assert works(compiler)
    assert compiler.pid == pid


def test_a_disk_that_takes_no_reproducer(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CompilerCrash) as caught:
        compiler.ask(Build(ABORTING))
    assert caught.value.hint == "your variables are untouched, and the compiler was restarted"
    assert works(compiler)


def test_the_worker_outlives_the_thread_that_started_it() -> None:
    """Linux tells a process of its parent's death when the thread ends that started it."""
    compiler = Compiler()
    try:
        thread = threading.Thread(target=compiler.ask, args=(Analyse(GOOD),))
        thread.start()
        thread.join()
        pid = compiler.pid
        assert works(compiler)
        assert compiler.pid == pid
    finally:
        compiler.stop()


def test_threads_take_turns(compiler: Compiler) -> None:
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(works(compiler))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 4


def _children(others: set[psutil.Process]) -> list[psutil.Process]:
    """All processes below this one but the others."""
    return [p for p in psutil.Process().children(recursive=True) if p not in others]


def test_a_worker_beside_answers_while_the_first_is_busy() -> None:
    others = set(psutil.Process().children(recursive=True))
    compiler = Compiler(spares=1)
    try:
        first = compiler.ask(Analyse(GOOD)).graph
        assert compiler.pid is not None
        os.kill(compiler.pid, signal.SIGSTOP)
        answers: list[bool] = []
        busy = threading.Thread(
            target=lambda: answers.append(compiler.ask(Analyse(GOOD)).graph == first)
        )
        busy.start()
        while not compiler._lock.locked():
            busy.join(0.01)
        before = _children(others)
        assert compiler.ask(Analyse(GOOD)).graph == first
        assert answers == []
        family = _children(others)
        assert len(family) > len(before)
        os.kill(compiler.pid, signal.SIGCONT)
        busy.join()
        assert answers == [True]
    finally:
        compiler.stop()
    assert left_of(family) == []


def test_without_mlir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlir.py").write_text("raise ModuleNotFoundError(\"No module named 'mlir'\")")
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), root]))
    compiler = Compiler()
    try:
        with pytest.raises(ToolError, match="the compiler cannot start") as caught:
            compiler.ask(Analyse(GOOD))
        assert "pip install" in (caught.value.hint or "")
    finally:
        compiler.stop()


# What is left behind ------------------------------------------------------------------------------

CHILD = """
import os, sys, time
import avial_lab
from avial_lab.program.compiler_client import shared_compiler
avial_lab.analyse({text!r})
print(shared_compiler().pid, flush=True)
sys.stdin.readline()
"""


def child(rest: str) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A Python that has a compiler and then does `rest`; and what it has started."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", CHILD.format(text=GOOD.text) + rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    family = psutil.Process(process.pid).children(recursive=True)
    assert worker in [member.pid for member in family]
    assert process.stdin is not None
    process.stdin.write("go on\n")
    process.stdin.flush()
    return process, family


@pytest.mark.quick("end", "SIGKILL in a question")
@pytest.mark.parametrize(
    ("rest", "end"),
    [
        ("", lambda _: None),
        ("raise SystemExit(3)", lambda _: None),
        ("os.kill(os.getpid(), 15); time.sleep(60)", lambda _: None),
        ("time.sleep(60)", lambda process: process.kill()),
        # In the middle of a question, which the worker never answers.
        (
            "os.kill(shared_compiler().pid, 19); "
            "shared_compiler().ask("
            "avial_lab.compiler.requests.Analyse(avial_lab.compiler.requests.Source('', '')))",
            lambda process: (time.sleep(0.2), process.kill()),
        ),
    ],
    ids=["end", "SystemExit", "SIGTERM", "SIGKILL", "SIGKILL in a question"],
)
def test_nothing_is_left_when_the_caller_ends(
    rest: str, end: Callable[[subprocess.Popen[str]], object]
) -> None:
    process, family = child(rest)
    with process:
        end(process)
    assert left_of(family) == []


def test_a_forked_child_has_a_compiler_of_its_own() -> None:
    """And leaves its parent's alone, also at its end: that one works on, and is guarded still."""
    rest = f"""
pid = os.fork()
if pid == 0:
    avial_lab.analyse({GOOD.text!r})
    print(shared_compiler().pid, flush=True)
    sys.exit(0)
os.waitpid(pid, 0)
before = shared_compiler().pid
avial_lab.analyse({GOOD.text!r})
print(before, shared_compiler().pid, flush=True)
os.kill(before, {signal.SIGSTOP})
os.kill(os.getpid(), {signal.SIGKILL})
"""
    process, family = child(rest)
    with process:
        assert process.stdout is not None
        forked = int(process.stdout.readline())
        before, after = map(int, process.stdout.readline().split())
        assert process.wait() == -signal.SIGKILL
    assert before == after
    assert forked != after
    assert left_of(family) == []
    assert not psutil.pid_exists(forked)
