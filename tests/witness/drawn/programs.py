"""Whole programs: bodies in a function, or as tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
from hypothesis import strategies as st

from tests.witness.drawn.body import Body
from tests.witness.drawn.loops import numbers_body
from tests.witness.drawn.tensors import tensors_body
from tests.witness.drawn.views import views_body


@dataclass
class Drawn:
    """`text` works on `arrays`; its results, if it has any, are result0, …"""

    text: str
    arrays: dict[str, np.ndarray]

    def __repr__(self) -> str:
        listed = ", ".join(f"{k}={v.tolist()}: {v.dtype}" for k, v in self.arrays.items())
        return f"\n{self.text}\n{listed}"


Maker = Callable[[st.DrawFn, str], Body]
BODIES: tuple[Maker, ...] = (numbers_body, numbers_body, views_body, tensors_body)
IN_TASKS: tuple[Maker, ...] = (numbers_body, views_body)


def function_of(bodies: Sequence[Body]) -> Drawn:
    """One after another, each with arrays of its own."""
    arguments = ", ".join(f"%{n}: {body.type_of(n)}" for body in bodies for n in body.arrays)
    results = [result for body in bodies for result in body.results]
    names, types = (", ".join(part) for part in zip(*results, strict=True)) if results else ("", "")
    end = f"  return {names} : {types}" if results else "  return"
    head = f"func.func @f({arguments}){f' -> ({types})' if results else ''} {{"
    lines = [line for body in bodies for line in body.lines]
    arrays = {name: array for body in bodies for name, array in body.arrays.items()}
    return Drawn("\n".join([head, *lines, end, "}", ""]), arrays)


@st.composite
def functions(draw: st.DrawFn, *, makers: Sequence[Maker] = BODIES, most: int = 4) -> Drawn:
    """Of one to `most` bodies, so that one build tries them all."""
    chosen = draw(st.lists(st.sampled_from(makers), min_size=1, max_size=most))
    return function_of(
        [make(draw, name) for make, name in zip(chosen, ascii_lowercase, strict=False)]
    )


def schedule_of(bodies: Sequence[Body], arch: str = "cpu") -> Drawn:
    """Each a task with arrays of its own, and one that reads what the first wrote."""
    lines = [f'  %cpu = avial.target {{arch = "{arch}"}}']
    lines.append('  %other = avial.target {arch = "cpu"}')
    for k, body in enumerate(bodies):
        text = "\n".join(body.lines)
        listed = ", ".join(f"%{name}" for name in body.arrays if re.search(rf"%{name}\b", text))
        lines += [f"  %t{k} = avial.task %cpu, {listed} {{", *body.lines, "  }"]
    arrays = {name: array for body in bodies for name, array in body.arrays.items()}
    last = [name for name in bodies[0].arrays if name not in bodies[0].index][-1]
    type_, arrays["copied"] = bodies[0].type_of(last), np.zeros_like(arrays[last])
    lines += [
        f"  %last = avial.task %other, %{last}, %copied {{",
        f"    memref.copy %{last}, %copied : {type_} to {type_}",
        "  }",
    ]
    typed = {name: body.type_of(name) for body in bodies for name in body.arrays}
    typed["copied"] = type_
    buffers = ", ".join(f"%{name}: {typed[name]}" for name in arrays)
    return Drawn("\n".join([f"avial.schedule {buffers} {{", *lines, "}", ""]), arrays)


@st.composite
def schedules(draw: st.DrawFn) -> Drawn:
    """One to three tasks."""
    makers = [draw(st.sampled_from(IN_TASKS)) for _ in range(draw(st.integers(1, 3)))]
    bodies = [make(draw, "abc"[k]) for k, make in enumerate(makers)]
    return schedule_of(bodies, draw(st.sampled_from(("cpu", "gpu"))))
