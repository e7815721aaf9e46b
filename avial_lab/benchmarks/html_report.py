"""A race as a page in one file: pictures, tables, machine; it works from a disk, and asks nobody.

Report -> HTML.
"""

from __future__ import annotations

from avial_lab.benchmarks.charts import ratios_svg, roofline_svg
from avial_lab.benchmarks.table import OURS, Mean, Report, Result, Round, contestants, means
from avial_lab.core.table import Table
from avial_lab.plot import svg
from avial_lab.plot.page.page import page_html

Group = tuple[int, int, str]
"""ranks, threads, element type."""


def report_html(report: Report) -> str:
    """The page."""
    groups: dict[Group, list[Round]] = {}
    for raced in report.rounds:
        groups.setdefault((raced.ranks, raced.threads, raced.element), []).append(raced)
    found = list(means(report.rounds))
    body = _head(report, found)
    for number, (group, rounds) in enumerate(groups.items(), 1):
        own = [mean for mean in found if (mean.ranks, mean.threads, mean.element) == group]
        body += _section(number, group, rounds, own)
    body += _machine_section(report, len(groups) + 1)
    return page_html("Race – avial_lab", body)


def _head(report: Report, found: list[Mean]) -> str:
    kernels = len({raced.kernel for raced in report.rounds})
    words = f"{kernels} kernel{'s' if kernels != 1 else ''}, {report.size}, {report.machine}"
    best = "".join(
        f"<div><dt>{svg.escape(_group_words((m.ranks, m.threads, m.element)))}</dt>"
        f"<dd>{m.ratio:.2f} ×</dd></div>"
        for m in found
        if not m.against
    )
    remarks = "".join(f"<p>{svg.escape(note)}</p>" for note in report.remarks)
    return (
        f"<h1>Race</h1><p class='lead'>{svg.escape(words)}</p>"
        f"<p>How many times faster {OURS} is than the best peer of each kernel, in the geometric "
        "mean:</p>"
        f"<dl class='facts'>{best}</dl>{remarks}"
    )


def _section(number: int, group: Group, rounds: list[Round], found: list[Mean]) -> str:
    pictures = ""
    if any(raced.ours for raced in rounds):
        pictures += _picture(ratios_svg(rounds))
    ceilings = rounds[0].ceilings
    if ceilings is not None and any(raced.home and raced.flops for raced in rounds):
        pictures += _picture(roofline_svg(rounds, ceilings))
    tables = [
        _times(rounds),
        _shares(rounds),
        _mean_table(found),
        _compile(rounds),
        _faults(rounds),
    ]
    written = "".join(f"<div class='table'>{t.to_html()}</div>" for t in tables if t.rows)
    return (
        f"<section id='race-{number}'><h2 tabindex='-1'><span class='step'>{number}</span>"
        f"{svg.escape(_group_words(group))}</h2>{pictures}{written}</section>"
    )


def _group_words(group: Group) -> str:
    ranks, threads, element = group
    return (
        f"{element}, {ranks} rank{'s' if ranks > 1 else ''} × "
        f"{threads} thread{'s' if threads > 1 else ''}"
    )


def _times(rounds: list[Round]) -> Table:
    names = contestants(rounds)
    head = ("kernel", *names, "best peer", "×", "GFLOP/s", "GB/s")
    rows = tuple(_time_row(raced, names) for raced in rounds)
    title = "Median of each contestant's runs, milliseconds; × is the best peer's over ours"
    return Table(title, head, rows, frozenset(head[1:]) - {"best peer"})


def _time_row(raced: Round, names: tuple[str, ...]) -> tuple[str, ...]:
    results = {result.contestant: result for result in raced.results}
    ours, best = raced.ours, raced.best
    rates = ("–", "–")
    if ours is not None:
        rates = (
            f"{raced.flops / ours.median_s / 1e9:.2f}",
            f"{raced.bytes / ours.median_s / 1e9:.2f}",
        )
    return (
        raced.kernel,
        *(_time(results.get(name)) for name in names),
        "–" if best is None else best.contestant,
        "–" if raced.ratio is None else f"{raced.ratio:.2f}",
        *rates,
    )


def _time(result: Result | None) -> str:
    if result is None:
        return "–"
    return f"{result.median_s * 1e3:.3f}" if result.seconds else "fault"


def _shares(rounds: list[Round]) -> Table:
    names = contestants(rounds)
    rows = []
    for raced in rounds:
        results = {result.contestant: result for result in raced.results}
        shares = [raced.roofline(results.get(name)) for name in names]
        rows.append((raced.kernel, *("–" if s is None else f"{s:.0%}" for s in shares)))
    return Table("Fraction of the roofline", ("kernel", *names), tuple(rows), frozenset(names))


def _mean_table(found: list[Mean]) -> Table:
    head = ("against", "geometric mean", "kernels", "worst kernel", "there")
    rows = tuple(
        (m.against or "the best peer", f"{m.ratio:.2f}", str(m.kernels), m.worst_kernel,
         f"{m.worst_ratio:.2f}")
        for m in found
    )  # fmt: skip
    numbers = frozenset(("geometric mean", "kernels", "there"))
    return Table("Their time over ours", head, rows, numbers)


def _compile(rounds: list[Round]) -> Table:
    names = contestants(rounds)
    rows = []
    for raced in rounds:
        results = {result.contestant: result for result in raced.home}
        times = (f"{results[n].compile_s:.2f}" if n in results else "–" for n in names)
        rows.append((raced.kernel, *times))
    title = "Seconds to compile, which are in no other time"
    return Table(title, ("kernel", *names), tuple(rows), frozenset(names))


def _faults(rounds: list[Round]) -> Table:
    rows = tuple(
        (raced.kernel, result.contestant, result.fault)
        for raced in rounds
        for result in raced.results
        if result.fault
    )
    return Table("Contestants without a result", ("kernel", "contestant", "why"), rows)


def _machine_section(report: Report, number: int) -> str:
    machine = report.machine
    rows = [("processor", machine.processor), ("architecture", machine.architecture)]
    rows += [("cores", str(machine.cores)), ("threads", str(machine.threads))]
    rows += [(f"L{cache.level}", str(cache).partition(" ")[2]) for cache in machine.caches]
    rows += [("ceilings", str(ceilings)) for ceilings in report.ceilings]
    table = Table("Machine", ("what", "here"), tuple(rows))
    return (
        f"<section id='machine'><h2 tabindex='-1'><span class='step'>{number}</span>Machine</h2>"
        f"<p>Every result was checked before it was timed. All contestants ran alternately in one "
        f"session, each in its own process, pinned to the same cores.</p>"
        f"<div class='table'>{table.to_html()}</div></section>"
        "<footer>Made by avial_lab. This page is self-contained.</footer>"
    )


def _picture(picture: str) -> str:
    return f"<div class='picture'>{picture}</div>"
