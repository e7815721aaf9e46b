"""Without a C compiler there is nothing to test here."""

from __future__ import annotations

import pytest

from avial_lab.core.toolchain import find_tool


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    if find_tool("cc") is None:
        pytest.skip("no C compiler: the runtime cannot be built")
