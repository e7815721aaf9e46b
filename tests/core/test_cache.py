"""The build cache: what comes out is what went in, or nothing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import avial_lab.core.cache
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.requests import Build, Source
from avial_lab.core.cache import Cache, digest, made_once, spelled
from avial_lab.core.files import cache_folder
from avial_lab.core.regions import Box
from avial_lab.machine.devices import CPU
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Sync


def test_what_was_put_is_got(tmp_path: Path) -> None:
    store = Cache(tmp_path / "cache")
    assert store.get("key") is None
    store.put("key", b"payload\nof two lines")
    assert store.get("key") == b"payload\nof two lines"
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [b"", b"no newline", b"0" * 64 + b"\npayload"])
def test_a_damaged_entry_counts_as_none(tmp_path: Path, damage: bytes) -> None:
    store = Cache(tmp_path / "cache")
    store.put("key", b"payload")
    (tmp_path / "cache" / "key").write_bytes(damage)
    assert store.get("key") is None
    store.put("key", b"payload")
    assert store.get("key") == b"payload"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    store = Cache(tmp_path / "cache")
    store.put("key", b"payload")
    (tmp_path / "cache").chmod(mode)
    assert store.get("key") is None
    store.put("other", b"payload")
    assert not (tmp_path / "cache" / "other").exists()


def test_a_link_to_a_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    Cache(tmp_path / "cache").put("key", b"payload")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Cache(tmp_path / "file" / "cache")
    store.put("key", b"payload")
    assert store.get("key") is None


def test_a_damaged_entry_that_cannot_be_removed_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object, **__: object) -> object:
        raise OSError(30, "Read-only file system")

    store = Cache(tmp_path / "cache")
    store.put("key", b"payload")
    (tmp_path / "cache" / "key").write_bytes(b"damaged")
    monkeypatch.setattr(Path, "unlink", read_only)
    assert store.get("key") is None


def test_what_others_remove_while_it_is_pruned_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    listed = os.scandir

    def gone(folder: Path) -> object:
        with listed(folder) as entries:
            found = list(entries)
        (folder / "removed").unlink(missing_ok=True)
        return contextlib.nullcontext(found)

    store = Cache(tmp_path / "cache")
    store.put("removed", b"payload")
    monkeypatch.setattr(os, "scandir", gone)
    monkeypatch.setattr(avial_lab.core.cache, "LIMIT_BYTES", 0)
    store.put("key", b"payload")
    assert not caplog.records


def test_a_full_disk_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(avial_lab.core.cache.Path, "replace", full)
    store = Cache(tmp_path / "cache")
    store.put("key", b"payload")
    assert store.get("key") is None
    assert list((tmp_path / "cache").iterdir()) == [], "half an entry was left behind"


def test_the_oldest_entries_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avial_lab.core.cache, "LIMIT_BYTES", 2500)
    store = Cache(tmp_path / "cache")
    for k in range(4):
        store.put(f"key{k}", bytes(1000))
    kept = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert len(kept) == 2
    assert "key3" in kept


def test_a_folder_is_looked_through_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    monkeypatch.setattr(Cache, "_prune", lambda cache: looks.append(cache))
    monkeypatch.setattr(avial_lab.core.cache, "LIMIT_BYTES", 8000)
    for k in range(9):
        Cache(tmp_path / "cache").put(f"key{k}", bytes(250))
    assert len(looks) == 2  # at the first, and with an eighth of the limit more


def test_two_writers_of_one_key(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path, k)) for k in range(2)]
    for writer in writers:
        writer.start()
    store = Cache(tmp_path / "cache")
    seen = {store.get("key") for _ in range(2000)}
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert seen <= {None, *(_payload(k) for k in range(2))}
    assert store.get("key") is not None


def _payload(k: int) -> bytes:
    return bytes([k]) * 200_000


def _write(folder: Path, k: int) -> None:
    for _ in range(50):
        Cache(folder / "cache").put("key", _payload(k))


def test_parts_of_a_digest_do_not_run_together() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", b"b") == digest("a", "b")


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/avial_lab")
    # The XDG rules: a path that is not absolute is to be ignored.
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "avial_lab"


def build(text: str, cell: str = "In [1]", factor: float = 1.0) -> Build:
    return Build(Source(text, cell, scalars={"factor": factor}))


def test_a_key_holds_what_a_repr_leaves_out() -> None:
    """A repr is for people and shortens; two programs with one key would be one program."""
    assert spelled(build("a")) != spelled(build("b"))
    assert spelled(build("a")) != spelled(build("a", factor=1.0000000000000002))
    assert spelled(build("a")) == spelled(build("a"))
    strict = CompileOptions(strict=True)
    assert spelled(build("a")) != spelled(replace(build("a"), options=strict))
    assert spelled((1,)) != spelled((1, 1)) != spelled(((1, 1),))
    assert spelled("1") != spelled(1) != spelled(True)
    assert spelled((Sync.EDGES, Policy.LEVELS)) == "(Sync.EDGES, Policy.LEVELS)"


def test_what_has_no_text_of_its_own_is_no_key() -> None:
    with pytest.raises(TypeError, match="object cannot be part of a key"):
        spelled((1, object()))


class Calls:
    """Pickled as a call of what `where.name` is, as who wants to run something would write it."""

    def __init__(self, where: str, name: str) -> None:
        self.where, self.name = where, name

    def bytes(self, argument: str) -> bytes:
        def text(value: str) -> bytes:
            return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()

        called = text(self.where) + text(self.name) + b"\x93"  # STACK_GLOBAL
        return b"\x80\x04" + called + text(argument) + b"\x85R."


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("builtins", "dict"),
        ("avial_lab.core.cache", "os.system"),
        ("avial_lab.core.cache", "os"),
        ("avial_lab.core.cache", "pickle"),
        ("avial_lab.core.cache", "Path"),
        ("avial_lab.core.cache", "made_once"),
        ("avial_lab.core.cache", "_Unpickler"),
        ("avial_lab.core.files", "tempfile.mkdtemp"),
        ("avial_lab.machine.devices", "kind_named.__globals__"),
        ("avial_lab.core.toolchain", "tool"),
        ("avial_lab.core.c_compiler", "subprocess.run"),
        ("avial_lab.__main__", "main"),
        ("avial_lab.runtime.launch.processes", "kill_all"),
        ("avial_lab.cli.main", "main"),
    ],
)
def test_an_entry_calls_nothing(
    where: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ran = tmp_path / "ran"
    Cache(cache_folder() / "things").put("key", Calls(where, name).bytes(f"touch {ran}"))
    assert made_once("things", "key", lambda: "made anew") == "made anew"
    assert not ran.exists()


def test_the_call_would_be_one(tmp_path: Path) -> None:
    """Else the test above would see nothing."""
    pickle.loads(Calls("os", "system").bytes(f"touch {tmp_path / 'ran'}"))
    assert (tmp_path / "ran").exists()


def test_what_is_stored_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    value = (Box((0,), (2,)), Sync.EDGES, CPU, {"a": (1.5, b"x", None)}, Source("t", "c"))
    assert made_once("things", "key", lambda: value) == value
    again = made_once("things", "key", lambda: pytest.fail("it is there"))
    assert again == value
    assert again[2] is CPU
