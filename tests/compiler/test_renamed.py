"""What had another name until this release still takes it, and says the new one."""

from __future__ import annotations

import warnings

import pytest

from avial_lab.cli.main import main
from avial_lab.compiler.catalogue import CATALOGUE
from avial_lab.compiler.options import CompileOptions
from avial_lab.compiler.renamed import RENAMED, name_now
from avial_lab.core.errors import RenamedWarning

KNOWN = {row.name for pipeline in CATALOGUE for row in pipeline.rows}


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_is_that_of_a_pass_there_is(old: str) -> None:
    assert old not in KNOWN
    with pytest.warns(RenamedWarning, match=f"^the pass {old} is called {RENAMED[old]} now$"):
        assert name_now(old) in KNOWN


def test_passes_are_left_out_and_sized_by_their_old_names() -> None:
    with pytest.warns(RenamedWarning) as said:
        options = CompileOptions.of(without="order-loops", sizes="block-loops{terms=128}")
    assert options.without == ("interchange-loops",)
    assert options.sizes == (("block-contractions", (("terms", 128),)),)
    assert {warning.filename for warning in said} == {__file__}  # not a line of ours


def test_a_new_name_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert name_now("interchange-loops") == "interchange-loops"


def test_the_command_line_says_the_new_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "order-loops"]) == 0
    said = capsys.readouterr()
    assert said.err == "RenamedWarning: the pass order-loops is called interchange-loops now\n"
    assert said.out.startswith("interchange-loops\n")
