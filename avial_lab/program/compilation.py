"""Text and arrays -> a compiled program, or its task graph alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from avial_lab.compiler.frontends.notation.header import (
    argument_named,
    holds_schedule,
    place_of,
    program_names,
)
from avial_lab.compiler.options import CompileOptions, Keywords, takes_options
from avial_lab.compiler.requests import (
    Analyse,
    Analysis,
    Build,
    Built,
    Scalar,
    Source,
    TimeTasks,
    Weigh,
)
from avial_lab.core.aliasing import checked_array
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.device_arrays import OnDevice, in_place
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import BindError, CellSpan, OptionError
from avial_lab.core.files import disk_errors
from avial_lab.core.stand_ins import OnRanks
from avial_lab.core.words import brief, count
from avial_lab.machine.devices import GPU_FAMILY
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.imports.workflow import Workflow
from avial_lab.planning.parallelism import SEARCH
from avial_lab.program.cached_build import build
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.model_search import best_division
from avial_lab.program.predicted_division import with_best_division
from avial_lab.program.program import Program, check_timeout
from avial_lab.program.session import remember
from avial_lab.program.tuned import tuning_key_of, with_choice
from avial_lab.program.tuning import remembered

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Namespace(Mapping[str, object]):
    """A user's namespace as a place to find arrays in: what the program does not name is never
    looked at.
    """

    def __init__(self, names: Mapping[str, object]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> object:
        return self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return brief(self, f"of {count(len(self), 'name')}")


_GPU_ARRAYS = re.compile(r'!ptensor(?:\.ptensor)?<[^\n]*?"cuda:\d+"')
"""Types of arrays that live on a GPU: what is computed of them is computed there."""


@takes_options
def compile(
    text: str,
    *,
    arrays: Mapping[str, object] | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    topology: Topology | None = None,
    function: str | None = None,
    cell: str = "<program>",
    name: str = "program",
    timeout: float | None = None,
    progress: Callable[[str], None] | None = None,
    written: str = "",
    **options: Unpack[Keywords],
) -> Program:
    """Parse, analyse, place, lower and build `text`, a program in avial's notation or in MLIR.

    A text without avial operations is plain MLIR; `function` is the func.func that is meant, by
    default the only one. Its arrays go by the arguments' names, or by their positions ("0").

    `arrays` are the buffers by name; they are written in place when the program runs. A `Namespace`
    may hold anything: only what the program names is taken from it. Arrays that are on a GPU (of
    CuPy, PyTorch, JAX, Numba) are used where they lie; such a program runs in this process. Those
    of `avial_lab.ptensor` are used where they lie, too, by their ranks. The machine is `topology`,
    or `ranks` CPU ranks of this one, the last `gpus` of which drive an (emulated) GPU each; by
    default one, if some target asks for a GPU.

    The other keywords are fields of `options.CompileOptions`. `policy` places tasks (by default
    `levels`), `division` says how loops are divided (`block`, `cyclic`, `cyclic(N)`, `grid`, or
    `auto`: whichever of these is predicted to be the fastest, which `explain()` tells): each is
    refused where the program has nothing of the kind. With `sync="levels"` all ranks wait for each
    other after each level of the graph, in a loop after each level of its body.

    `parallel` divides a function on tensors over the ranks: "data 2, pipeline 2 x 8 1f1b", or a
    list of such texts, one transform after the other (`planning/parallelism.py`); "search": what is
    predicted to be the fastest on all ranks (`program/model_search.py`).

    `gradient` names arguments ("w0 w1") by which a function on tensors returns the derivatives of
    its first result, too, behind its own results; the sequential reference does so as well. With
    `update` ("adamw lr=0.001"; `planning/optimizers.py`) it returns the arguments as they are after
    a step in place of the derivatives, and behind all of them what the optimizer keeps.

    `without` names optional passes that are left out (`catalogue.OPTIONAL`, or `all`), to see what
    they are worth; `sizes` gives others theirs in place of the machine's
    (`block-contractions{terms=128 block=48}`; `catalogue.SIZES`). Without either it is compiled as
    `Program.tune` found best here, if it has; `sizes="model"`: not. With `strict` every product and
    sum is rounded on its own and in the program's order; else products that are only added are
    fused with the sum. With `blas` products of matrices call the BLAS that each rank's machine has,
    on the threads of the run; a run is refused where there is none (`runtime/rank/blas.py`). With
    `dynamic` a plain function is compiled once for arrays of whatever size its text leaves open
    (`memref<?x?xf64>`) and for any numbers: for others only what its accesses are is looked at
    again. Where that cannot be, it is compiled for what it is given; `explain()` says why, and
    which passes did less for want of a size.

    `progress` is called with what the compiler is at, five times a second from half a second on.
    `written` is what the text was made of, where its operations have places in that.

    Raises ParseError, VerifyError, BindError, ScheduleError or PassError for what is wrong with the
    program, and CompilerCrash where the compiler's process died. Warns with FaultWarning where one
    of our own passes failed, and the program was compiled without it.
    """
    _check_others(topology, function, cell, name, timeout)
    source, bound = _source(text, cell, arrays, scalars or {}, function)
    source = replace(source, written=written)
    if topology is None and any(isinstance(array, OnDevice) for array in bound.values()):
        options.setdefault("ranks", 1)  # which this process is
        if not holds_schedule(text):
            options.setdefault("on", GPU_FAMILY)
    held = next((each.given for each in bound.values() if isinstance(each, OnRanks)), None)
    if topology is None and held is not None:
        options.setdefault("ranks", held.ranks)
    if topology is not None and topology.cpu and options.get("cpu_target") is None:
        options["cpu_target"] = topology.cpu
    chosen = CompileOptions.of(**options)
    if chosen.on is None and "device" not in chosen.ignore and _GPU_ARRAYS.search(text):
        chosen = replace(chosen, on=GPU_FAMILY)
    if (chosen.parallel or chosen.gradient or chosen.update) and holds_schedule(text):
        raise OptionError(
            "parallel and gradient are for functions on tensors, and this program says itself "
            "what its tasks are",
            hint="leave them out, or write func.func @f(%x: tensor<8x4xf32>) -> …",
        )
    source = replace(
        source,
        parallel=chosen.parallel,
        gradient=chosen.gradient,
        update=chosen.update,
        ignore=chosen.ignore,
    )
    if chosen.parallel == SEARCH:
        words, _ = best_division(source, topology or Topology.local(chosen.ranks))
        source, chosen = replace(source, parallel=words), replace(chosen, parallel=words)
    question = Build(source, topology, chosen)
    choice = None if chosen.without or chosen.sizes else remembered(tuning_key_of(question))
    if choice is not None:
        question = with_choice(question, choice)

    def made(question: Build) -> Program:
        """To be simulated, not run."""
        with disk_errors():
            return Program(name, bound, question, build(question, timeout, progress))

    division = ""
    if chosen.division.auto:
        question, division = with_best_division(question, made)
    with disk_errors():
        built = build(question, timeout, progress)
    arrays = bound | _result_arrays(source, bound, built)
    program = Program(name, arrays, question, built, choice=choice, division=division)
    remember(program)
    return program


def analyse(
    text: str,
    *,
    arrays: Mapping[str, object] | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    function: str | None = None,
    cell: str = "<program>",
) -> Analysis:
    """The tasks of `text` and their dependencies, without placing or building anything."""
    source, _ = _source(text, cell, arrays, scalars or {}, function)
    return shared_compiler().ask(Analyse(source))


def planned_graph(
    text: str,
    *,
    arrays: Mapping[str, object] | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    cell: str = "<program>",
    name: str = "program",
    threads: Iterable[int] = (1,),
) -> Workflow:
    """The tasks of a program of tasks, and what they cost by the roofline and by their loops, as
    they are compiled, on so many threads of a rank; for `avial_lab.plan`.
    """
    source, _ = _source(text, cell, arrays, scalars or {}, None)
    graph = shared_compiler().ask(Analyse(source)).graph
    demands = shared_compiler().ask(Weigh(source)).demands
    times = shared_compiler().ask(TimeTasks(source, CompileOptions(), tuple(sorted({1, *threads}))))
    return Workflow(name, graph, Costs(demands, loops=times.tasks))


# From what the caller gives to a question ---------------------------------------------------------


def _source(
    text: str,
    cell: str,
    arrays: Mapping[str, object] | None,
    scalars: Mapping[str, Scalar],
    function: str | None,
) -> tuple[Source, dict[str, np.ndarray]]:
    _check_types(text, arrays, scalars)
    known = program_names(text, function=function)
    scalars = {argument_named(name, known): _number(name, value) for name, value in scalars.items()}
    if arrays is None:
        return Source(text, cell, None, scalars, function), {}
    given = {argument_named(name, known): value for name, value in arrays.items()}
    if isinstance(arrays, Namespace):
        # A number given by itself (-D n=3) is meant, whatever the namespace has under that name.
        names = [name for name in known if name in arrays and name not in scalars]
        given = {name: arrays[name] for name in names}
        for name in [
            name for name, value in given.items() if isinstance(value, Scalar | np.generic)
        ]:
            scalars[name] = _number(name, given.pop(name))
    twice = next((name for name in given if name in scalars), None)
    if twice is not None:
        raise BindError(f"'{twice}' is given as an array and as a number", hint="leave one out")
    bound = {name: _array(name, value, text, cell) for name, value in given.items()}
    return Source(text, cell, bind_arrays(bound), scalars, function), bound


def _result_arrays(
    source: Source, bound: Mapping[str, np.ndarray], built: Built
) -> dict[str, np.ndarray]:
    """Arrays for what a plain function returns (result0, …), which no caller can know of."""
    if holds_schedule(source.text):
        return {}
    known = program_names(source.text, function=source.function)
    return {
        buffer.name: np.zeros(buffer.shape, dtype_of_element(buffer.element))
        for buffer in built.schedule.graph.buffers
        if not (buffer.temporary or buffer.name in bound or buffer.name in known)
    }


def _check_types(text: object, arrays: object, scalars: object) -> None:
    """What would otherwise fail far from here, in words about something else."""
    if not isinstance(text, str):
        raise OptionError(f"the program must be a str, not {type(text).__name__}")
    for what, given in (("arrays", arrays), ("scalars", scalars)):
        if not isinstance(given, Mapping | None):
            raise OptionError(f"{what} must map names to {what}; got {type(given).__name__}")
        for name in cast("Mapping[object, object]", given or {}):
            if not isinstance(name, str):
                raise OptionError(
                    f"a name in {what} must be a str, not {type(name).__name__}",
                    hint="a position is given as a text, too: '0'",
                )


def _check_others(
    topology: object, function: object, cell: object, name: object, timeout: object
) -> None:
    for what, value in (("function", function), ("cell", cell), ("name", name)):
        if not isinstance(value, str) and not (what == "function" and value is None):
            raise OptionError(f"{what} must be a str, not {type(value).__name__}")
    if not isinstance(topology, Topology | None):
        raise OptionError(
            f"topology must be a Topology, not {type(topology).__name__}",
            hint="cluster.topology is that of a cluster; ranks=4 needs none",
        )
    check_timeout(timeout)


def _array(name: str, value: object, text: str, cell: str) -> np.ndarray:
    """An array that a program can work on; what is none is shown where the program names it."""
    try:
        return checked_array(name, in_place(name, value))
    except BindError as error:
        place = place_of(text, name)
        error.span = None if place is None else CellSpan(cell, text, *place)
        raise


def _number(name: str, value: object) -> Scalar:
    """A number of Python's own; NumPy's are taken for it."""
    plain = cast("Any", value).item() if isinstance(value, np.generic) else value
    if isinstance(plain, Scalar):
        return plain
    kind = type(cast("object", value)).__name__
    raise BindError(
        f"the number '{name}' is {kind}, not bool, int or float",
        hint=f"an array is passed in arrays={{'{name}': …}}" if kind == "ndarray" else None,
    )
