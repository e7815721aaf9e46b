"""The demo: the deck's program on random data, from text to a cluster and back.

Nothing -> printed levels, placement, check and timings, a page, and 0 where the result is right.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import numpy as np

from avial_lab import plot
from avial_lab.program import compilation, program
from avial_lab.runtime.launch.cluster import Cluster

ELEMENTS = 20
"""The deck's arrays have twenty elements."""


def deck_text() -> str:
    """The program on Avial's slides, in its short notation."""
    return files("avial_lab.lessons").joinpath("first_light.avial").read_text(encoding="utf-8")


def demo(page: Path, *, picture_path: Path | None = None) -> int:
    """Run the program on 2 CPU engines and 1 GPU engine; compare with NumPy and the reference."""
    text = deck_text()
    print(text)
    _say("starting a cluster of 2 CPU engines and 1 GPU engine (some seconds) …")
    with Cluster.start(cpu=2, gpu=1, progress=_say) as cluster:
        rng = np.random.default_rng()
        a, b = (rng.integers(-1000, 1000, ELEMENTS, dtype=np.int32) for _ in range(2))
        c, d = (np.zeros(ELEMENTS, np.int32) for _ in range(2))
        _say("parsing, placing, lowering and compiling …")
        compiled = compilation.compile(
            text,
            arrays={"a": a, "b": b, "c": c, "d": d},
            topology=cluster.topology,
            cell="first_light.avial",
            name="first light",
        )
        _say("running …")
        trace = compiled.run(cluster, check=True)
        _say("")
    print(plot.graph_text(compiled.graph, compiled.schedule))
    print(plot.trace_text(trace))
    print("compiled in " + ", ".join(f"{n} {s * 1e3:.0f} ms" for n, s in compiled.seconds.items()))
    print(f"check: {compiled.check_report}")
    right = np.array_equal(c, a + b) and np.array_equal(d, (a + b) + a * b)
    print(f"NumPy agrees: d = (a + b) + a * b is {right}")
    compiled.report(page)
    if picture_path is not None:
        picture_path.write_text(picture(compiled), encoding="utf-8")
    print(f"the full report is in {page}")
    return 0 if right else 1


def picture(compiled: program.Program) -> str:
    """The task graph beside the schedule, as one SVG: the picture of the README."""
    parts = [plot.dag_svg(compiled.graph, compiled.schedule), plot.lanes_svg(compiled.schedule)]
    sizes = [tuple(map(float, _SIZE.findall(part)[0])) for part in parts]
    width = sum(size[0] for size in sizes) + _GAP
    height = max(size[1] for size in sizes)
    second = parts[1].replace("<svg ", f'<svg x="{sizes[0][0] + _GAP:g}" ', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">{parts[0]}{second}</svg>\n'
    )


_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"')
_GAP = 16


def _say(line: str) -> None:
    if line:
        print(line, flush=True)
