"""Values and their types, as far as they are known where the text is being read.

Names -> types; constants whose type waits for a use, constants and casts that are made on the way.
"""

from __future__ import annotations

import re

from mlir import ir

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.elaboration import BUFFER, Constant, Type, Unknown
from avial_lab.compiler.frontends.notation.output import Output
from avial_lab.compiler.frontends.notation.reader import CellReader
from avial_lab.compiler.frontends.notation.source import Source, did_you_mean
from avial_lab.core.errors import AvialError, VerifyError

_NAMED = 8
"""Values that an error lists."""


class Scope(CellReader):
    """The values that are known at the place that is being read, and the text written so far."""

    def __init__(self, source: Source, context: ir.Context) -> None:
        super().__init__(source)
        self.context = context
        self.out = Output()
        self.aliases = Output()
        self.values: dict[str, Type] = {}
        self.undo: list[tuple[str, Type, bool]] = []
        self.constants: dict[tuple[str, str], str] = {}
        self.open_constants: list[Constant] = []
        self.handles: dict[str, str] = {}
        self.born: dict[str, int] = {}
        self.fresh = 0

    def define(self, name: str, type_: Type) -> None:
        """`%name` has that type from here to the end of the region."""
        values = self.values
        if name in values:
            self.undo.append((name, values[name], True))
        else:
            self.undo.append((name, None, False))
        values[name] = type_
        if type(type_) is str and type_.startswith("memref"):
            self.born[name] = len(self.undo)
            self.handles.pop(name, None)

    def leave(self, mark: int) -> None:
        """Forget what was defined since `len(self.undo)` was `mark`."""
        undo, values = self.undo, self.values
        while len(undo) > mark:
            name, old, existed = undo.pop()
            if existed:
                values[name] = old
            else:
                del values[name]

    def define_results(self, results: str | None, found: list[Type]) -> None:
        """The results as written (`%x`, `%x:2`, `%x, %y`) get their types."""
        if results is None:
            return
        if "," not in results and ":" not in results:
            self.define(results, found[0] if found else None)
            return
        k = 0
        for part in results.split(","):
            name, _, count = part.strip().partition(":")
            if not count:
                self.define(name, found[k] if k < len(found) else None)
                k += 1
                continue
            first = k
            for j in range(min(int(count), 1000)):
                self.define(f"{name}#{j}", found[k] if k < len(found) else None)
                k += 1
            self.define(name, found[first] if first < len(found) else None)

    def type_of(self, name: str, offset: int, wanted: str | None = None) -> str | None:
        """The type of a value; `wanted` decides for a constant whose type is not written.

        None where it cannot be told. Raises VerifyError for a name nothing defines here.
        """
        try:
            found = self.values[name]
        except KeyError:
            raise self.unknown_value(name, offset) from None
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, Constant):
            chosen = wanted or self.default_type(found.literal)
            self._complete(found, chosen)
        else:
            chosen = self._ask(found)
        self.values[name] = chosen
        return chosen

    def is_open(self, name: str) -> bool:
        """Whether it is a constant that still waits for a type."""
        return isinstance(self.values.get(name), Constant)

    def common_type(self, names: list[tuple[str, int]]) -> str | None:
        """The type of operands that have one type, from those of them that already have one."""
        wanted = None
        for name, offset in names:
            if not self.is_open(name):
                wanted = self.type_of(name, offset)
                break
        for name, offset in names:
            if self.is_open(name) or name not in self.values:
                wanted = (
                    self.type_of(name, offset, wanted)
                    if wanted is None
                    else (self.type_of(name, offset, wanted) and wanted)
                )
        return wanted

    def unknown_value(self, name: str, offset: int) -> AvialError:
        later = re.compile(rf"{re.escape(name)}\s*=(?!=)").search(self.text, offset)
        hint = did_you_mean(name, self.values)
        if later:
            line, _ = self.source.line_and_column(later.start())
            hint = hint or f"{name} is defined later, in line {line}; move that up"
        hint = hint or self._values_here()
        return self.error(f"unknown value {name}", offset, hint, VerifyError)

    def _values_here(self) -> str:
        """What may be named, the last defined first, so far as a line holds it."""
        names = list(reversed(self.values))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        if not names:
            return "no value is defined here yet: a value is the result of an operation, %x = …"
        return f"the values here are {', '.join(names[:_NAMED])}{more}"

    @staticmethod
    def default_type(literal: str) -> str:
        """What MLIR takes a literal without a type for."""
        if literal in ("true", "false"):
            return "i1"
        return "i64" if re.fullmatch(r"-?(\d+|0x[0-9a-fA-F]+)", literal) else "f64"

    def _complete(self, constant: Constant, type_: str) -> None:
        """Give the constant its type; an integer literal becomes a float's or a vector's where that
        is wanted.
        """
        literal = constant.literal
        element = types.element_of(type_) or type_
        element = self.type_aliases.get(element, element)
        if re.fullmatch(r"b?f\d+\w*", element) and re.fullmatch(r"-?\d+", literal):
            literal += ".0"
        if type_.startswith(("vector", "tensor")):
            literal = f"dense<{literal}>"
        if literal in ("true", "false"):
            text = f"{literal}"
        else:
            text = f"{literal} : {type_}"
        constant.output.pieces[constant.piece] += text + constant.rest

    def settle_constants(self) -> None:
        """Constants whose type no use has told are what MLIR takes them for: i64, f64."""
        for constant in self.open_constants:
            if constant.output.pieces[constant.piece][-1:] != "\n":
                self._complete(constant, self.default_type(constant.literal))
        self.open_constants.clear()

    def _ask(self, unknown: Unknown) -> str | None:
        """MLIR's own answer for the type of a result of one statement."""
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in unknown.operands)
        text = (
            f"{self.aliases.text}\nfunc.func private @probe({arguments}) {{\n"
            f"{''.join(unknown.pieces)}\nub.unreachable }}"
        )
        with self.context:
            try:
                module = ir.Module.parse(text)
            except ir.MLIRError:
                return None
            function = module.body.operations[0]
            block = function.operation.regions[0].blocks[0]
            results = block.operations[len(block.operations) - 2].operation.results
            return str(results[unknown.index].type) if unknown.index < len(results) else None

    def constant(self, literal: str, type_: str, offset: int) -> str:
        """The name of an integer constant, made here unless this region or one around it has it
        already.
        """
        if not re.fullmatch(r"-?\d{1,19}", literal):
            problem = "does not fit into 64 bits" if literal.isdigit() else "is not an integer"
            raise self.error(f"'{literal}' {problem}", offset)
        key = (literal, type_)
        name = self.constants.get(key)
        if name is None:
            name = f"%.lit{self.fresh}"
            self.fresh += 1
            self.constants[key] = name
            self.out.put(f"{name} = arith.constant {literal} : {type_}{self.loc(offset)}\n", offset)
        return name

    def buffer_refs(self, names: list[str], offset: int) -> dict[str, str]:
        """The buffers as operands of avial's operations: casts, made where first needed.

        New ones are written in the order in which the buffers came into being, whatever the order
        of the list.
        """
        new = {name for name in names if name not in self.handles}
        for name in sorted(new, key=lambda name: self.born.get(name, 0)):
            handle = self.handles[name] = f"%.ref{self.fresh}"
            self.fresh += 1
            self.out.put(
                f"{handle} = builtin.unrealized_conversion_cast {name}"
                f" : {self.type_of(name, offset)}"
                f" to {BUFFER}{self.loc(offset)}\n",
                offset,
            )
        return {name: self.handles[name] for name in names}
