"""Command lines whose errors name what was meant.

Words as they were typed -> argparse's own answer; beside an option or a choice that it does not
know, the nearest that there is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, cast

from avial_lab.core.errors import cut

MOST_WORDS = 600
"""Characters of what is wrong, beside the usage: what was typed may be long."""


class NearestWords(argparse.ArgumentParser):
    """A parser, and those of its commands, whose errors name the nearest word."""

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride] - one overload is enough
        self, args: Iterable[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        words = sys.argv[1:] if args is None else list(args)
        command, rest = command_of(self, words)
        # Before argparse looks: it would say first that an argument is missing.
        if (unknown := _unknown_option(command, rest)) is not None:
            _refuse(command, unknown)
        return super().parse_args(words, namespace or argparse.Namespace())

    def error(self, message: str) -> NoReturn:
        super().error(cut(message, MOST_WORDS))

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - any type
        choices = action.choices
        if choices is not None and value not in choices and (near := nearest(value, choices)):
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {near}?")
        super()._check_value(action, value)


def nearest(word: object, there: Iterable[object]) -> str | None:
    """The one of `there` that is most like the word, if any is."""
    return next(iter(get_close_matches(str(word), map(str, there), n=1)), None)


def command_of(
    parser: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser of the subcommand, where the words name one, and the words behind its name."""
    rest = list(words)
    while rest and rest[0] in (commands := _commands(parser)):
        parser = commands[rest.pop(0)]
    return parser, rest


def _commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """By name; argparse takes them for the choices of an argument."""
    for action in parser._actions:
        choices: object = action.choices
        if isinstance(choices, Mapping):
            return cast("Mapping[str, argparse.ArgumentParser]", choices)
    return {}


def _unknown_option(command: argparse.ArgumentParser, words: Sequence[str]) -> str | None:
    """The first long option that the command has not, not even as the beginning of one."""
    if any(action.nargs == argparse.REMAINDER for action in command._actions):
        return None  # it hands words on that it does not know
    for word in words[: words.index("--") if "--" in words else None]:
        name = word.partition("=")[0]
        is_option = name.startswith("--") and " " not in name
        if is_option and not any(there.startswith(name) for there in _long_options(command)):
            return word
    return None


def _refuse(command: argparse.ArgumentParser, word: str) -> NoReturn:
    name = word.partition("=")[0].removeprefix("--")
    near = nearest(name, (there.removeprefix("--") for there in _long_options(command)))
    meant = f"; did you mean --{near}?" if near else ""
    command.error(f"unrecognized arguments: {word}{meant}")


def _long_options(command: argparse.ArgumentParser) -> list[str]:
    return [name for name in command._option_string_actions if name.startswith("--")]
