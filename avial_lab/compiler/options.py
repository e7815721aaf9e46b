"""How a program is compiled: every option once, with its flag, its help, how it is read and how it
is written.

What a caller gives -> CompileOptions -> keywords of `compile`, a command line, the key of tuning.

A new option is a field of `CompileOptions`, its type in `Keywords`, and the place where it is used:
the command line, the magics with their completion, `Program.command`, reproducers, the cache and
what tuning remembers have it by themselves.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from avial_lab.compiler.catalogue import OPTIONAL, SIZES
from avial_lab.compiler.pass_rows import Sizes
from avial_lab.compiler.renamed import name_now
from avial_lab.core.errors import OptionError, ScheduleError
from avial_lab.core.words import brief, shortened
from avial_lab.machine.cpu import LEVELS, NATIVE, instruction_sets, instruction_sets_of
from avial_lab.planning.distribution import CYCLIC, Division
from avial_lab.planning.optimizers import Optimizer
from avial_lab.planning.parallelism import SEARCH, spelled
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Sync

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_RANKS = 2

MOST_RANKS_PER_CORE = 32
"""Every rank is a Python process: thousands of them take the whole machine down."""

MOST_GPUS = 16
"""That a rank drives."""

MODEL = "model"
"""In place of sizes: those that follow from the machine, whatever tuning found."""

MODEL_SIZES: Sizes = ((MODEL, ()),)

Member = TypeVar("Member", bound=enum.Enum)
Function = TypeVar("Function", bound=Callable[..., Any])


# -- reading and writing one of them ---------------------------------------------------------------


def _refused(what: str, given: object, wanted: str) -> OptionError:
    shown = shortened(repr(given), 60)
    return OptionError(f"{what} must be {wanted}; got {shown}")


def _whole(what: str) -> Callable[[Any], int]:
    """Reads a whole number."""

    def read(given: Any) -> int:  # noqa: ANN401 - what a caller gives
        try:
            return operator.index(given)
        except TypeError:
            raise _refused(what, given, "a whole number") from None

    return read


def _flag(what: str) -> Callable[[Any], bool]:
    """Reads True or False; a text is neither ("no" would be true)."""

    def read(given: Any) -> bool:  # noqa: ANN401 - what a caller gives
        if isinstance(given, bool) or (hasattr(given, "__index__") and given in (0, 1)):
            return bool(given)
        raise _refused(what, given, "True or False")

    return read


def _ranks(given: Any) -> int:  # noqa: ANN401 - what a caller gives
    """As many as one machine can be expected to start as processes."""
    ranks = _whole("ranks")(given)
    if ranks < 1:
        raise ScheduleError(f"{ranks} ranks cannot run a program", hint="ask for one rank or more")
    most = MOST_RANKS_PER_CORE * (os.cpu_count() or 1)
    if ranks > most:
        raise ScheduleError(
            f"{ranks} ranks are more than this machine can start (at most {most})",
            hint="ask for fewer, or for a topology: compile(…, topology=cluster.topology)",
        )
    return ranks


def _member(kind: type[Member], what: str) -> Callable[[Any], Member]:
    """Reads a member of an enum, by itself or by its value."""

    def read(given: Any) -> Member:  # noqa: ANN401 - what a caller gives
        try:
            return kind(given)
        except ValueError:
            known = ", ".join(member.value for member in kind)
            shown = shortened(str(given), 60)
            raise ScheduleError(f"unknown {what} '{shown}'", hint=f"there are: {known}") from None

    return read


ON = ("gpu", "cpu")


def _on(given: Any) -> str:  # noqa: ANN401 - what a caller gives
    if given in ON:
        return given
    shown = shortened(str(given), 60)
    raise ScheduleError(f"programs cannot run on '{shown}'", hint=f"there are: {', '.join(ON)}")


DRIVERS = ("apart", "cuda")


def _driver(given: Any) -> str:  # noqa: ANN401 - what a caller gives
    if given in DRIVERS:
        return given
    shown, known = shortened(str(given), 60), ", ".join(DRIVERS)
    raise ScheduleError(f"GPUs are not driven by '{shown}'", hint=f"there are: {known}")


_UNITS = (
    {"": 1, "b": 1}
    | {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}
    | {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
)


def _memory(given: Any) -> int:  # noqa: ANN401 - what a caller gives
    """Bytes: a number, or text with a unit.

    >>> _memory("1.5GiB"), _memory("80 GB"), _memory(4096)
    (1610612736, 80000000000, 4096)
    """
    found = re.fullmatch(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([a-z]*)\s*", str(given).lower())
    unit = _UNITS.get(found[2], 0) if found else 0
    nbytes = int(Fraction(found[1]) * unit) if found else 0
    if not 1 <= nbytes < 1 << 62:
        raise _refused("gpu_memory", given, "bytes: 8GiB, 500MB or 65536")
    return nbytes


def _cpu(given: Any) -> str:  # noqa: ANN401 - what a caller gives
    if given not in (NATIVE, *LEVELS):
        known = ", ".join((NATIVE, *LEVELS))
        shown = shortened(str(given), 60)
        raise ScheduleError(f"code is not made for CPUs '{shown}'", hint=f"there are: {known}")
    if given != NATIVE and not instruction_sets_of(given) <= instruction_sets():
        raise ScheduleError(
            f"code for {given} does not run on this machine, which plans the runs of its programs",
            hint="compile it on a machine that has its instructions",
        )
    return given


def _division(given: Division | str) -> Division:
    if isinstance(given, Division):
        return given
    if isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Division.parse(given)
    raise _refused("division", given, "a text: block, cyclic, cyclic(N), grid or auto")


def _parallel(given: str | Iterable[str]) -> str:
    if isinstance(given, str | Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        return SEARCH if given == SEARCH else spelled(given)
    raise _refused("parallel", given, "a text: data 2, pipeline 2 x 8 1f1b")


def _gradient(given: str | Iterable[str]) -> str:
    if isinstance(given, str | Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        names = re.findall(r"[^\s,+]+", given) if isinstance(given, str) else list(given)
        if all(re.fullmatch(r"%?[\w$.-]+", name) for name in names):
            return "+".join(name.removeprefix("%") for name in names)
    raise _refused("gradient", given, "names of arguments: w0 w1")


def _update(given: str) -> str:
    if isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return str(Optimizer.parse(given)) if given else ""
    raise _refused("update", given, "a text: sgd lr=0.01, momentum lr=0.01, adamw lr=0.001")


IGNORED = ("dist", "device")
"""What types of arrays say besides shape and element."""


def _left_out(given: str | Iterable[str]) -> tuple[str, ...]:
    """The optional passes of these names, in the order of the catalogue: a list, or text with
    commas; `all` is every one.
    """
    try:
        names = given.split(",") if isinstance(given, str) else list(given)
    except TypeError:
        raise _refused("without", given, "a list of passes, or their names with commas") from None
    for name in names:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise _refused("a pass of without", name, "a name")
    names = [name_now(name.strip()) for name in names if name.strip()]
    for name in names:
        if name not in (*OPTIONAL, "all"):
            raise ScheduleError(
                f"there is no optional pass '{shortened(name, 60)}'",
                hint=f"there are: {', '.join(OPTIONAL)}; all",
            )
    return tuple(p for p in OPTIONAL if p in names or "all" in names)


def _ignored(given: str | Iterable[str]) -> tuple[str, ...]:
    try:
        names = given.split(",") if isinstance(given, str) else list(given)
    except TypeError:
        raise _refused("ignore", given, "dist, device or both") from None
    for name in names:
        if name not in IGNORED:
            raise _refused("ignore", name, "dist, device or both")
    return tuple(each for each in IGNORED if each in names)


def _sizes(text: str) -> Sizes:
    """What `text` says, in the order of the passes and their options."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _refused("sizes", text, "a text as in block-contractions{terms=128 block=48}")
    if text.strip() == MODEL:
        return MODEL_SIZES
    form = r"\s*([\w-]+)\{([^{}]*)\}\s*"
    if text.strip() and not re.fullmatch(f"{form}(,{form})*", text):
        raise ScheduleError(
            f"invalid sizes '{text}'",
            hint="expected for example block-contractions{terms=128 block=48}",
        )
    found: dict[str, dict[str, int | str]] = {}
    for given, options in re.findall(form, text):
        name = name_now(given)
        if name not in SIZES:
            raise ScheduleError(
                f"the pass '{name}' has no sizes", hint=f"there are: {', '.join(SIZES)}"
            )
        known = found.setdefault(name, {})
        for option in options.split():
            key, _, value = option.partition("=")
            if key not in SIZES[name]:
                raise ScheduleError(
                    f"{name} has no size '{key}'", hint=f"it has: {', '.join(SIZES[name])}"
                )
            known[key] = SIZES[name][key].check(key, value)
    return tuple(
        (name, tuple((key, found[name][key]) for key in SIZES[name] if key in found[name]))
        for name in SIZES
        if found.get(name)
    )


def sizes_text(sizes: Sizes) -> str:
    """The sizes as they are given."""
    if sizes == MODEL_SIZES:
        return MODEL
    passes = ((name, " ".join(f"{key}={value}" for key, value in given)) for name, given in sizes)
    return ",".join(f"{name}{{{given}}}" for name, given in passes)


def _value(member: enum.Enum) -> str:
    return member.value


# -- their declaration -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """How a field of `CompileOptions` is given and written.

    `read` makes the field's value of what a caller gives, text of a command line or a value of
    Python's, and raises ScheduleError; `write` makes numbers, text or tuples of text of it, which
    `read` takes. `kind` is what argparse makes of the text. `choices` are all values, `words` some
    that are offered while one is typed. `always`: a command line has it even where it is the
    default, which hangs on the program. `in_tuning`: what is best with it is not best without.
    `of_runs`: the code is the same whatever it is.
    """

    flags: tuple[str, ...]
    help: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value
    kind: type = str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    always: bool = False
    in_tuning: bool = True
    of_runs: bool = False

    @property
    def metadata(self) -> dict[str, Option]:
        """It as what goes with a field."""
        return {"option": self}

    def __repr__(self) -> str:
        return brief(self, f"{self.flags[-1]}: {self.help}")


@dataclass(frozen=True)
class CompileOptions:
    """How a program is compiled, whichever it is.

    `ranks` and `gpus` describe devices of this machine, emulated where there are none; gpus None
    means one if some target asks for a GPU. `on` sends divided loops to GPUs, or to CPUs; `driver`
    says what GPUs are, None: this machine's, or emulated ones where it has none; `gpu_memory` are
    the bytes that a run takes at most on each. `policy`
    says how tasks are placed, None for the usual way; a program with loops has none. `division`
    says how replicates are divided; tasks are not. `parallel` says how a function on tensors is
    divided over the ranks (`planning/parallelism.py`). `dynamic`: the code is to do for arrays of
    any size and for any numbers.

    `without`: the optional passes that are left out; `sizes` of those that are not, where they are
    not to follow from the machine. Where neither is given they are what tuning found, if it has.

    `strict`: the arithmetic of the textbook, every operation rounded on its own and in the
    program's order, so that every machine computes the same bits, and NumPy does too. Without it a
    product that is only added to something is rounded once, together with the sum, where the
    machine has an instruction for that; several that are added to one element of an array are added
    to it one after the other. Either way a run and its reference have the same.

    `no_bounds`: neither loops with bounds that the program loads nor, with `check`, the accesses of
    its reference are looked at as it runs. What is certain when it is compiled is refused all the
    same.

    `cpu_target`: which CPUs the machine code is for, where it is to run on others than this one.

    `blas`: products of matrices call the BLAS that a machine has, which adds their terms in an
    order of its own; that may be another one for another number of threads.
    """

    ranks: int = field(
        default=DEFAULT_RANKS,
        metadata=Option(
            ("-n", "--ranks"),
            kind=int,
            metavar="N",
            help="MPI ranks, each of which is a CPU device; by default the cluster's, or 2",
            read=_ranks,
            always=True,
            in_tuning=False,
        ).metadata,
    )
    gpus: int | None = field(
        default=None,
        metadata=Option(
            ("--gpus",),
            kind=int,
            metavar="N",
            help="GPUs, emulated where there are none; the last ranks drive one each, or every "
            "rank as many as the others; by default 1 if a target asks for one, with --on gpu "
            "one a rank",
            read=_whole("gpus"),
            always=True,
            in_tuning=False,
        ).metadata,
    )
    on: str | None = field(
        default=None,
        metadata=Option(
            ("--on",),
            help="where divided loops run, whatever their text says: gpu (emulated where there is "
            "none; one a rank, where --gpus says nothing else) or cpu",
            choices=ON,
            read=_on,
            in_tuning=False,
        ).metadata,
    )
    driver: str | None = field(
        default=None,
        metadata=Option(
            ("--driver",),
            help="what GPUs are: apart, emulated ones, or cuda, this machine's (NVIDIA); by "
            "default this machine's where it has some",
            choices=DRIVERS,
            read=_driver,
            in_tuning=False,
        ).metadata,
    )
    gpu_memory: int | None = field(
        default=None,
        metadata=Option(
            ("--gpu-memory",),
            metavar="LIMIT",
            help="bytes that a program takes at most on each GPU (8GiB, 500MB): what would take "
            "more is refused; of an emulated one the size of its memory",
            words=("8GiB", "80GB"),
            read=_memory,
            in_tuning=False,
            of_runs=True,
        ).metadata,
    )
    policy: Policy | None = field(
        default=None,
        metadata=Option(
            ("--policy",),
            help="how tasks are placed, by default by levels; not for programs of loops",
            choices=tuple(each.value for each in Policy),
            read=_member(Policy, "policy"),
            write=_value,
            in_tuning=False,
        ).metadata,
    )
    sync: Sync = field(
        default=Sync.EDGES,
        metadata=Option(
            ("--sync",),
            help="wait for the messages one reads (edges), or for all ranks after each "
            "level, in a loop after each level of its body (levels)",
            choices=tuple(each.value for each in Sync),
            read=_member(Sync, "sync"),
            write=_value,
            in_tuning=False,
        ).metadata,
    )
    division: Division = field(
        default=Division(),
        metadata=Option(
            ("--division",),
            metavar="HOW",
            help="how loops are divided over the ranks: block, cyclic, cyclic(N), grid, or auto: "
            "the one of these that is predicted to be the fastest",
            words=("block", "cyclic", f"cyclic({CYCLIC})", "grid", "auto"),
            read=_division,
            write=str,
            in_tuning=False,
        ).metadata,
    )
    parallel: str = field(
        default="",
        metadata=Option(
            ("--parallel",),
            metavar="HOW",
            help="divide a function on tensors over the ranks, one way after the other: 'data 2', "
            "'zero 2', 'horizontal 2 w1:1', 'pipeline 2 x 8 1f1b' (8 micro-batches), apart by ',', "
            "or search",
            words=("data 2", "zero 1", "horizontal 2 ", "pipeline 2 x 4 1f1b", "search"),
            read=_parallel,
            in_tuning=False,
        ).metadata,
    )
    gradient: str = field(
        default="",
        metadata=Option(
            ("--gradient",),
            metavar="NAMES",
            help="a function on tensors returns the derivatives of its first result, a number, by "
            "these arguments, too: 'w0 w1'",
            read=_gradient,
            in_tuning=False,
        ).metadata,
    )
    update: str = field(
        default="",
        metadata=Option(
            ("--update",),
            metavar="HOW",
            help="with --gradient: return weights that followed their gradients in place of these: "
            "'sgd lr=0.01', 'momentum lr=0.01', 'adamw lr=0.001'",
            words=("sgd lr=0.01", "momentum lr=0.01 momentum=0.9", "adamw lr=0.001"),
            read=_update,
            in_tuning=False,
        ).metadata,
    )
    ignore: tuple[str, ...] = field(
        default=(),
        metadata=Option(
            ("--ignore",),
            metavar="WHAT",
            help="what types of arrays (!ptensor<…>) say, and is not looked at: dist, device",
            words=IGNORED,
            read=_ignored,
            in_tuning=False,
        ).metadata,
    )
    without: tuple[str, ...] = field(
        default=(),
        metadata=Option(
            ("--without",),
            metavar="PASSES",
            help="leave these passes out, to see what they are worth: "
            f"{', '.join(OPTIONAL)}, or all",
            words=(*OPTIONAL, "all"),
            read=_left_out,
            in_tuning=False,
        ).metadata,
    )
    sizes: Sizes = field(
        default=(),
        metadata=Option(
            ("--sizes",),
            metavar="SIZES",
            help="sizes for passes, in place of those derived from the machine, as "
            "stages print them: 'block-contractions{terms=128 block=48},tile-time{widths=32x64}'; "
            "model: those derived from the machine, even if --tune found others",
            read=_sizes,
            write=sizes_text,
            in_tuning=False,
        ).metadata,
    )
    strict: bool = field(
        default=False,
        metadata=Option(
            ("--strict",),
            help="every product and sum rounded on its own: the same bits on every machine, "
            "and slower",
            read=_flag("strict"),
        ).metadata,
    )
    blas: bool = field(
        default=False,
        metadata=Option(
            ("--blas",),
            help="products of matrices call the BLAS that is there (NumPy's, SciPy's, MKL, "
            "BLIS, OpenBLAS): within the bound of a sum in another order, which BLAS chooses",
            read=_flag("blas"),
        ).metadata,
    )
    dynamic: bool = field(
        default=False,
        metadata=Option(
            ("--dynamic",),
            help="compile a function once for arrays of any size that its text leaves open (?)",
            read=_flag("dynamic"),
        ).metadata,
    )
    no_bounds: bool = field(
        default=False,
        metadata=Option(
            ("--no-bounds",),
            help="do not look while the program runs whether accesses stay inside of their arrays: "
            "neither before loops with bounds from memory, nor in the reference of --check",
            read=_flag("no_bounds"),
            in_tuning=False,
        ).metadata,
    )
    cpu_target: str = field(
        default=NATIVE,
        metadata=Option(
            ("--cpu-target",),
            help="the CPUs that machine code is for: native, this machine's, or x86-64-v2, -v3 "
            "and -v4, any of that level; by default native, or the level that all hosts have",
            choices=(NATIVE, *LEVELS),
            read=_cpu,
        ).metadata,
    )

    @staticmethod
    def of(**given: Unpack[Keywords]) -> CompileOptions:
        """Those that a caller asks for; None stands for the default. ScheduleError for what is no
        value of an option, or does not go together.

        >>> CompileOptions.of(without="all").without == OPTIONAL
        True
        """
        _check_names(given)
        options = CompileOptions(
            **{name: OPTIONS[name].read(each) for name, each in given.items() if each is not None}
        )
        _check_together(options)
        return options

    def changed(self, **given: Unpack[Keywords]) -> CompileOptions:
        """The same but for these."""
        return CompileOptions.of(**cast("Keywords", keywords(self) | dict(given)))

    def keeps(self, name: str) -> bool:
        """Whether the pass of that name is run."""
        return name not in self.without

    def sizes_of(self, name: str) -> dict[str, Any]:
        """The sizes of the pass of that name that do not follow from the machine."""
        return dict(dict(self.sizes).get(name, ()))

    @property
    def sizes_text(self) -> str:
        """The sizes as they are given.

        >>> CompileOptions.of(sizes="block-contractions{block=48  terms=128}").sizes_text
        'block-contractions{terms=128 block=48}'
        """
        return sizes_text(self.sizes)

    @property
    def is_chosen(self) -> bool:
        """Whether passes or their sizes are not what the model chooses."""
        return bool(self.without) or self.sizes not in ((), MODEL_SIZES)

    @property
    def settled(self) -> CompileOptions:
        """The same for whoever compiles: what tuning found has been looked up, or is not wanted,
        and what runs alone ask for is left out.
        """
        left_out: dict[str, Any] = {
            name: None for name, option in OPTIONS.items() if option.of_runs
        }
        if self.sizes == MODEL_SIZES:
            left_out["sizes"] = ()
        return replace(self, **left_out)

    def __repr__(self) -> str:
        return brief(self, " ".join(command_line(self)))


class Keywords(TypedDict, total=False):
    """What `compile` takes for the fields of `CompileOptions`."""

    ranks: int | None
    gpus: int | None
    on: str | None
    driver: str | None
    gpu_memory: int | str | None
    policy: Policy | str | None
    sync: Sync | str
    division: Division | str
    parallel: str | Iterable[str]
    gradient: str | Iterable[str]
    update: str
    ignore: str | Iterable[str]
    without: str | Iterable[str]
    sizes: str
    strict: bool
    blas: bool
    dynamic: bool
    no_bounds: bool
    cpu_target: str


OPTIONS: Mapping[str, Option] = {
    each.name: each.metadata["option"] for each in fields(CompileOptions)
}
"""By the names of the fields, in their order."""

_DEFAULTS = CompileOptions()


def _check_names(given: Mapping[str, object]) -> None:
    for name in given:
        if name not in OPTIONS:
            near = get_close_matches(name[:60], OPTIONS, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise OptionError(f"there is no option '{shortened(name, 60)}' of compile{hint}")


def _check_together(options: CompileOptions) -> None:
    """ScheduleError where two of them exclude each other."""
    if options.gpus is not None and not 0 <= options.gpus <= MOST_GPUS * options.ranks:
        raise ScheduleError(
            f"{options.gpus} GPUs cannot be driven by {options.ranks} ranks",
            hint=f"each rank drives at most {MOST_GPUS}",
        )
    if options.on == "gpu" and options.gpus == 0:
        raise ScheduleError(
            "a program cannot run on a GPU where there are none",
            hint="leave out --gpus 0, or --on gpu",
        )
    if options.gradient and options.dynamic:
        raise ScheduleError(
            "a function that is differentiated has sizes that are known",
            hint="leave out --dynamic, or --gradient",
        )
    if options.parallel and options.dynamic:
        raise ScheduleError(
            "what is divided over devices has sizes that are known",
            hint="leave out --dynamic, or --parallel",
        )
    if options.parallel and options.policy is not None:
        raise ScheduleError(
            "with --parallel every task knows its rank, and a policy has nothing to decide",
            hint="leave out --policy, or --parallel",
        )
    if options.blas and options.strict:
        raise ScheduleError(
            "a BLAS chooses the order of sums, and a strict program keeps it",
            hint="choose strict or blas",
        )
    if options.blas and not options.keeps("block-contractions"):
        raise ScheduleError(
            "products for a BLAS are found by block-contractions, which is left out",
            hint="keep block-contractions, or leave blas out",
        )
    for name, _ in options.sizes:
        if not options.keeps(name):
            raise ScheduleError(
                f"{name} is left out, but sizes are given for it", hint="remove one of the two"
            )


# -- from and to a line ----------------------------------------------------------------------------


def arguments(names: Iterable[str] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """What argparse's `add_argument` takes for each of these options; all of them by default. What
    is not given is None.
    """
    for name in names or OPTIONS:
        option = OPTIONS[name]
        how: dict[str, Any] = {"dest": name, "help": option.help.replace("%", "%%")}
        if isinstance(getattr(_DEFAULTS, name), bool):
            how |= {"action": "store_const", "const": True}
        elif option.choices:
            how |= {"choices": option.choices}
        else:
            how |= {"type": option.kind, "metavar": option.metavar}
        yield option.flags, how


def given(parsed: argparse.Namespace) -> Keywords:
    """The options that a line gives."""
    values = {name: getattr(parsed, name, None) for name in OPTIONS}
    return cast("Keywords", {name: each for name, each in values.items() if each is not None})


def keywords(options: CompileOptions) -> dict[str, Any]:
    """What `compile` is given for them: numbers, text and tuples of text."""
    values = {name: getattr(options, name) for name in OPTIONS}
    return {
        name: None if value is None else OPTIONS[name].write(value)
        for name, value in values.items()
    }


def command_line(options: CompileOptions) -> list[str]:
    """The words that give them; of those that have their default only the ones that depend on what
    is compiled.
    """
    words: list[str] = []
    for name, value in keywords(options).items():
        option = OPTIONS[name]
        is_default = getattr(options, name) == getattr(_DEFAULTS, name)
        if value is None or (is_default and not option.always):
            continue
        words.append(option.flags[0])
        if value is not True:
            words.append(_text(value))
    return words


def _text(value: int | str | tuple[str, ...]) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def tuning_key(options: CompileOptions) -> str:
    """What tuning's choice holds for, as text."""
    found = {
        name: value
        for name, value in keywords(options).items()
        if OPTIONS[name].in_tuning and getattr(options, name) != getattr(_DEFAULTS, name)
    }
    return repr(found)


def takes_options(function: Function) -> Function:
    """Shows the options among the keywords of a function that takes them as `**options`, to who
    looks at its signature.
    """
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    shown_as = {name: each.__forward_arg__ for name, each in Keywords.__annotations__.items()}
    more = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=shown_as[name]
        )
        for name, default in keywords(_DEFAULTS).items()
    ]
    shown = signature.replace(parameters=[*kept, *more])
    function.__signature__ = shown  # pyright: ignore[reportFunctionMemberAccess]
    return function
