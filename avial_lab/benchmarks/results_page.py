"""The page of results: everything measured that is kept in kernels/results, in tables.

JSON files of a folder -> Markdown. The same files make the same page. They are what `avial-lab
bench`, `bench --arrays`, `bench --python`, `bench --self` and `bench --passes` write with `--json`,
what a bundle found on a GPU (`runtime/bare/report.py`), and figures of earlier days that were
copied by hand:

    format      "avial-lab transcribed"
    version     1
    section     under which of `SECTIONS` it stands
    title, source (where it was copied from), machine (in words), notes
    made        {command, commit, date}; empty where the source does not say
    tables      [{title, head, rows}]: cells are text
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from avial_lab.benchmarks import array_cases, python_cases, worth_table
from avial_lab.benchmarks import json_report as race_facts
from avial_lab.benchmarks.worth_table import HEAD, cells, machine_of, worth_of
from avial_lab.core.errors import BindError
from avial_lab.runtime.bare import report
from avial_lab.runtime.bare.table import LEFT, race_head, race_rows

FOLDER = Path(__file__).parents[2] / "kernels" / "results"
PAGE = "README.md"

SECTIONS = (
    "The race", "What each optional pass is worth", "avial_lab itself", "GPUs", "Other figures",
)  # fmt: skip

SELF = "avial-lab self"
TRANSCRIBED = "avial-lab transcribed"


def page_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how the page is asked for."""
    parser.add_argument(
        "--page",
        action="store_true",
        help="make kernels/results/README.md of the JSON files beside it, and measure nothing",
    )


def page_command(options: argparse.Namespace) -> int:
    """Write the page."""
    if len(options.given) > len(("bench", "--page")):
        raise BindError("bench --page measures nothing", hint="leave the other arguments out")
    write_page()
    return 0


Facts = Mapping[str, Any]
Lines = Iterator[str]


def write_page(folder: Path = FOLDER) -> Path:
    """The page, written beside the files. BindError where there are none, or one is unreadable."""
    page = folder / PAGE
    text = page_of(folder)
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BindError(f"{page} cannot be written: {error.strerror}") from None
    return page


def page_of(folder: Path = FOLDER) -> str:
    """The text of the page of all JSON files in that folder, in the order of their names."""
    files = sorted(folder.glob("*.json"), key=lambda file: file.stem)
    if not files:
        raise BindError(
            "there are no results to make a page of",
            hint="avial-lab bench --json kernels/results/NAME.json, in a clone of the repository",
        )
    known = [(file.name, _read(file)) for file in files]
    lines = [
        "# Results",
        "",
        "<!-- Made by `avial-lab bench --page` of the JSON files in this folder. -->",
        "",
        "All that was measured and is kept, each with its machine and its command; `avial-lab "
        "bench --page` makes this page of the files beside it. Times of different machines, or of "
        "different days of one, are not to be compared.",
    ]
    for section in SECTIONS:
        of = [(name, facts) for name, facts in known if _section(facts) == section]
        if of:
            lines += ["", f"## {section}"]
        for name, facts in of:
            lines += ["", *_shown(name, facts)]
    return "\n".join(lines) + "\n"


def _read(file: Path) -> Facts:
    try:
        facts: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BindError(f"{file.name} cannot be read: {error}") from None
    form = facts.get("format") if isinstance(facts, dict) else None
    if form not in _TABLES:
        raise BindError(
            f"{file.name} is not a file of avial-lab results: its format is {form!r}",
            hint=f"formats are {', '.join(_TABLES)}",
        )
    return facts


def _section(facts: Facts) -> str:
    fixed = {
        race_facts.FORMAT: 0, array_cases.FORMAT: 0, python_cases.FORMAT: 0, worth_table.FORMAT: 1,
        SELF: 2, report.FORMAT: 3,
    }  # fmt: skip
    return SECTIONS[fixed[facts["format"]]] if facts["format"] in fixed else facts["section"]


def _shown(name: str, facts: Facts) -> Lines:
    """A file: what it is, where it is from, its tables, its notes."""
    title, body = _TABLES[facts["format"]]
    yield f"### {_cell(title(facts))}"
    yield ""
    yield from _origin(name, facts)
    yield from body(facts)
    notes = _notes(facts)
    if notes:
        yield ""
        yield from (f"- {_cell(note)}" for note in notes)


def _notes(facts: Facts) -> Sequence[str]:
    if facts["format"] != worth_table.FORMAT:
        return facts.get("notes") or ()
    worth = worth_of(facts)
    return (*worth.faults, *worth.remarks)


def _origin(name: str, facts: Facts) -> Lines:
    made, machine = facts.get("made") or {}, facts["machine"]
    if facts["format"] == report.FORMAT:
        words = _gpu_machine(machine)
    else:
        words = machine if isinstance(machine, str) else str(machine_of(machine))
    parts = [f"[{name}]({name})", words]
    parts += [f"commit {made['commit']}"] if made.get("commit") else []
    parts += [made["date"]] if made.get("date") else []
    versions = made.get("versions") or {}
    parts += [", ".join(f"{what} {version}" for what, version in versions.items())]
    parts += [facts["source"]] if facts.get("source") else []
    yield "; ".join(filter(None, parts)) + "."
    if made.get("command"):
        yield from ("", "```", made["command"], "```")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """With an empty line before it."""
    yield ""
    yield f"| {' | '.join(map(_cell, head))} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(text: str) -> str:
    r"""As Markdown shows it: no cell ends in it, and no page's text begins.

    >>> _cell("a | b <script>")
    'a \\| b &lt;script>'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")


# -- one kind of file each -------------------------------------------------------------------------


def _race_title(facts: Facts) -> str:
    return f"{_kernels(len({raced['kernel'] for raced in facts['heats']}))}, {facts['size']}"


def _kernels(count: int) -> str:
    return f"{count} kernel{'' if count == 1 else 's'}"


def _race(facts: Facts) -> Lines:
    """A table for each number of ranks, number of threads and element type."""
    groups: dict[tuple[int, int, str], list[Facts]] = {}
    for raced in facts["heats"]:
        key = (raced["ranks"], raced["threads"], raced["element"])
        groups.setdefault(key, []).append(raced)
    head = ("kernel", "ours, ms", "best peer, ms", "", "×", "compile, s")
    for (ranks, threads, element), rounds in groups.items():
        yield ""
        yield f"{element}, {_plural(ranks, 'rank')} of {_plural(threads, 'thread')}:"
        yield from _table(head, [_round(raced) for raced in rounds])
    for mean in facts["means"]:
        if mean["against"] is None:
            yield ""
            yield (
                f"{mean['element']}, {mean['ranks']} × {mean['threads']}: geometric mean "
                f"{mean['ratio']:.2f} of {_kernels(mean['kernels'])}, the least "
                f"{mean['worst_kernel']} with {mean['worst_ratio']:.2f}."
            )


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _round(raced: Facts) -> tuple[str, ...]:
    results = {result["contestant"]: result for result in raced["lanes"]}
    ours, best = results.get("avial"), results.get(raced["best_peer"])
    return (
        raced["kernel"],
        _milliseconds(ours),
        _milliseconds(best),
        raced["best_peer"] or "",
        "–" if raced["ratio"] is None else f"{raced['ratio']:.2f}",
        "–" if not ours or ours["compile_s"] is None else f"{ours['compile_s']:.2f}",
    )


def _milliseconds(result: Facts | None) -> str:
    if result is None:
        return "–"
    return result["fault"] or f"{result['median_s'] * 1e3:.3g}"


def _passes_title(facts: Facts) -> str:
    worth = worth_of(facts)
    raced = sum(not timed.skipped for timed in worth.programs)
    return f"{_plural(raced, 'program')}, {worth.size}, {worth.ranks} × {worth.threads}"


def _passes(facts: Facts) -> Lines:
    yield from _table(HEAD, [cells(row) for row in worth_of(facts).rows])
    yield ""
    yield worth_table.GAIN


def _self(facts: Facts) -> Lines:
    rows = [
        (row["what"], f"{row['value']:.3g} {row['unit']}", f"{row['goal']:g} {row['unit']}")
        for row in facts["rows"]
    ]
    yield from _table(("", "measured", "goal"), rows)


def _transcribed(facts: Facts) -> Lines:
    for table in facts["tables"]:
        if table.get("title"):
            yield ""
            yield f"{_cell(table['title'])}:"
        yield from _table(table["head"], table["rows"])


def _gpu_machine(machine: Facts) -> str:
    device, asked = machine["device"], machine.get("nvidia_smi") or {}
    memory = f"{device['memory_bytes'] / 2**30:.0f} GiB" if "memory_bytes" in device else ""
    driver = f"driver {asked['driver_version']}" if "driver_version" in asked else ""
    parts = (device.get("name") or device.get("missing"), memory, driver, machine["cpu"])
    return ", ".join(filter(None, parts))


def _gpu_title(facts: Facts) -> str:
    device = facts["machine"]["device"]
    emulated = " (a rehearsal, no hardware)" if device.get("driver") == "apart" else ""
    return f"{device.get('name') or 'no device'}{emulated}"


def _gpu(facts: Facts) -> Lines:
    """What was right, part by part; the race; bandwidths."""
    rows = []
    for part in facts["parts"].values():
        found = part["rows"]
        right = sum(row.get("ok", True) for row in found)
        left = [name for key in LEFT for name in part.get(key, ())]
        count = f"{right} of {len(found)}" if found else ""
        rows.append((part["what"], part["state"], count, f"{len(left) or ''}"))
    yield from _table(("part", "", "right", "not run"), rows)
    raced = race_rows(facts)
    if raced:
        yield from _table(race_head(), raced)
    rates = facts["parts"].get("race", {}).get("bandwidth", {})
    if rates:
        copied = [(name, f"{rate / 1e9:.1f}") for name, rate in rates.items()]
        yield from _table(("copies of 1 GiB", "GB/s"), copied)


_TABLES: Mapping[str, tuple[Callable[[Facts], str], Callable[[Facts], Lines]]] = {
    race_facts.FORMAT: (_race_title, _race),
    array_cases.FORMAT: (
        lambda facts: f"Programs on arrays, {facts['size']}",
        lambda facts: _table(facts["head"], facts["rows"]),
    ),
    python_cases.FORMAT: (
        lambda facts: f"Python functions, {facts['size']}",
        lambda facts: _table(facts["head"], facts["rows"]),
    ),
    worth_table.FORMAT: (_passes_title, _passes),
    report.FORMAT: (_gpu_title, _gpu),
    SELF: (lambda facts: facts.get("title", "Compiler, dispatch and messages"), _self),
    TRANSCRIBED: (lambda facts: facts["title"], _transcribed),
}
