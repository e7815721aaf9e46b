"""The results as text for a screen.

The facts of a report -> lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]

GOALS = {"axpy": 0.9, "scale": 0.9, "exp": 0.9, "jacobi": 0.7, "jacobi-3d": 0.7, "sum": 0.85}
"""Of the copy bandwidth of the same run."""

NOT_KERNELS = ("steps", "launch")
"""Of these more than kernels is raced."""

LEFT = {
    "not_run": "no time for",
    "waits_for_hardware": "waits for hardware",
    "not_there": "not there",
    "on_cpu": "nothing of it runs on a device",
}
"""What of a part was not done, and why."""

MOST = 400
"""Letters of what went wrong; all of it is in the file."""

LAUNCH_GOAL = 1.3
"""Times what a RawKernel of CuPy's takes."""


def table(facts: Facts) -> str:
    """Of all parts."""
    return "\n".join(_lines(facts))


def _lines(facts: Facts) -> Iterator[str]:
    device = facts["machine"].get("device", {})
    yield ""
    yield f"device   {device.get('name') or device.get('missing')}"
    for name, part in facts["parts"].items():
        rows = part["rows"]
        bad = [row for row in rows if not row.get("ok", True)]
        count = f"{len(rows) - len(bad)} of {len(rows)} right" if rows else ""
        yield f"{name:<8} {part['state']:<10} {part.get('seconds', 0):>6.1f} s  {count}"
        yield from (f"    {line[:MOST]}" for line in part.get("error", "").splitlines()[-1:])
        yield from (f"    {way}" for way in part.get("ways", ()))
        for row in bad:
            label = next(str(row[k]) for k in ("case", "fault", "racer", "array") if k in row)
            said = str(row.get("said") or row.get("failed")).strip()
            yield f"    {label}: {said[:MOST]}"
        for key, words in LEFT.items():
            if part.get(key):
                yield f"    {words}: {', '.join(part[key])}"
    yield ""
    yield from grid(race_head(), race_rows(facts))
    for name, rate in facts["parts"].get("race", {}).get("bandwidth", {}).items():
        yield f"{name:<22} {rate / 1e9:>8.1f} GB/s"


def race_head() -> tuple[str, ...]:
    return ("race", "ours", "GB/s", "of copy", "goal", "peer", "GB/s", "peer", "agree",
            "predicted")  # fmt: skip


def race_rows(facts: Facts) -> list[tuple[str, ...]]:
    """A line for each racer; what is not known is empty."""
    part = facts["parts"].get("race", {})
    copied = part.get("bandwidth", {}).get("CuPy, within") or part.get("bandwidth", {}).get(
        "ours, within"
    )
    name = facts.get("machine", {}).get("device", {}).get("name", "")
    return [
        (*_race_row(row, copied), _predicted(row, name))
        for row in part.get("rows", ())
        if "ours_s" in row
    ]


def _predicted(row: Facts, device: str) -> str:
    """What the planner has for a turn on that card, of those that it knows."""
    seconds = [s for card, s in row.get("predicted_s", {}).items() if card in device]
    return f"{seconds[0] * 1e3:.3f} ms" if seconds and row["kind"] not in NOT_KERNELS else ""


def _race_row(row: Facts, copied: float | None) -> tuple[str, ...]:
    ours, peer = row["ours_s"], row.get("peer_s")
    name = row["racer"].removeprefix("race/")
    if ours <= 0:  # the difference of two times that are alike
        return (name, "too short", *[""] * 3, row["peer"], "", "", row["agree"])
    if row["kind"] == "steps":
        ratio = f"{ours / peer:.2f} ×" if peer else ""
        own, its = (f"{value * 1e3:.2f} ms" if value else "" for value in (ours, peer))
        steps = f"{row['peer']}, {row['turns']} iterations and copies"
        return (name, own, "", ratio, "", steps, "", its, row["agree"])
    if row["kind"] == "launch":
        ratio = f"{ours / peer:.2f} ×" if peer else ""
        goal = f"≤ {LAUNCH_GOAL} ×"
        own, its = (f"{value * 1e6:.2f} µs" if value else "" for value in (ours, peer))
        return (name, own, "", ratio, goal, row["peer"], "", its, row["agree"])
    rate = row["bytes"] / ours
    share = f"{rate / copied:.2f}" if copied and row["kind"] in GOALS else ""
    goal = f"≥ {GOALS[row['kind']]}" if row["kind"] in GOALS else ""
    its = f"{row['bytes'] / peer / 1e9:.0f}" if peer else ""
    took = f"{peer * 1e3:.3f} ms" if peer else ""
    return (
        name, f"{ours * 1e3:.3f} ms", f"{rate / 1e9:.0f}", share, goal, row["peer"], its,
        took, row["agree"],
    )  # fmt: skip


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    widths = [max(len(line[k]) for line in (head, *rows)) for k in range(len(head))]
    for line in (head, *rows):
        yield "  ".join(
            text.ljust(width) for text, width in zip(line, widths, strict=True)
        ).rstrip()
