"""How a program is compiled: each option survives every way that it goes, and what is no value of
one is refused.
"""

from __future__ import annotations

import ast
import inspect
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import avial_lab
from avial_lab.artifact.stages import Stage
from avial_lab.cli.main import main
from avial_lab.compiler import options as options_module
from avial_lab.compiler.catalogue import OPTIONAL, SIZES
from avial_lab.compiler.lowering.opt import parse_passes
from avial_lab.compiler.options import (
    OPTIONS,
    CompileOptions,
    Keywords,
    command_line,
    given,
    keywords,
    tuning_key,
)
from avial_lab.compiler.requests import Build, Source
from avial_lab.core.errors import AvialError, PassError, ScheduleError
from avial_lab.machine.topology import Topology
from avial_lab.notebook.magics import AvialMagics, _parse
from avial_lab.program import cached_build, compilation, program
from avial_lab.program.command_line import command_line_of
from avial_lab.program.compiler_client import save_reproducer
from avial_lab.program.reproducer import reproducer
from avial_lab.program.tuned import tuning_key_of

# -- each option on every way that it goes ---------------------------------------------------------

TEXT = "avial.schedule %a {}"
ON_TENSORS = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
"""For options that are for such functions alone."""
OTHERS = {
    "sizes": "block-contractions{terms=128 block=48}",
    "gradient": "w0+w1",
    "update": "sgd lr=0.5 decay=0.0",
}
"""What is no default, for options that say nothing of their values."""


def other_value(name: str) -> Any:
    """What a caller may give for the option in place of its default."""
    option, default = OPTIONS[name], getattr(CompileOptions(), name)
    if isinstance(default, bool):
        return not default
    if option.kind is int:
        return (default or 0) + 1
    words = [OTHERS[name]] if name in OTHERS else [*option.choices, *option.words]
    return next((word for word in words if option.read(word) != default), words[-1])


@pytest.fixture(params=OPTIONS)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of each option; of one that has a single value, as if that were not its default."""
    name: str = request.param
    if OPTIONS[name].read(other_value(name)) == getattr(CompileOptions(), name):
        assert len(OPTIONS[name].choices) == 1
        no_default: dict[str, Any] = {name: None}
        monkeypatch.setattr(options_module, "_DEFAULTS", CompileOptions(**no_default))
    return name


def chosen(name: str) -> CompileOptions:
    other: dict[str, Any] = {name: other_value(name)}
    options = CompileOptions.of(**other)
    assert getattr(options, name) != getattr(options_module._DEFAULTS, name)
    return options


def machine_of(options: CompileOptions) -> Topology:
    gpus = options.gpus or int(options.on == "gpu")
    return Topology.local(options.ranks, gpus=gpus)


class AskedError(AvialError):
    """In place of a compiler's answer."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Build]:
    """The questions that would have been built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    questions: list[Build] = []

    def ask(question: Build, *_: object) -> None:
        questions.append(question)
        raise AskedError("asked")

    for module in (compilation, program):
        monkeypatch.setattr(module, "build", ask)
    return questions


def test_it_is_read_as_it_is_written(name: str) -> None:
    options = chosen(name)
    assert OPTIONS[name].read(keywords(options)[name]) == getattr(options, name)
    assert options.changed() == options


def test_it_survives_the_command_line(name: str, asked: list[Build], tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text("func.func @f() { return }")
    assert main(["run", str(tmp_path / "f.mlir"), *command_line(chosen(name))]) == 1
    assert [question.options for question in asked] == [chosen(name)]


def test_it_survives_the_magics(name: str) -> None:
    line = shlex.join(command_line(chosen(name)))
    assert CompileOptions.of(**given(_parse(AvialMagics.avial.parser, line))) == chosen(name)


def test_it_survives_compile(name: str, asked: list[Build]) -> None:
    text = ON_TENSORS if name in ("parallel", "gradient", "update") else TEXT
    with pytest.raises(AskedError):
        avial_lab.compile(text, **{name: other_value(name)})
    assert [question.options for question in asked] == [chosen(name)]


def test_it_survives_the_line_that_makes_the_program_again(name: str) -> None:
    options = chosen(name)
    machine = machine_of(options)
    line = command_line_of("f", Build(Source(TEXT, "cell"), options=options), machine)
    assert OPTIONS[name].flags[0] in line
    at = line.index("-n")
    parsed = _parse(AvialMagics.avial.parser, shlex.join(line[at:]))
    assert CompileOptions.of(**given(parsed)) == options.changed(gpus=machine.gpus)


def test_it_is_in_the_reproducer(name: str) -> None:
    options = chosen(name)
    machine = machine_of(options)
    text = reproducer(
        Build(Source(TEXT, "cell"), options=options), {"llvm": Stage("llvm", "", "mlir", "")}, {},
        storages=(), topology=machine, edits=(), stage="llvm", name="f", file="f.py",
    )  # fmt: skip
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (call,) = (node for node in calls if ast.unparse(node.func) == "avial_lab.compile")
    values = {
        word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg in OPTIONS
    }
    expected = keywords(options) | {"gpus": machine.gpus}
    assert values == expected | {"sizes": expected["sizes"] or "model"}


def test_it_is_in_the_report_of_a_crash(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = chosen(name)
    folder = save_reproducer(Build(Source(TEXT, "cell"), options=options), "it died", "")
    assert folder is not None
    asked = shlex.join(["Build", *command_line(options)])
    assert f"asked: {asked}\n" in (folder / "report.txt").read_text()


def key_of(options: CompileOptions, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the binary in the cache."""
    keys: list[str] = []

    def once(_: str, key: str, make: Callable[[], object]) -> None:
        keys.append(key)
        raise AskedError("asked")

    monkeypatch.setattr(cached_build, "made_once", once)
    with pytest.raises(AskedError):
        cached_build.build(Build(Source(TEXT, "cell"), options=options), None)
    return keys[0]


def test_it_changes_the_key_in_the_cache_where_it_should(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = options_module._DEFAULTS
    keys = {key_of(chosen(name), monkeypatch), key_of(default, monkeypatch)}
    assert len(keys) == 2 - OPTIONS[name].of_runs


def test_it_changes_what_tuning_remembers_where_it_should(name: str) -> None:
    keys = {
        tuning_key_of(Build(Source(TEXT, "cell"), options=options))
        for options in (chosen(name), options_module._DEFAULTS)
    }
    assert len(keys) == 1 + OPTIONS[name].in_tuning


def test_what_is_tuned_is_no_part_of_its_key() -> None:
    """The search changes these, and runs on one rank."""
    assert {name for name, option in OPTIONS.items() if option.in_tuning} >= {"strict", "blas"}
    assert tuning_key(CompileOptions.of(without="all", ranks=1)) == tuning_key(CompileOptions())


# -- what a caller gives ---------------------------------------------------------------------------


def test_callers_know_of_every_option() -> None:
    assert list(Keywords.__annotations__) == list(OPTIONS)
    shown = inspect.signature(avial_lab.compile).parameters
    assert {name: shown[name].default for name in OPTIONS} == keywords(CompileOptions())
    assert "options" not in shown


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="there is no option 'stric' of compile; did you mean 'st"):
        avial_lab.compile(TEXT, stric=True)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "eft"}, "unknown policy 'eft'"),
        ({"sync": "never"}, "unknown sync 'never'"),
        ({"division": "rows"}, "unknown division 'rows'"),
        ({"ranks": 0}, "0 ranks cannot run a program"),
        ({"ranks": 10**6}, "more than this machine can start"),
        ({"gpus": 33}, "33 GPUs cannot be driven by 2 ranks"),
        ({"gpus": -1}, "-1 GPUs cannot be driven by 2 ranks"),
    ],
)
def test_what_is_no_value_is_refused(options: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ScheduleError, match=said) as raised:
        CompileOptions.of(**options)
    assert raised.value.hint


def test_the_models_sizes_are_asked_for_and_built_like_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, default = CompileOptions.of(sizes="model"), CompileOptions()
    assert model != default
    assert not model.is_chosen
    assert key_of(model, monkeypatch) == key_of(default, monkeypatch)


# -- passes and their sizes ------------------------------------------------------------------------


@pytest.mark.parametrize("without", ["all", "interchange-loops, all", OPTIONAL, ",".join(OPTIONAL)])
def test_passes_are_left_out_by_name(without):
    options = CompileOptions.of(without=without)
    assert options.without == OPTIONAL
    assert not any(options.keeps(name) for name in OPTIONAL)


def test_all_are_kept_where_none_is_named():
    assert all(CompileOptions().keeps(name) for name in OPTIONAL)


def test_an_unknown_pass_is_refused_with_those_that_are_there():
    with pytest.raises(ScheduleError, match="there is no optional pass 'inline'") as raised:
        CompileOptions.of(without="inline")
    assert "interchange-loops" in str(raised.value)


def test_sizes_are_read_in_any_order_and_told_in_one():
    options = CompileOptions.of(
        sizes=" tile-time{widths=8x16},block-contractions{block=48 terms=7}"
    )
    assert options.sizes_text == "block-contractions{terms=7 block=48},tile-time{widths=8x16}"
    assert options == CompileOptions.of(sizes=options.sizes_text)
    assert options.sizes_of("block-contractions") == {"terms": 7, "block": 48}
    assert options.sizes_of("interchange-loops") == {}


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("block-contractions{terms=0}", "from 1 to 65,536"),
        ("block-contractions{terms=-3}", "from 1 to 65,536"),
        ("block-contractions{terms=65537}", "from 1 to 65,536"),
        ("block-contractions{terms=many}", "from 1 to 65,536"),
        ("block-contractions{block=9}", "from 8 to 8,192, a multiple of 8"),
        ("tile-time{widths=8}", "2 or 3 numbers as in 8x16, each from 1 to 65,536"),
        ("tile-time{widths=8x0}", "each from 1 to 65,536"),
        ("jam-for-latency{rows=1}", "from 2 to 64"),
        ("block-contractions{term=8}", "it has: terms, block, steps"),
        ("interchange-loops{a=1}", "there are: widen-halos, share-parts, normalise-tasks"),
        ("block-contractions{terms=8", "for example block-contractions"),
        ("terms=8", "for example block-contractions"),
    ],
)
def test_sizes_that_make_no_sense_are_refused_with_the_range(sizes: str, said: str):
    with pytest.raises(ScheduleError) as raised:
        CompileOptions.of(sizes=sizes)
    assert said in str(raised.value)


def test_a_pass_that_is_left_out_has_no_sizes():
    with pytest.raises(ScheduleError, match="left out, but sizes are given"):
        CompileOptions.of(without="block-contractions", sizes="block-contractions{terms=8}")


def test_every_size_is_an_option_of_its_pass():
    for name, sizes in SIZES.items():
        text = " ".join(
            f"{key}={'x'.join([str(size.least)] * size.numbers[0])}" for key, size in sizes.items()
        )
        assert [str(made) for made in parse_passes(f"{name}{{{text}}}")] == [f"{name}{{{text}}}"]


@pytest.mark.parametrize(
    "text",
    [
        "func.func(canonicalize)",
        "canonicalize{",
        "interchange-loops,,cse",
        "interchange-loops cse",
        "",
    ],
)
def test_what_is_not_written_as_passes_is_refused(text: str):
    with pytest.raises(PassError, match="not a list of passes"):
        parse_passes(text)
