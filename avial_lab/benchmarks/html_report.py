"""A race as a page in one file: pictures, tables, machine; it works from a disk, and asks nobody.

Sheet -> HTML.
"""

from __future__ import annotations

from avial_lab.benchmarks.charts import ratios_svg, roofline_svg
from avial_lab.benchmarks.table import OURS, Heat, Lane, Mean, Sheet, contestants, means
from avial_lab.core.table import Table
from avial_lab.plot import svg
from avial_lab.plot.page.page import page_html

Group = tuple[int, int, str]
"""ranks, threads, element type."""


def sheet_html(sheet: Sheet) -> str:
    """The page."""
    groups: dict[Group, list[Heat]] = {}
    for heat in sheet.heats:
        groups.setdefault((heat.ranks, heat.threads, heat.element), []).append(heat)
    found = list(means(sheet.heats))
    body = _head(sheet, found)
    for number, (group, heats) in enumerate(groups.items(), 1):
        own = [mean for mean in found if (mean.ranks, mean.threads, mean.element) == group]
        body += _section(number, group, heats, own)
    body += _made(sheet, len(groups) + 1)
    return page_html("Race – avial_lab", body)


def _head(sheet: Sheet, found: list[Mean]) -> str:
    kernels = len({heat.kernel for heat in sheet.heats})
    words = f"{kernels} kernel{'s' if kernels != 1 else ''}, {sheet.size}, {sheet.machine}"
    best = "".join(
        f"<div><dt>{svg.escape(_group_words((m.ranks, m.threads, m.element)))}</dt>"
        f"<dd>{m.ratio:.2f} ×</dd></div>"
        for m in found
        if not m.against
    )
    told = "".join(f"<p>{svg.escape(note)}</p>" for note in sheet.remarks)
    return (
        f"<h1>Race</h1><p class='lead'>{svg.escape(words)}</p>"
        f"<p>How many times faster {OURS} is than the best peer of each kernel, in the geometric "
        "mean:</p>"
        f"<dl class='facts'>{best}</dl>{told}"
    )


def _section(number: int, group: Group, heats: list[Heat], found: list[Mean]) -> str:
    pictures = ""
    if any(heat.ours for heat in heats):
        pictures += _picture(ratios_svg(heats))
    ceilings = heats[0].ceilings
    if ceilings is not None and any(heat.home and heat.flops for heat in heats):
        pictures += _picture(roofline_svg(heats, ceilings))
    tables = [_times(heats), _shares(heats), _mean_table(found), _compile(heats), _faults(heats)]
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


def _times(heats: list[Heat]) -> Table:
    names = contestants(heats)
    head = ("kernel", *names, "best peer", "×", "GFLOP/s", "GB/s")
    rows = tuple(_time_row(heat, names) for heat in heats)
    title = "Median of each contestant's runs, milliseconds; × is the best peer's over ours"
    return Table(title, head, rows, frozenset(head[1:]) - {"best peer"})


def _time_row(heat: Heat, names: tuple[str, ...]) -> tuple[str, ...]:
    lanes = {lane.contestant: lane for lane in heat.lanes}
    ours, best = heat.ours, heat.best
    rates = ("–", "–")
    if ours is not None:
        rates = (
            f"{heat.flops / ours.median_s / 1e9:.2f}",
            f"{heat.bytes / ours.median_s / 1e9:.2f}",
        )
    return (
        heat.kernel,
        *(_time(lanes.get(name)) for name in names),
        "–" if best is None else best.contestant,
        "–" if heat.ratio is None else f"{heat.ratio:.2f}",
        *rates,
    )


def _time(lane: Lane | None) -> str:
    if lane is None:
        return "–"
    return f"{lane.median_s * 1e3:.3f}" if lane.seconds else "fault"


def _shares(heats: list[Heat]) -> Table:
    names = contestants(heats)
    rows = []
    for heat in heats:
        lanes = {lane.contestant: lane for lane in heat.lanes}
        shares = [heat.roofline(lanes.get(name)) for name in names]
        rows.append((heat.kernel, *("–" if s is None else f"{s:.0%}" for s in shares)))
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


def _compile(heats: list[Heat]) -> Table:
    names = contestants(heats)
    rows = []
    for heat in heats:
        lanes = {lane.contestant: lane for lane in heat.home}
        times = (f"{lanes[n].compile_s:.2f}" if n in lanes else "–" for n in names)
        rows.append((heat.kernel, *times))
    title = "Seconds to compile, which are in no other time"
    return Table(title, ("kernel", *names), tuple(rows), frozenset(names))


def _faults(heats: list[Heat]) -> Table:
    rows = tuple(
        (heat.kernel, lane.contestant, lane.fault)
        for heat in heats
        for lane in heat.lanes
        if lane.fault
    )
    return Table("Contestants without a result", ("kernel", "contestant", "why"), rows)


def _made(sheet: Sheet, number: int) -> str:
    machine = sheet.machine
    rows = [("processor", machine.processor), ("architecture", machine.architecture)]
    rows += [("cores", str(machine.cores)), ("threads", str(machine.threads))]
    rows += [(f"L{cache.level}", str(cache).partition(" ")[2]) for cache in machine.caches]
    rows += [("ceilings", str(ceilings)) for ceilings in sheet.ceilings]
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
