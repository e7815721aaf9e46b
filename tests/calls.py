"""Random programs of tasks that call functions on parts of arrays, with what they do in Python.

A view of an array is an array of its elements' numbers, so that whoever runs a program in Python
knows every element that is read or written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

ARRAYS = {"A": (6, 8), "B": (5, 6), "x": (24,)}
"""Of i32; element k of an array that stands behind others has the number k + their sizes."""


@dataclass
class Memory:
    """All elements of all arrays, and the numbers of those that were read and written."""

    values: list[int]
    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)

    def load(self, element: int) -> int:
        self.read.add(int(element))
        return self.values[element]

    def store(self, value: int, element: int) -> None:
        self.written.add(int(element))
        self.values[element] = (value + 2**31) % 2**32 - 2**31


def numbered() -> dict[str, np.ndarray]:
    """The numbers of the arrays' elements."""
    found, first = {}, 0
    for name, shape in ARRAYS.items():
        size = int(np.prod(shape))
        found[name] = np.arange(first, first + size).reshape(shape)
        first += size
    return found


# -- functions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Function:
    """`body` of a function of views %v (and %u, of the same shape) and of a number %k; `meaning`
    does the same to the elements with those numbers.
    """

    name: str
    ranks: tuple[int, ...]
    body: str
    meaning: Callable[..., None]
    calls: tuple[str, ...] = ()

    def text(self, types: Sequence[str], suffix: str) -> str:
        names = ["%v", "%u"][: len(types)]
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
        body = self.body.replace("$V", types[0]).replace("$U", types[-1])
        return (
            f"func.func private @{self.name}{suffix}({arguments}, %k: index) {{\n"
            f"  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
            f"  %c2 = arith.constant 2 : index\n  %seven = arith.constant 7 : i32\n"
            f"{body}  return\n}}\n"
        )


def open_type(rank: int) -> str:
    open_ = ", ".join("?" * rank)
    return f"memref<{'?x' * rank}i32, strided<[{open_}], offset: ?>>"


_LINE, _PLANE = open_type(1), open_type(2)
_SIZES = "  %n = memref.dim %v, %c0 : $V\n  %m = memref.dim %v, %c1 : $V\n"
_LENGTH = "  %n = memref.dim %v, %c0 : $V\n"


def _fill(m: Memory, v: np.ndarray, k: int) -> None:
    for element in v.flat:
        m.store(7, element)


def _add(m: Memory, v: np.ndarray, u: np.ndarray, k: int) -> None:
    for there, here in zip(v.flat, u.flat, strict=True):
        m.store(m.load(there) + m.load(here), there)


def _triangle(m: Memory, v: np.ndarray, k: int) -> None:
    for i in range(v.shape[0]):
        for j in range(min(i + 1, v.shape[1])):
            m.store(m.load(v[i, j]) + 1, v[i, j])


def _row(m: Memory, v: np.ndarray, k: int) -> None:
    if k < v.shape[0]:
        _fill(m, v[k], 0)


def _every_other(m: Memory, v: np.ndarray, k: int) -> None:
    for element in v[::2]:
        m.store(m.load(element) * 3, element)


def _rows(m: Memory, v: np.ndarray, k: int) -> None:
    for row in v:
        _every_other(m, row, k)


def _inner(m: Memory, v: np.ndarray, k: int) -> None:
    _fill(m, v[1:], k)
    _triangle(m, v, k)


def _perhaps(m: Memory, v: np.ndarray, k: int) -> None:
    if v.size and m.load(v.flat[0]) > 7:
        _fill(m, v, k)


def _down(m: Memory, v: np.ndarray, k: int) -> None:
    if k > 0:
        if k < v.shape[0]:
            m.store(m.load(v[k]) + k, v[k])
        _down(m, v, k - 1)


def _branch(m: Memory, v: np.ndarray, k: int) -> None:
    if v.shape[0] > 2:
        m.store(5, v[2])


def _head(m: Memory, v: np.ndarray, k: int) -> None:
    for element in v[: min(k, v.shape[0])]:
        m.store(7, element)


def _copy(m: Memory, v: np.ndarray, u: np.ndarray, k: int) -> None:
    for there, value in zip(v.flat, [m.load(here) for here in u.flat], strict=True):
        m.store(value, there)


def _sum(m: Memory, v: np.ndarray, u: np.ndarray, k: int) -> None:
    m.store(m.load(v[0]) + sum(m.load(here) for here in u.flat), v[0])


def _nothing(m: Memory, v: np.ndarray, k: int) -> None:
    """Looks at sizes only."""


FUNCTIONS = {f.name: f for f in (
    Function("fill", (2,), _SIZES + """
  scf.for %i = %c0 to %n step %c1 { scf.for %j = %c0 to %m step %c1 {
    memref.store %seven, %v[%i, %j] : $V
  } }
""", _fill),
    Function("fill_line", (1,), "  linalg.fill ins(%seven : i32) outs(%v : $V)\n", _fill),
    Function("add", (2, 2), _SIZES + """
  affine.for %i = 0 to %n { affine.for %j = 0 to %m {
    %a = affine.load %v[%i, %j] : $V
    %b = affine.load %u[%i, %j] : $U
    %s = arith.addi %a, %b : i32
    affine.store %s, %v[%i, %j] : $V
  } }
""", _add),
    Function("copy", (1, 1), "  memref.copy %u, %v : $U to $V\n", _copy),
    Function("triangle", (2,), _SIZES + """
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %stop = arith.minsi %i1, %m : index
    scf.for %j = %c0 to %stop step %c1 {
      %a = memref.load %v[%i, %j] : $V
      %b = arith.addi %a, %one : i32
      memref.store %b, %v[%i, %j] : $V
    }
  }
""", _triangle),
    Function("row", (2,), _SIZES + """
  %in = arith.cmpi slt, %k, %n : index
  scf.if %in { scf.for %j = %c0 to %m step %c1 { memref.store %seven, %v[%k, %j] : $V } }
""", _row),
    Function("every_other", (1,), _LENGTH + """
  %three = arith.constant 3 : i32
  scf.for %i = %c0 to %n step %c2 {
    %a = memref.load %v[%i] : $V
    %b = arith.muli %a, %three : i32
    memref.store %b, %v[%i] : $V
  }
""", _every_other),
    Function("rows", (2,), _SIZES + f"""
  scf.for %i = %c0 to %n step %c1 {{
    %w = memref.subview %v[%i, 0] [1, %m] [1, 1] : $V to {_LINE}
    func.call @every_other(%w, %k) : ({_LINE}, index) -> ()
  }}
""", _rows, ("every_other",)),
    Function("inner", (2,), _SIZES + f"""
  %less = arith.subi %n, %c1 : index
  %w = memref.subview %v[%c1, 0] [%less, %m] [1, 1] : $V to {_PLANE}
  func.call @fill(%w, %k) : ({_PLANE}, index) -> ()
  %all = memref.subview %v[0, 0] [%n, %m] [1, 1] : $V to {_PLANE}
  func.call @triangle(%all, %k) : ({_PLANE}, index) -> ()
""", _inner, ("fill", "triangle")),
    Function("perhaps", (2,), _SIZES + f"""
  %a = memref.load %v[%c0, %c0] : $V
  %more = arith.cmpi sgt, %a, %seven : i32
  scf.if %more {{
    %all = memref.subview %v[0, 0] [%n, %m] [1, 1] : $V to {_PLANE}
    func.call @fill(%all, %k) : ({_PLANE}, index) -> ()
  }}
""", _perhaps, ("fill",)),
    Function("down", (1,), _LENGTH + """
  %go = arith.cmpi sgt, %k, %c0 : index
  scf.if %go {
    %in = arith.cmpi slt, %k, %n : index
    scf.if %in {
      %a = memref.load %v[%k] : $V
      %b = arith.index_cast %k : index to i32
      %s = arith.addi %a, %b : i32
      memref.store %s, %v[%k] : $V
    }
    %next = arith.subi %k, %c1 : index
    func.call @down$S(%v, %next) : ($V, index) -> ()
  }
""", _down),
    Function("branch", (1,), _LENGTH + """
  %long = arith.cmpi sgt, %n, %c2 : index
  cf.cond_br %long, ^store(%v : $V), ^end
^store(%w: $V):
  %five = arith.constant 5 : i32
  memref.store %five, %w[%c2] : $V
  cf.br ^end
^end:
""", _branch),
    Function("head", (1,), _LENGTH + f"""
  %stop = arith.minsi %k, %n : index
  %w = memref.subview %v[0] [%stop] [1] : $V to {_LINE}
  linalg.fill ins(%seven : i32) outs(%w : {_LINE})
""", _head),
    Function("sum", (1, 2), """
  %n = memref.dim %u, %c0 : $U
  %m = memref.dim %u, %c1 : $U
  %first = memref.load %v[%c0] : $V
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%t = %first) -> (i32) {
    %r = scf.for %j = %c0 to %m step %c1 iter_args(%w = %t) -> (i32) {
      %a = memref.load %u[%i, %j] : $U
      %b = arith.addi %w, %a : i32
      scf.yield %b : i32
    }
    scf.yield %r : i32
  }
  memref.store %s, %v[%c0] : $V
""", _sum),
    Function("nothing", (2,), _SIZES, _nothing),
)}  # fmt: skip


# -- views -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """An SSA value that stands for those elements; None for a stride or an offset that its type
    leaves open. `whole`: the type has no layout.
    """

    name: str
    elements: np.ndarray
    strides: tuple[int | None, ...]
    offset: int | None
    root: str
    whole: bool = False

    @property
    def type(self) -> str:
        shape = "".join(f"{n}x" for n in self.elements.shape)
        if self.whole:
            return f"memref<{shape}i32>"
        strides = ", ".join("?" if s is None else str(s) for s in self.strides)
        offset = "?" if self.offset is None else self.offset
        return f"memref<{shape}i32, strided<[{strides}]{f', offset: {offset}' if offset else ''}>>"


def roots() -> list[View]:
    return [
        View(name, elements, tuple(s // elements.itemsize for s in elements.strides), 0, name, True)
        for name, elements in numbered().items()
    ]


class Writer:
    """The lines of a task's body."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"s{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def index(self, value: int) -> str:
        name = self.fresh()
        self.line(f"%{name} = arith.constant {value} : index")
        return f"%{name}"


def subview(draw: st.DrawFn, writer: Writer, view: View, *, reduce: bool = False) -> View:
    """A window of a view: strides from -2 to 2, offsets in its type or computed."""
    cut, offsets, strides, texts = [], [], [], []
    kept = []
    offset: int | None = view.offset
    for dim, extent in enumerate(view.elements.shape):
        step = draw(st.sampled_from([1, 1, 1, 2, -1, -2]))
        # MLIR takes a dimension of size 1 for the one that was dropped, whichever it is.
        least = 2 if reduce and dim else 1
        step = step if abs(step) * (least - 1) < extent else step // abs(step)
        reach = abs(step) * (least - 1)
        low = draw(st.integers(0, extent - 1 - reach))
        low = low if step > 0 else low + reach
        most = (extent - low + step - 1) // step if step > 0 else low // -step + 1
        count = 1 if reduce and not dim else draw(st.integers(least, most))
        open_ = draw(st.booleans())
        own = view.strides[dim]
        offset = None if open_ or offset is None or own is None else offset + low * own
        texts.append((writer.index(low) if open_ else str(low), str(count), str(step)))
        places = [low + step * k for k in range(count)]
        cut.append(places)
        if not (reduce and not dim):
            kept.append(dim)
            strides.append(None if own is None else own * step)
        offsets.append(low)
    elements = view.elements[np.ix_(*cut)]
    elements = elements.reshape([len(cut[dim]) for dim in kept])
    found = View(writer.fresh(), elements, tuple(strides), offset, view.root)
    parts = " ".join(f"[{', '.join(part)}]" for part in zip(*texts, strict=True))
    writer.line(f"%{found.name} = memref.subview %{view.name}{parts} : {view.type} to {found.type}")
    return found


def transposed(writer: Writer, view: View) -> View:
    found = View(
        writer.fresh(), view.elements.T, tuple(reversed(view.strides)), view.offset, view.root
    )
    writer.line(
        f"%{found.name} = memref.transpose %{view.name} (i, j) -> (j, i) "
        f": {view.type} to {found.type}"
    )
    return found


def collapsed(writer: Writer, view: View) -> View:
    """One dimension of an array that has no gaps."""
    strides = () if view.whole else (1,)
    found = View(
        writer.fresh(), view.elements.reshape(-1), strides, view.offset, view.root, view.whole
    )
    writer.line(
        f"%{found.name} = memref.collapse_shape %{view.name} [[0, 1]] "
        f": {view.type} into {found.type}"
    )
    return replace(found, strides=(1,))


def expanded(draw: st.DrawFn, writer: Writer, view: View) -> View:
    """Two dimensions of one."""
    (length,) = view.elements.shape
    rows = draw(st.sampled_from([n for n in range(1, length + 1) if length % n == 0]))
    columns = length // rows
    (own,) = view.strides
    strides = (None if own is None else own * columns, own)
    elements = view.elements.reshape(rows, columns)
    whole = view.whole or (own, view.offset) == (1, 0)  # as MLIR has it
    found = View(writer.fresh(), elements, strides, view.offset, view.root, whole)
    writer.line(
        f"%{found.name} = memref.expand_shape %{view.name} [[0, 1]] "
        f"output_shape [{rows}, {columns}] : {view.type} into {found.type}"
    )
    return found


def readdressed(draw: st.DrawFn, writer: Writer, view: View, rank: int) -> View:
    """Another shape of the memory behind a view, from a place of its own on."""
    memory = numbered()[view.root].reshape(-1)
    shape = [draw(st.integers(1, 4)) for _ in range(rank)]
    strides = [draw(st.integers(1, 5)) for _ in range(rank)]
    while sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) >= len(memory):
        strides = [1] * rank
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    offset = draw(st.integers(0, len(memory) - 1 - reach))
    places = sum(
        (np.arange(n).reshape([-1 if d == k else 1 for d in range(rank)]) * s
         for k, (n, s) in enumerate(zip(shape, strides, strict=True))),
        start=np.full([1] * rank, offset),
    )  # fmt: skip
    found = View(writer.fresh(), memory[places], tuple(strides), offset, view.root)
    writer.line(
        f"%{found.name} = memref.reinterpret_cast %{view.name} to offset: [{offset}], "
        f"sizes: {shape}, strides: {strides} : {view.type} to {found.type}"
    )
    return found


def view_of(draw: st.DrawFn, writer: Writer, rank: int) -> View:
    """Some view of that rank of one of the arrays."""
    view = draw(st.sampled_from(roots()))
    for _ in range(draw(st.integers(0, 3))):
        kinds = ["subview", "subview", "readdress"]
        if view.elements.ndim == 2:
            kinds += ["transpose"]
            if view.whole:
                kinds += ["collapse"]
        else:
            kinds += ["expand"]
        kind = draw(st.sampled_from(kinds))
        if kind == "subview":
            view = subview(draw, writer, view)
        elif kind == "readdress":
            view = readdressed(draw, writer, view, draw(st.integers(1, 2)))
        elif kind == "transpose":
            view = transposed(writer, view)
        elif kind == "collapse":
            view = collapsed(writer, view)
        else:
            view = expanded(draw, writer, view)
    if view.elements.ndim == rank:
        return view
    if rank == 1 and view.elements.shape[1] > 1:
        return subview(draw, writer, view, reduce=True)
    if rank == 1:
        return subview(draw, writer, next(root for root in roots() if root.root == "x"))
    return expanded(draw, writer, view)


def cast(writer: Writer, view: View, wanted: str) -> str:
    """Its name as a value of that type."""
    if view.type == wanted:
        return view.name
    name = writer.fresh()
    writer.line(f"%{name} = memref.cast %{view.name} : {view.type} to {wanted}")
    return name


# -- programs --------------------------------------------------------------------------------------

Step = Callable[[Memory], None]


@dataclass
class CallProgram:
    """`text`, and what each of its tasks does."""

    text: str
    tasks: dict[str, Step] = field(repr=False)


@st.composite
def call_programs(draw: st.DrawFn, *, most_tasks: int = 6) -> CallProgram:
    functions: dict[str, str] = {}
    lines: list[str] = []
    tasks: dict[str, Step] = {}
    for number in range(draw(st.integers(1, most_tasks))):
        writer = Writer()
        used: list[str] = []
        steps = [_call(draw, writer, functions, used) for _ in range(draw(st.integers(1, 2)))]
        listed = ", ".join(f"%{name}" for name in dict.fromkeys(used))
        lines += [f"  %t{number} = avial.task %cpu, {listed} {{", *writer.lines, "  }"]
        tasks[f"t{number}"] = _all(steps)
    arguments = ", ".join(
        f"%{name}: memref<{''.join(f'{n}x' for n in shape)}i32>" for name, shape in ARRAYS.items()
    )
    names = ", ".join(f"%{name}" for name in ARRAYS)
    body = "\n".join(lines)
    text = (
        "".join(functions.values())
        + f"func.func @program({arguments}) {{\navial.schedule {names} {{\n"
        + f'  %cpu = avial.target {{arch = "cpu"}}\n{body}\n}}\nreturn\n}}\n'
    )
    return CallProgram(text, tasks)


def _all(steps: Sequence[Step]) -> Step:
    def step(memory: Memory) -> None:
        for each in steps:
            each(memory)

    return step


def _call(draw: st.DrawFn, writer: Writer, functions: dict[str, str], used: list[str]) -> Step:
    function = FUNCTIONS[draw(st.sampled_from(sorted(FUNCTIONS)))]
    in_loop = draw(st.sampled_from([False, False, True]))
    if in_loop and len(function.ranks) == 1:
        return _calls_in_loop(draw, writer, functions, used, function)
    views = [view_of(draw, writer, function.ranks[0])]
    if len(function.ranks) == 2:
        views.append(_partner(draw, writer, views[0], function))
    number = draw(st.integers(0, 3))
    _write_call(draw, writer, functions, function, views, writer.index(number))
    used += [view.root for view in views]
    elements = [view.elements for view in views]
    return lambda memory: function.meaning(memory, *elements, number)


def _partner(draw: st.DrawFn, writer: Writer, view: View, function: Function) -> View:
    """A second operand: of the same shape, and sharing nothing where the order would tell."""
    if function.name == "sum":
        return view_of(draw, writer, 2)
    others = [root for root in roots() if root.root != view.root]
    shape = view.elements.shape
    size = int(np.prod(shape))
    memory = draw(st.sampled_from([r for r in others if r.elements.size >= size] or others[:1]))
    if memory.elements.size < size:
        memory = next(r for r in roots() if r.elements.size >= size)
    flat = numbered()[memory.root].reshape(-1)
    offset = draw(st.integers(0, flat.size - size))
    strides = tuple(int(np.prod(shape[d + 1 :])) for d in range(len(shape)))
    elements = flat[offset : offset + size].reshape(shape)
    found = View(writer.fresh(), elements, strides, offset, memory.root)
    writer.line(
        f"%{found.name} = memref.reinterpret_cast %{memory.name} to offset: [{offset}], "
        f"sizes: {list(shape)}, strides: {list(strides)} : {memory.type} to {found.type}"
    )
    return found


def _calls_in_loop(
    draw: st.DrawFn,
    writer: Writer,
    functions: dict[str, str],
    used: list[str],
    function: Function,
) -> Step:
    """A call in a loop, of a window that goes along with it."""
    rank = function.ranks[0]
    root = draw(st.sampled_from([r for r in roots() if r.elements.ndim == rank]))
    extent = root.elements.shape[0]
    width = draw(st.integers(1, extent))
    pace = draw(st.integers(1, 3))
    rounds = draw(st.integers(1, (extent - width) // pace + 1))
    number = draw(st.integers(0, 3))
    constant, stride = writer.index(number), writer.index(pace)
    loop, place = writer.fresh(), writer.fresh()
    writer.line(f"scf.for %{loop} = 0 to {rounds} {{")
    writer.line(f"%{place} = arith.muli %{loop}, {stride} : index")
    sizes = [width, *root.elements.shape[1:]]
    rest = ["0"] * (rank - 1)
    found = View(writer.fresh(), root.elements[:width], root.strides, None, root.root)
    writer.line(
        f"%{found.name} = memref.subview %{root.name}[{', '.join([f'%{place}', *rest])}] "
        f"{sizes} {[1] * rank} : {root.type} to {found.type}"
    )
    by_loop = draw(st.booleans())
    _write_call(draw, writer, functions, function, [found], f"%{loop}" if by_loop else constant)
    writer.line("}")
    used.append(root.root)

    def step(memory: Memory) -> None:
        for k in range(rounds):
            window = root.elements[k * pace : k * pace + width]
            function.meaning(memory, window, k if by_loop else number)

    return step


def _write_call(
    draw: st.DrawFn,
    writer: Writer,
    functions: dict[str, str],
    function: Function,
    views: Sequence[View],
    number: str,
) -> None:
    """The call, of the function for arrays of any size or of one for these sizes."""
    if draw(st.booleans()):
        types, suffix = [open_type(rank) for rank in function.ranks], ""
    else:
        suffix = f"_{len(functions)}"
        types = [view.type for view in views]
        if "subview" in function.body:  # whose types are written for open layouts
            shapes = ["".join(f"{n}x" for n in view.elements.shape) for view in views]
            types = [
                open_type(rank).replace("?x" * rank, shape, 1)
                for rank, shape in zip(function.ranks, shapes, strict=True)
            ]
    for needed in (*function.calls, function.name):
        other = FUNCTIONS[needed]
        if needed != function.name:
            functions.setdefault(needed, other.text([open_type(r) for r in other.ranks], ""))
    text = function.text(types, suffix).replace("$S", suffix)
    functions.setdefault(f"{function.name}{suffix}", text)
    names = [cast(writer, view, kind) for view, kind in zip(views, types, strict=True)]
    operands = ", ".join(f"%{name}" for name in names)
    writer.line(
        f"func.call @{function.name}{suffix}({operands}, {number}) "
        f": ({', '.join(types)}, index) -> ()"
    )
