"""Random windows of arrays, many of them with extents of 1 that are dropped: as text, and what they
hold by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Cut:
    """One dimension of a window; `open_*` says what is an operand, `dropped` that it is left out.

    `moves`: a loop of two iterations around moves it by as many elements.
    """

    extent: int
    offset: int
    size: int
    stride: int
    moves: int
    dropped: bool
    open_extent: bool
    open_offset: bool
    open_size: bool


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    size = draw(st.sampled_from([1, 1, 1, 2, 3]))
    stride = draw(st.sampled_from([1, 1, 2]))
    offset, moves = draw(st.integers(0, 2)), draw(st.sampled_from([0, 0, 1]))
    # In a loop an extent is reached twice; behind it lies what no window has.
    least = offset + moves + (size - 1) * stride + 1
    extent = 1 if least == 1 and draw(st.booleans()) else least + draw(st.integers(0, 2))
    open_size = draw(st.booleans())
    dropped = size == 1 and not open_size and draw(st.booleans())
    open_extent, open_offset = draw(st.booleans()), draw(st.booleans())
    return Cut(extent, offset, size, stride, moves, dropped, open_extent, open_offset, open_size)


@dataclass(frozen=True)
class Window:
    """`%v`, a window of `%A`, in a loop over `%k` from 0 to 2."""

    cuts: tuple[Cut, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(cut.extent for cut in self.cuts)

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(cut.size for cut in self.cuts if not cut.dropped)

    def slices(self, k: int) -> tuple[slice | int, ...]:
        """NumPy's subscript of the window in iteration k."""
        found: list[slice | int] = []
        for cut in self.cuts:
            first = cut.offset + k * cut.moves
            last = first + (cut.size - 1) * cut.stride + 1
            found.append(first if cut.dropped else slice(first, last, cut.stride))
        return tuple(found)

    # -- text

    def of(self, kind: str) -> str:
        """The type of `%A`: `kind` is memref or tensor."""
        dims = "".join("?x" if cut.open_extent else f"{cut.extent}x" for cut in self.cuts)
        return f"{kind}<{dims}i64>"

    def type(self, kind: str) -> str:
        dims = "".join(
            "?x" if cut.open_size else f"{cut.size}x" for cut in self.cuts if not cut.dropped
        )
        layout = ""
        if kind == "memref":
            steps, step = [], 1
            for cut in reversed(self.cuts):
                known = step > 0
                steps.append(str(step * cut.stride) if known else "?")
                step = 0 if cut.open_extent or not known else step * cut.extent
            kept = [s for s, cut in zip(reversed(steps), self.cuts, strict=True) if not cut.dropped]
            layout = f", strided<[{', '.join(kept)}], offset: {self._first(steps[::-1])}>"
        return f"{kind}<{dims}i64{layout}>"

    def _first(self, steps: list[str]) -> str:
        """The offset of the window's type."""
        total = 0
        for cut, step in zip(self.cuts, steps, strict=True):
            if not cut.moves and not cut.open_offset and cut.offset == 0:
                continue
            if cut.moves or cut.open_offset or step == "?":
                return "?"
            total += cut.offset * int(step) // cut.stride
        return str(total)

    def numbers(self) -> str:
        """The constants that the cut names, in a loop over %k."""
        lines = []
        for d, cut in enumerate(self.cuts):
            lines += [f"%o{d} = arith.constant {cut.offset} : index"] * cut.open_offset
            lines += [f"%n{d} = arith.constant {cut.size} : index"] * cut.open_size
            lines += [f"%f{d} = affine.apply affine_map<(k) -> (k + {cut.offset})>(%k)"] * bool(
                cut.moves
            )
        return "\n    ".join(lines)

    def cut(self) -> str:
        offsets = [
            f"%f{d}" if cut.moves else f"%o{d}" if cut.open_offset else str(cut.offset)
            for d, cut in enumerate(self.cuts)
        ]
        sizes = [f"%n{d}" if cut.open_size else str(cut.size) for d, cut in enumerate(self.cuts)]
        return "".join(
            f"[{', '.join(part)}]" for part in (offsets, sizes, [str(c.stride) for c in self.cuts])
        )


windows = st.lists(cuts(), min_size=1, max_size=4).map(lambda found: Window(tuple(found)))


@dataclass(frozen=True)
class ViewCase:
    """`text` of arguments A and b, and what they and the results are afterwards."""

    text: str
    arrays: dict[str, np.ndarray]
    want: dict[str, np.ndarray]


FORMS = ("copied", "loaded", "written", "stored", "extracted", "inserted", "in a task")


def case(window: Window, form: str) -> ViewCase:
    whole = np.arange(100, 100 + int(np.prod(window.shape))).reshape(window.shape)
    b = -np.arange(2 * int(np.prod(window.kept))).reshape((2, *window.kept)) - 1
    inside, outside = whole.copy(), b.copy()
    for k in range(2):
        if form in ("written", "stored", "inserted"):
            inside[window.slices(k)] = b[k]
        else:
            outside[k] = whole[window.slices(k)]
    text = _TEXTS[form](window)
    want = {"A": inside, "b": outside}
    if form == "inserted":
        want = {"A": whole, "b": b, "result0": inside}
    if form == "extracted":
        want = {"A": whole, "b": b, "result0": outside}
    return ViewCase(text, {"A": whole, "b": b}, want)


def _row(window: Window) -> tuple[str, str]:
    """`%r`, which is %b[%k], and its type; and the type of %b."""
    dims = "".join(f"{n}x" for n in window.kept)
    steps, step = [], 1
    for n in reversed(window.kept):
        steps.append(str(step))
        step *= n
    kind = f"memref<{dims}i64, strided<[{', '.join(reversed(steps))}], offset: ?>>"
    return f"%r = memref.subview %b{_of_row(window)} : memref<2x{dims}i64> to {kind}", kind


def _of_row(window: Window) -> str:
    """The cut that %b[%k] is."""
    zeros, ones = ", 0" * len(window.kept), ", 1" * len(window.kept)
    return f"[%k{zeros}][1{''.join(f', {n}' for n in window.kept)}][1{ones}]"


def _copies(window: Window, *, back: bool) -> str:
    row, kind = _row(window)
    names, kinds = ("%r", "%v"), (kind, window.type("memref"))
    if not back:
        names, kinds = names[::-1], kinds[::-1]
    return _function(
        window,
        f"""{row}
    memref.copy {names[0]}, {names[1]} : {kinds[0]} to {kinds[1]}""",
    )


def _function(window: Window, body: str) -> str:
    dims = "".join(f"{n}x" for n in window.kept)
    return f"""func.func @f(%A: {window.of("memref")}, %b: memref<2x{dims}i64>) {{
  affine.for %k = 0 to 2 {{
    {_view(window)}
    {body}
  }}
  return
}}"""


def _view(window: Window) -> str:
    return f"""{window.numbers()}
    %v = memref.subview %A{window.cut()} : {window.of("memref")} to {window.type("memref")}"""


def _loops(window: Window, *, back: bool) -> str:
    return _function(window, _nest(window, back=back))


def _nest(window: Window, *, back: bool) -> str:
    dims, names = "".join(f"{n}x" for n in window.kept), [f"%i{d}" for d in range(len(window.kept))]
    heads = "".join(f"affine.for %i{d} = 0 to {n} {{\n" for d, n in enumerate(window.kept))
    view = (f"%v[{', '.join(names)}]", window.type("memref"))
    array = (f"%b[{', '.join(['%k', *names])}]", f"memref<2x{dims}i64>")
    (place, from_), (target, to) = (array, view) if back else (view, array)
    return f"""{heads}
      %x = affine.load {place} : {from_}
      affine.store %x, {target} : {to}
    {"}" * len(window.kept)}"""


def _task(window: Window) -> str:
    return f"""avial.schedule %A, %b {{
  %cpu = avial.target {{arch = "cpu"}}
  %t = avial.task %cpu, %A, %b {{
  %c = memref.cast %A : {Window(tuple(_closed(c) for c in window.cuts)).of("memref")}
    to {window.of("memref")}
  affine.for %k = 0 to 2 {{
    {_view(window).replace("%A", "%c")}
    {_nest(window, back=False)}
  }}
  }}
}}"""


def _closed(cut: Cut) -> Cut:
    return replace(cut, open_extent=False, open_offset=False, open_size=False)


def _tensors(window: Window) -> tuple[str, str, str, str]:
    """The types of %A, of its window, of %b[%k] and of %b."""
    dims = "".join(f"{n}x" for n in window.kept)
    return window.of("tensor"), window.type("tensor"), f"tensor<{dims}i64>", f"tensor<2x{dims}i64>"


def _insert(window: Window) -> str:
    whole, part, row, rows = _tensors(window)
    return f"""func.func @f(%A: {whole}, %b: {rows}) -> {whole} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %A) -> ({whole}) {{
    {window.numbers()}
    %p = tensor.extract_slice %b{_of_row(window)} : {rows} to {row}
    %q = tensor.cast %p : {row} to {part}
    %n = tensor.insert_slice %q into %a{window.cut()} : {part} into {whole}
    scf.yield %n : {whole}
  }}
  return %r : {whole}
}}"""


def _extract(window: Window) -> str:
    whole, part, row, rows = _tensors(window)
    return f"""func.func @f(%A: {whole}, %b: {rows}) -> {rows} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %k = %c0 to %c2 step %c1 iter_args(%o = %b) -> ({rows}) {{
    {window.numbers()}
    %p = tensor.extract_slice %A{window.cut()} : {whole} to {part}
    %q = tensor.cast %p : {part} to {row}
    %n = tensor.insert_slice %q into %o{_of_row(window)} : {row} into {rows}
    scf.yield %n : {rows}
  }}
  return %r : {rows}
}}"""


_TEXTS: dict[str, Callable[[Window], str]] = {
    "copied": lambda window: _copies(window, back=False),
    "written": lambda window: _copies(window, back=True),
    "loaded": lambda window: _loops(window, back=False),
    "stored": lambda window: _loops(window, back=True),
    "extracted": _extract,
    "inserted": _insert,
    "in a task": _task,
}
