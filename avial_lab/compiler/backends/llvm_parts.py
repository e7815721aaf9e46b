"""A big module of LLVM IR in parts that are compiled beside one another.

LLVM IR -> modules that hold its functions between them; their assembly -> that of the whole. Text
to text: needs no LLVM. What the parts are follows from the text alone, not from how many cores
there are: the same program is the same machine code everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

PARTS = 2
"""At the most; another one costs another start of opt and llc, some 40 ms."""

LEAST_LINES = 1500
"""Of the functions of a module that is worth it: about 0.2 s of work."""

LOOP = 150
"""Lines of straight code that take as long as a loop that is annotated: it becomes vectors, and
several copies.
"""

_NAME = r'@([-\w$.]+|"[^"]*")'
_HEAD = re.compile(rf"define (?:(internal|private) )?([^@]*{_NAME}.*?)( !dbg !\d+)? {{$")
_VARIABLE = re.compile(
    rf"{_NAME} = (?:private unnamed_addr constant|global (\[\d+ x [\w.]+\]|[\w.]+)) "
)
"""A variable that parts can share; arrays of arrays leave the module whole."""
_USED = re.compile(rf"{_NAME}(\(?)")
_THREADED = re.compile(rf"@__kmpc_fork_call\(ptr [^,\n]*, i32 \d+, ptr {_NAME}")
_PLAIN = re.compile(r"^attributes (#\d+) = {.*\boptnone\b", re.MULTILINE)
_COPIED = (";", "!", "%", "declare ", "attributes ", "source_filename", "target ")
"""What lines begin with that may stand in every part."""


@dataclass(frozen=True)
class LlvmPart:
    """One module of several; `shared` are the names of its functions that others use."""

    llvm_ir: str
    shared: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Function:
    """`head` is its type, name and arguments, as they stand in a declaration too; `place` its
    debug information.
    """

    name: str
    linkage: str
    head: str
    place: str
    body: str = field(repr=False)
    uses: frozenset[str]
    calls: frozenset[str]
    threaded: frozenset[str]
    """What it has run by all threads."""
    is_plain: bool
    """LLVM takes it as it stands, whatever it calls."""

    @staticmethod
    def of(text: str, plain: Set[str]) -> _Function:
        """`plain` are the numbers of attributes that say so."""
        head, _, body = text.partition("\n")
        found = _HEAD.match(head)
        assert found is not None, head
        used = _USED.findall(body)
        threaded = _THREADED.findall(body) if "@__kmpc_fork_call" in body else []
        return _Function(
            found[3],
            found[1] or "",
            found[2],
            found[4] or "",
            body,
            frozenset(name for name, _ in used),
            frozenset(name for name, called in used if called),
            frozenset(threaded),
            not plain.isdisjoint(found[2].split()),
        )

    @cached_property
    def lines(self) -> int:
        return self.body.count("\n")

    @cached_property
    def work(self) -> int:
        """What opt and llc have to do, in lines of straight code."""
        return self.lines // (2 if self.is_plain else 1) + LOOP * self.body.count("!llvm.loop")

    def written(self, *, hidden: bool) -> str:
        """Its definition, seen by other parts where it is `hidden` (from others than they)."""
        linkage = "hidden " if hidden else f"{self.linkage} " if self.linkage else ""
        return f"define {linkage}{self.head}{self.place} {{\n{self.body}"


def parts_of(llvm_ir: str, exported: Sequence[str]) -> tuple[LlvmPart, ...]:
    """The module in parts of about as much work; in one where it is small, or where something
    stands in it that is not known how to divide. Names in `exported` are seen anyway.
    """
    whole = (LlvmPart(llvm_ir),)
    if llvm_ir.count("\n") < LEAST_LINES:
        return whole
    top, functions = _read(llvm_ir)
    if sum(function.lines for function in functions.values()) < LEAST_LINES:
        return whole
    variables = [named for line in top if (named := _VARIABLE.match(line))]
    rest = [line for line in top if not _VARIABLE.match(line)]
    if not all(line.startswith(_COPIED) for line in rest):
        return whole
    bins = _balanced(_groups(functions), functions)
    if len(bins) == 1:
        return whole
    used = [_used(names, functions) for names in bins]
    found: list[LlvmPart] = []
    for number, own in enumerate(bins):
        elsewhere = frozenset[str]().union(*(used[k] for k in range(len(bins)) if k != number))
        shared = [name for name in functions if name in own & elsewhere]
        text = [
            *rest,  # types before the variables of them
            *(_variable(each, here=number == 0) for each in variables),
            *(f"declare hidden {functions[n].head}" for n in functions if n in used[number] - own),
            *(functions[n].written(hidden=n in shared) for n in functions if n in own),
        ]
        hidden = tuple(name for name in shared if name not in exported)
        found.append(LlvmPart("\n".join(text), hidden))
    return tuple(found)


def _read(llvm_ir: str) -> tuple[list[str], dict[str, _Function]]:
    """The lines outside of functions, and the functions by their names."""
    top: list[str] = []
    functions: list[_Function] = []
    plain = frozenset(_PLAIN.findall(llvm_ir))
    for piece in re.split(r"^(?=define )", llvm_ir, flags=re.MULTILINE):
        text, end, after = (
            piece.partition("\n}\n") if piece.startswith("define ") else ("", "", piece)
        )
        if text:
            functions.append(_Function.of(text + end, plain))
        top += [line for line in after.splitlines() if line]
    return top, {function.name: function for function in functions}


def _used(names: Iterable[str], functions: Mapping[str, _Function]) -> frozenset[str]:
    """Functions that are used by those of these names."""
    used = frozenset[str]().union(*(functions[name].uses for name in names))
    return used & functions.keys()


def _variable(found: re.Match[str], *, here: bool) -> str:
    """A global variable, which one part holds; constants that have no address stand in all."""
    if here or found[2] is None:
        return found.string
    return f"@{found[1]} = external global {found[2]}"


def _groups(functions: Mapping[str, _Function]) -> list[frozenset[str]]:
    """Functions that are to be seen together, groups in the order of their first.

    Those who call one another, but for what every thread calls once, what the program's function
    does, the phases, and what functions do that are not optimised: what they are called with does
    not matter to them.
    """
    threaded = frozenset[str]().union(*(f.threaded for f in functions.values()))
    outside = frozenset[str]().union(*(functions[n].calls for n in threaded & functions.keys()))
    group = {name: frozenset([name]) for name in functions}
    for function in functions.values():
        if function.name == "main" or function.is_plain:
            continue
        for callee in function.calls & functions.keys() - outside:
            if callee not in group[function.name]:
                both = group[function.name] | group[callee]
                group.update(dict.fromkeys(both, both))
    return list(dict.fromkeys(group.values()))


def _balanced(
    groups: Iterable[frozenset[str]], functions: Mapping[str, _Function]
) -> list[frozenset[str]]:
    """The groups in at most `PARTS`, the most work first, each to the least (Graham 1969)."""

    def work(names: Iterable[str]) -> int:
        return sum(functions[name].work for name in names)

    bins: list[list[frozenset[str]]] = [[] for _ in range(PARTS)]
    sums = [0] * PARTS
    for group in sorted(groups, key=work, reverse=True):
        least = sums.index(min(sums))
        bins[least].append(group)
        sums[least] += work(group)
    return [frozenset[str]().union(*each) for each in bins if each]


def joined(assemblies: Sequence[str]) -> str:
    """The assembly of all parts as one: the numbers of local labels follow on, for each kind."""
    used: dict[str, int] = {}
    texts: list[str] = []
    for assembly in assemblies:
        before = dict(used)

        def follows_on(label: re.Match[str], before: Mapping[str, int] = before) -> str:
            number = int(label[2]) + before.get(label[1], 0)
            used[label[1]] = max(used.get(label[1], 0), number + 1)
            return f"{label[1]}{number}"

        texts.append(_LABEL.sub(follows_on, assembly))
    return "".join(texts)


_LABEL = re.compile(r"(\.L[A-Za-z_]+)(\d+)")
