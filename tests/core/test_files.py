"""Files that cannot be written: what a user is told, and what stays a fault of ours."""

from __future__ import annotations

import errno
from tempfile import gettempdir

import pytest

from avial_lab.core.errors import AvialError
from avial_lab.core.files import disk_errors


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), "the disk has no room: /x/y"),
        (OSError(errno.EDQUOT, "Quota exceeded"), "the disk has no room: "),
        (OSError(errno.EROFS, "", f"{gettempdir()}/a"), "the disk cannot be written: "),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
         "no folder for temporary files can be written"),
    ],
)  # fmt: skip
def test_a_disk_that_takes_nothing_is_told(error: OSError, words: str) -> None:
    @disk_errors()
    def work() -> None:
        raise error

    with pytest.raises(AvialError) as caught:
        work()
    assert caught.value.message.startswith(words)
    assert caught.value.hint is not None
    assert "TMPDIR" in caught.value.hint


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "", "deck"), OSError(errno.EACCES, "", "/deck"),
              BrokenPipeError(errno.EPIPE, "")],
)  # fmt: skip
def test_other_errors_of_files_stay(error: OSError) -> None:
    with pytest.raises(type(error)), disk_errors():
        raise error
