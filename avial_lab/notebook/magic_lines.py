"""Lines of options as they are typed: what can come next, and what an option means.

A line and the argparse parser that will read it -> words, Markdown. Nothing is written twice:
names, choices and help are the parser's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence

from avial_lab.core.command_line import command_of

Words = Callable[[str, Sequence[str]], Iterable[str]]
"""The values of an argument, by its name in the parser, after the words before it."""

LISTS = ("show",)
"""Options whose value is a list with commas."""


def complete_line(
    line: str, parser: argparse.ArgumentParser, values: Words
) -> tuple[str, list[str]]:
    """What is typed of the last word of `line`, behind the magic's name, and what it can become."""
    words = line.split(" ")
    before, fragment = [word for word in words[:-1] if word], words[-1]
    parser, before = command_of(parser, before)
    option, separator, begun = fragment.partition("=")
    action = _option(parser, option) if separator else None
    if action is not None:
        return _valued(action, begun, values, before)
    if before and (action := _awaiting(parser, before[-1])) is not None:
        return _valued(action, fragment, values, before)
    words = [] if fragment.startswith("-") else _positional(parser, before, values)
    options = [] if fragment == "" and words else _options(parser, before)
    return fragment, [word for word in (*words, *options) if word.startswith(fragment)]


def describe_option(line: str, word: str, parser: argparse.ArgumentParser) -> str | None:
    """Markdown for the option, or the command, that `word` of the line is."""
    parser, _ = command_of(parser, line.split())
    action = _option(parser, word.partition("=")[0])
    if action is None:
        return None
    names = ", ".join(action.option_strings)
    taken = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    choices = f"\n\nOne of: {', '.join(map(str, action.choices))}." if action.choices else ""
    return f"**`{names}{taken}`**\n\n{_help(action)}{choices}"


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _option(parser: argparse.ArgumentParser, name: str) -> argparse.Action | None:
    return parser._option_string_actions.get(name)


def _awaiting(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    """The option whose value comes after `word`."""
    action = _option(parser, word)
    return None if action is None or action.nargs == 0 else action


def _valued(
    action: argparse.Action, begun: str, values: Words, before: Sequence[str]
) -> tuple[str, list[str]]:
    chosen: list[str] = []
    if action.dest in LISTS:
        *chosen, begun = begun.split(",")
    words = action.choices or values(action.dest, before)
    return begun, [
        word for word in map(str, words) if word.startswith(begun) and word not in chosen
    ]


def _positional(parser: argparse.ArgumentParser, before: Sequence[str], values: Words) -> list[str]:
    """What the next argument without a name can be."""
    given = [
        word
        for previous, word in zip(("", *before), before, strict=False)
        if not word.startswith("-") and _awaiting(parser, previous) is None
    ]
    arguments = [action for action in parser._actions if not action.option_strings]
    if len(given) >= len(arguments):
        return []
    action = arguments[len(given)]
    return list(map(str, action.choices or values(action.dest, given)))


def _options(parser: argparse.ArgumentParser, before: Sequence[str]) -> list[str]:
    """The long names of the options not yet given; those with a value end in `=`."""
    given = {_option(parser, word.partition("=")[0]) for word in before}
    found = []
    for action in parser._actions:
        if not action.option_strings or (action in given and action.default != []):
            continue
        name = max(action.option_strings, key=len)
        found.append(name if action.nargs in (0, "?") or len(name) == 2 else f"{name}=")
    return found
