"""The stepper's data: every line and colour is there, what is left out is said, and its inks can
be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Error

from avial_lab import plot
from avial_lab.artifact.stages import Inside, Part, PassStep, Stage, StageInside
from avial_lab.plot.page.code import ink_runs
from avial_lab.plot.page.lexers import MLIRLexer
from avial_lab.plot.views.stepper import lines_of, stepper_data, text_data

CSS = Path(plot.__file__).parent / "views" / "stepper.css"
TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\n %@:<>{}\r\x0b\x0c\u2028\t"),
    max_size=60,
)


def shown(data: Mapping[str, Any], spans: list[int]) -> list[str]:
    """The lines of a text, as the view puts them together."""
    pairs = zip(islice(spans, 0, None, 2), islice(spans, 1, None, 2), strict=True)
    return [data["lines"][k] for first, count in pairs for k in range(first, first + count)]


def stage(name: str, text: str, command: str = "") -> Stage:
    return Stage(name, f"the {name}", "mlir", text, command)


@given(st.lists(TEXT, min_size=1, max_size=4))
def test_every_text_comes_back(texts: list[str]) -> None:
    stages = [stage(str(k), text) for k, text in enumerate(texts)]
    data = json.loads(json.dumps(stepper_data(stages, source=texts[0])))
    assert shown(data, data["source"]["text"]) == lines_of(texts[0])
    for entry, text in zip(data["stages"], texts, strict=True):
        assert "\n".join(shown(data, entry["text"])) == text.removesuffix("\n")
        assert entry["kept"] == entry["lines"]


@given(TEXT, st.sampled_from(["mlir", "avial", "llvm", "ptx", "asm", "klingon"]))
def test_colours_fit_their_lines(text: str, language: str) -> None:
    lines = lines_of(text)
    runs = ink_runs(lines, language)
    assert len(runs) == len(lines)
    for line, run in zip(lines, runs, strict=True):
        pieces = re.findall(r"([a-z])(\d+)", run)
        assert "".join(ink + length for ink, length in pieces) == run
        assert sum(int(length) for _, length in pieces) <= len(line.encode("utf-16-le")) // 2
        assert not pieces or pieces[-1][0] != "x"


def test_a_colour_is_that_of_its_token() -> None:
    data = text_data("%x = arith.constant 1 : index  // one", "mlir")
    assert data["inks"][data["ink"][0]] == "v2x3f14x1m1x3t5x2c6"


def test_a_pass_may_write_another_language_than_its_stage() -> None:
    texts = ["module {\n}", "; ModuleID = 'a'\nret void", "\tretq"]
    passes = tuple(PassStep(text, "", 0.0, 1, 1, text) for text in texts)
    told = inside_of(StageInside("object", (), passes))
    data = stepper_data([Stage("object", "", "asm", "\tretq")], told, source="")
    inks = dict(zip(data["lines"], (data["inks"][ink] for ink in data["ink"]), strict=True))
    assert inks["module {"] == ink_runs(["module {"], "mlir")[0] != ""
    assert inks["ret void"] == ink_runs(["ret void"], "llvm")[0] != ""


def test_a_line_of_two_languages_has_the_colours_of_each() -> None:
    stages = [Stage("a", "", "mlir", "ret void"), Stage("b", "", "llvm", "ret void")]
    data = stepper_data(stages, source="")
    runs = [data["inks"][data["ink"][entry["text"][0]]] for entry in data["stages"]]
    assert runs[0] != runs[1]


def test_same_stages_same_bytes() -> None:
    stages = [stage("avial", "a\nb"), stage("mpi", "b\nc")]
    assert json.dumps(stepper_data(stages, source="a")) == json.dumps(
        stepper_data(iter(stages), source="a")
    )


def test_a_stage_comes_from_the_one_whose_file_its_command_reads() -> None:
    stages = [
        stage("mpi", "1"),
        stage(
            "gpu",
            "2",
            "python -m avial_lab.compiler.lowering.opt -p x mpi.mlir | mlir-opt -o gpu.mlir",
        ),
        stage("ptx:k", "3", "mlir-opt '--pass-pipeline=builtin.module(mpi)' gpu.mlir"),
        stage(
            "host", "4", "python -m avial_lab.compiler.lowering.opt -p a,b mpi.mlir -o host.mlir"
        ),
        stage("llvm", "5"),
    ]
    before = [entry["before"] for entry in stepper_data(stages, source="")["stages"]]
    assert before == [None, 0, 1, 0, 3]


def test_an_edited_stage_comes_from_what_it_came_from_before() -> None:
    stages = [stage("mpi", "1"), stage("gpu", "2"), stage("host", "3", "opt mpi.mlir")]
    edited = [*stages[:2], stage("host", "edited")]
    data = stepper_data(edited, source="", edited="host", unedited=stages)
    assert [entry["before"] for entry in data["stages"]] == [None, 0, 0]


def test_what_does_not_fit_is_left_out_and_counted() -> None:
    stages = [stage("small", "x\n" * 10), *(stage(name, "y" * 99 + "\n") for name in "ab")]
    stages += [stage("large", "".join(f"{k:098}\n" for k in range(1000)))]
    data = stepper_data(stages, source="", budget=10_000)
    kept = {entry["name"]: (entry["kept"], entry["lines"]) for entry in data["stages"]}
    assert kept["small"] == (10, 10)
    assert kept["a"] == (1, 1)
    assert kept["large"][1] == 1000
    assert 90 <= kept["large"][0] < 101  # what the small ones left, whole lines of it
    assert len(shown(data, data["stages"][3]["text"])) == kept["large"][0]
    assert len(json.dumps(data)) < 20_000


def inside_of(*stages: StageInside) -> Inside:
    return Inside(stages)


def test_what_a_stage_is_made_of() -> None:
    text = "".join(f"line {k}\n" for k in range(100))
    changed = text.replace("line 7\n", "line seven\n")
    passes = (
        PassStep("cse", "mlir-opt --cse", 0.5, 0, 0, None),
        PassStep("fold", "", 0.25, 1, 1, changed),
    )
    origins = ((3,),) * 40 + ((),) * 10 + ((3, 4),) * 50
    inside = inside_of(
        StageInside(
            "mpi", origins, passes, (Part("task1", 2, 9),), {"scf": 2, "arith": 9}, {"flops": "2 k"}
        )
    )
    data = stepper_data([stage("mpi", changed)], inside, source="a")
    entry = data["stages"][0]
    assert entry["origins"] == [[40, 3], [10], [50, 3, 4]]
    assert entry["parts"] == [["task1", 2, 9]]
    assert list(entry["counts"].items()) == [("arith", 9), ("scf", 2)]
    assert entry["facts"] == {"flops": "2 k"}
    cse, fold = entry["passes"]
    assert not cse["changed"]
    assert cse["text"] is None
    assert (fold["added"], fold["removed"], fold["changed"]) == (1, 1, True)
    assert shown(data, fold["text"]) == lines_of(changed)
    assert len(fold["text"]) <= 4  # the lines stand in the data once


def test_texts_of_passes_go_as_far_as_the_budget() -> None:
    texts = ["".join(f"{k} only here {line:03}\n" for line in range(100)) for k in range(3)]
    passes = tuple(PassStep(f"p{k}", "", 0.0, 9, 9, texts[k]) for k in (0, 1, 2, 0))
    inside = inside_of(StageInside("mpi", (), passes))
    data = stepper_data([stage("mpi", "x\n")], inside, source="", budget=2000)
    kept = [entry["text"] is not None for entry in data["stages"][0]["passes"]]
    assert kept == [True, False, False, True]  # the last brings nothing new
    assert all(entry["lines"] == 100 for entry in data["stages"][0]["passes"])


def test_origins_that_are_too_few_are_unknown_lines() -> None:
    inside = inside_of(StageInside("mpi", ((2,),)))
    entry = stepper_data([stage("mpi", "a\nb\nc\n")], inside, source="")["stages"][0]
    assert entry["origins"] == [[1, 2], [2]]


# Colours that can be read ------------------------------------------------------------------------


def colours(theme: str) -> dict[str, str]:
    """The colours of the view by name; those that JupyterLab may set are taken at their default."""
    pairs = re.findall(r"--avial-([\w-]+):[^;]*light-dark\((#\w{6}), (#\w{6})\)", CSS.read_text())
    return {name: {"light": light, "dark": dark}[theme] for name, light, dark in pairs}


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_ink_can_be_read_on_every_ground(theme: str) -> None:
    found = colours(theme)
    text = {ink for ink in found if ink.startswith("ink-") or ink in ("text", "dim")}
    faint = {
        (ink, ground): round(contrast(found[ink], found[ground]), 2)
        for ink in text
        for ground in found.keys() - text - {"line", "focus"}
        if contrast(found[ink], found[ground]) < 4.5
    }
    assert len(text) == 11
    assert faint == {}


def test_mlir_has_no_token_that_is_an_error() -> None:
    text = "%1 = llvm.getelementptr inbounds|nuw %0[%1] : !llvm.struct<(ptr, i64)>"
    kinds = [kind for kind, _ in MLIRLexer().get_tokens(text)]
    assert Error not in kinds
