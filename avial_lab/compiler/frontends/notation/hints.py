"""What a person probably meant: the nearest operation, the operation for these types, the language
of a text that is no MLIR.

Words of a cell -> hints for its errors, or None where nothing is likely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from avial_lab.compiler.frontends.notation import types

# -- the operation that was meant ------------------------------------------------------------------

_COMMON = (
    *("arith.addi", "arith.addf", "arith.muli", "arith.mulf", "arith.subi", "arith.subf"),
    *("arith.divf", "arith.divsi", "arith.constant", "arith.cmpi", "arith.cmpf", "arith.select"),
    *("arith.index_cast", "arith.sitofp", "memref.load", "memref.store", "affine.load"),
    *("affine.store", "affine.for", "affine.apply", "scf.for", "scf.if", "scf.parallel"),
    *("scf.yield", "math.sqrt", "math.exp", "math.absf", "memref.subview", "memref.dim"),
    *("avial.task", "avial.target", "avial.schedule", "func.func", "gpu.launch", "linalg.matmul"),
)
"""Operations that programs are full of, the most frequent first: what is as near as another, and
here, is likelier.
"""

_OTHER_WORDS = {
    "add": ("addi", "addf"),
    "plus": ("addi", "addf"),
    "sum": ("addi", "addf"),
    "sub": ("subi", "subf"),
    "minus": ("subi", "subf"),
    "mul": ("muli", "mulf"),
    "mult": ("muli", "mulf"),
    "multiply": ("muli", "mulf"),
    "times": ("muli", "mulf"),
    "div": ("divsi", "divf"),
    "divi": ("divsi", "divsi"),
    "divide": ("divsi", "divf"),
    "mod": ("remsi", "remf"),
    "modi": ("remsi", "remsi"),
    "remi": ("remsi", "remsi"),
    "rem": ("remsi", "remf"),
    "max": ("maxsi", "maximumf"),
    "maxf": ("maxsi", "maximumf"),
    "maxi": ("maxsi", "maxsi"),
    "min": ("minsi", "minimumf"),
    "minf": ("minsi", "minimumf"),
    "mini": ("minsi", "minsi"),
    "cmp": ("cmpi", "cmpf"),
    "compare": ("cmpi", "cmpf"),
    "const": ("constant", "constant"),
    "read": ("load", "load"),
    "get": ("load", "load"),
    "write": ("store", "store"),
    "set": ("store", "store"),
}
"""Words of other languages: the operation on integers, and on floats."""

_FAR = 3
"""Edits after which a name is another word."""


def nearest_operation(name: str, known: Iterable[str], operand: str | None) -> str | None:
    """`did you mean arith.addi?`, of `known`; `operand` is the type of its first operand.

    The least edit distance (Damerau–Levenshtein, neighbours exchanged count as one), then what fits
    the operand, then what is used most.
    """
    names = set(known)
    dialect, dot, word = name.rpartition(".")
    meant = _OTHER_WORDS.get(word)
    if meant is not None:
        choice = f"{dialect}{dot}{meant[kind_of(operand) == 'float']}"
        if choice in names:
            return f"did you mean {choice}?"
    candidates = names if dot else set(_COMMON)
    allowed = min(_FAR, max(1, len(name) // 3) if dot else len(name) // 4)
    found = [
        (distance, _misfit(candidate, operand), _rank(candidate), candidate)
        for candidate in candidates
        if (distance := _edits(name, candidate if dot else candidate.rpartition(".")[2], allowed))
        <= allowed
    ]
    return f"did you mean {min(found)[3]}?" if found else None


def kind_of(type_: str | None) -> str | None:
    """`float`, `integer` or `index`: what a value of that type, or its elements, is."""
    if type_ is None:
        return None
    element = types.element_of(type_) or type_.strip()
    if element == "index":
        return "index"
    if re.fullmatch(r"[us]?i\d+", element):
        return "integer"
    return "float" if re.fullmatch(r"b?f\d+\w*|tf32", element) else None


def _misfit(candidate: str, operand: str | None) -> bool:
    kind = kind_of(operand)
    if kind is None or not candidate.startswith("arith."):
        return False
    return candidate.endswith("f") != (kind == "float")


def _rank(candidate: str) -> int:
    return _COMMON.index(candidate) if candidate in _COMMON else len(_COMMON)


def _edits(a: str, b: str, most: int) -> int:
    """Insertions, deletions, replacements and exchanged neighbours from `a` to `b`; any number
    above `most` where they are more.
    """
    if abs(len(a) - len(b)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, char in enumerate(a, 1):
        last, before, row = before, row, [i]
        for j, other in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (char != other))
            if i > 1 and j > 1 and char == b[j - 2] and a[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


# -- operands --------------------------------------------------------------------------------------

_FLOAT_FORM = {
    "addi": "addf",
    "subi": "subf",
    "muli": "mulf",
    "divsi": "divf",
    "divui": "divf",
    "remsi": "remf",
    "remui": "remf",
    "maxsi": "maximumf",
    "minsi": "minimumf",
    "cmpi": "cmpf",
}
_INTEGER_FORM = {
    "addf": "addi",
    "subf": "subi",
    "mulf": "muli",
    "divf": "divsi",
    "remf": "remsi",
    "maximumf": "maxsi",
    "minimumf": "minsi",
    "maxnumf": "maxsi",
    "minnumf": "minsi",
    "cmpf": "cmpi",
}


def wrong_kind(op: str, value: str, type_: str) -> tuple[str, str] | None:
    """What is wrong with `arith.addf %x` where %x is an i32, and what to write; None where the
    operation takes such values.
    """
    dialect, _, word = op.partition(".")
    kind = kind_of(type_)
    if dialect != "arith" or kind is None:
        return None
    if word in _INTEGER_FORM and kind != "float":
        fitting = f"arith.{_INTEGER_FORM[word]}"
        return f"{op} takes floats, and {value} is {type_}", _either(
            fitting, kind, value, type_, to_float=True
        )
    if word in _FLOAT_FORM and kind == "float":
        fitting = f"arith.{_FLOAT_FORM[word]}"
        return f"{op} takes integers, and {value} is {type_}", _either(
            fitting, kind, value, type_, to_float=False
        )
    return None


def _either(fitting: str, kind: str, value: str, type_: str, *, to_float: bool) -> str:
    whole = "floats" if kind == "float" else "an index" if kind == "index" else "integers"
    if not to_float:
        cast = f"arith.fptosi {value} : {type_} to i32 makes an integer of it"
    elif kind == "index":
        cast = f"arith.index_cast {value} : index to i64, then arith.sitofp, makes a float of it"
    else:
        cast = f"arith.sitofp {value} : {type_} to f32 makes a float of it"
    return f"{fitting} takes {whole}; {cast}"


def unequal_types(op: str, x: tuple[str, str], y: tuple[str, str]) -> tuple[str, str]:
    """What is wrong with operands `(name, type)` of two types, and how one becomes the other's."""
    message = f"the operands of {op} have two types: {x[0]} is {x[1]}, {y[0]} is {y[1]}"
    source, target = (x, y) if (kind_of(x[1]), kind_of(y[1])) != ("float", "integer") else (y, x)
    cast = _cast(source[1], target[1])
    if cast is None:
        return message, "make both of one type"
    return message, f"convert one: %c = {cast} {source[0]} : {source[1]} to {target[1]}"


def _cast(source: str, target: str) -> str | None:
    if types.element_of(source) or types.element_of(target):
        return None
    kinds = kind_of(source), kind_of(target)
    if "index" in kinds and "float" not in kinds:
        return "arith.index_cast"
    if kinds == ("integer", "float"):
        return "arith.sitofp"
    if kinds[0] != kinds[1] or kinds[0] is None:
        return None
    wider = _width(target) > _width(source)
    if kinds[0] == "integer":
        return "arith.extsi" if wider else "arith.trunci"
    return "arith.extf" if wider else "arith.truncf"


def _width(type_: str) -> int:
    digits = re.search(r"\d+", type_)
    return int(digits[0]) if digits else 0


LITERAL = re.compile(r"-?(?:\d[\w.]*(?:[eE][+-]\d+)?|true\b|false\b)")


def constant_line(literal: str, type_: str | None) -> str:
    """The line that gives a number a name: `%c1 = arith.constant 1 : i32`."""
    if literal in ("true", "false"):
        return f"%{literal} = arith.constant {literal}"
    whole = re.fullmatch(r"-?\d+", literal) is not None
    wanted = type_ or ("i32" if whole else "f32")
    element = types.element_of(wanted) or wanted
    if whole and kind_of(wanted) == "float":
        literal = f"{literal}.0"
    name = re.sub(r"\W", "_", literal.replace("-", "m").removesuffix(".0"))
    if element != wanted:
        return f"%c{name} = arith.constant dense<{literal}> : {wanted}"
    return f"%c{name} = arith.constant {literal} : {wanted}"


# -- other languages -------------------------------------------------------------------------------

_C = re.compile(
    r"""\s*(?:\#\s*(?:include|define|pragma|ifdef)\b|//.*\n\s*\#|(?:for|while|if|switch)\s*\(
    |(?:(?:static|const|unsigned|struct|extern|inline)\s+)*(?:int|double|float|void|long|char|auto)
    \s+[*\w]|printf\s*\(|std::|using\s|template\b)""",
    re.VERBOSE,
)
_PYTHON = re.compile(
    r"""\s*(?:(?:import|from|def|class|print|with|assert|lambda|try|pass)\b|return\s+\w|@\w
    |(?:for|while|if|elif)\b(?!\s*\().*:\s*(?:\#.*)?$|[\w.\[\], ]+(?:[+\-*/@]|//)?=(?!=)
    |[\w.]+\(.*\)\s*$|[\w.]+\[)""",
    re.VERBOSE | re.MULTILINE,
)

_FIRST_PROGRAMS = (
    "%avial load lists programs to begin with, %avial load gemm writes one into the next cell"
)
WHAT_A_CELL_TAKES = (
    "a cell takes operations, one a line: %z = arith.addi %x, %y adds two numbers, "
    f"and func.func @f(%a, %b) {{ … }} holds a program; {_FIRST_PROGRAMS}"
)

_PYTHON_IN_A_CELL = "a cell takes a Python function, too, if it begins with def"
_TAKEN = {
    "C": "%%avial --lang=c takes functions of C; else ",
    "Python": f"{_PYTHON_IN_A_CELL}, and @avial_lab.program compiles one anywhere; else ",
}

_OF_ARRAYS = re.compile(r"[ \t]*(\w+) *= *(\w+) *([-+*]) *(\w+)[ \t]*;?[ \t]*$", re.MULTILINE)
_OPERATION_OF = {"+": "add", "-": "sub", "*": "mul"}


def _loop_for(text: str, offset: int) -> str | None:
    """The program that `c = a + b` means, of arrays; None for any other text."""
    match = _OF_ARRAYS.match(text, offset)
    if match is None or any(name[0].isdigit() for name in match.group(1, 2, 4)):
        return None
    c, a, sign, b = match.groups()
    word = _OPERATION_OF[sign]
    arguments = ", ".join(f"%{name}" for name in dict.fromkeys((a, b, c)))
    return f"""{_PYTHON_IN_A_CELL}:
  def f({arguments.replace("%", "")}):
      {c}[:] = {a} {sign} {b}
in MLIR, of arrays of 8 integers, that is
  func.func @f({arguments}) {{
    affine.for %i = 0 to 8 {{
      %x = affine.load %{a}[%i]
      %y = affine.load %{b}[%i]
      %z = arith.{word}i %x, %y
      affine.store %z, %{c}[%i]
    }}
    return
  }}
where {", ".join(dict.fromkeys((a, b, c)))} are NumPy arrays (of floats: arith.{word}f); \
{_FIRST_PROGRAMS}"""


def language_hint(text: str, offset: int) -> str | None:
    """Where the text at `offset` is C or Python, what a cell takes; else None."""
    if text.startswith("%", offset):
        return None
    result = re.compile(r"(\w+)\s*=\s*\w+\.\w+ +%").match(text, offset)
    if result is not None:
        return f"a value is written with a %: %{result[1]} = …"
    for name, form in (("C", _C), ("Python", _PYTHON)):
        if form.match(text, offset):
            program = _loop_for(text, offset) if name == "Python" else None
            return f"this looks like {name}; {program or _TAKEN[name] + WHAT_A_CELL_TAKES}"
    if text.startswith("#", offset):
        return "a comment begins with //"
    return None
