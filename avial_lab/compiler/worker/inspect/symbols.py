"""The tasks, functions and kernels in a stage's text, and what can be counted in it.

Text and its language -> parts with their lines, counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from avial_lab.artifact.stages import Part
from avial_lab.compiler.worker.inspect.debug_lines import is_instruction, is_vector

_SYMBOL = r'@(?P<name>"[^"]*"|[\w$.:-]+)'
_MLIR_HEAD = re.compile(
    rf"( *)(?:(?:func|llvm|gpu)\.(?:func|module)\b[^@(]*{_SYMBOL}"
    r'|(?:%[\w$.#-]+(?::\d+)? = )?"avial\.(?P<kind>task|replicate|converge)").*\{$'
)
_TASK_NAME = re.compile(r'\bname = "((?:[^"\\]|\\.)*)"')
_LLVM_HEAD = re.compile(rf"define\b[^@]*{_SYMBOL}")
_ASM_TYPE = re.compile(r"\s*\.type\s+([^,\s]+),\s*[@%]function")
_ASM_END = re.compile(r"\s*\.size\s+([^,\s]+),")
_PTX_HEAD = re.compile(r"(?:\.\w+ )*\.(?:entry|func)\s.*?([\w$.]+)\(")
_OPERATION = re.compile(
    r' *(?:%[\w$.#-]+(?::\d+)?(?:, %[\w$.#-]+(?::\d+)?)* = )?"?([a-z_]\w*)\.[\w.]+'
)
_BUILTIN = {"return": "func", "call": "func", "module": "builtin"}
_NOT_OPCODE = re.compile(r"\s*(?:%\S+ = )?(?:(?:tail|musttail|notail) )?(\w+)")


def parts_of(text: str, language: str) -> tuple[Part, ...]:
    """In the order they begin; parts may lie in parts."""
    lines = text.splitlines()
    found = _PARTS[language](lines) if language in _PARTS else []
    return tuple(sorted(found, key=lambda part: (part.first, -part.last)))


def _mlir_parts(lines: list[str]) -> list[Part]:
    found: list[Part] = []
    open_: list[tuple[int, int, str]] = []
    for number, line in enumerate(lines):
        if head := _MLIR_HEAD.fullmatch(line):
            open_.append((len(head[1]), number, (head["name"] or "").strip('"')))
        elif open_ and line.startswith("}", open_[-1][0]) and not line[: open_[-1][0]].strip():
            _, first, name = open_.pop()
            named = _TASK_NAME.search(line)
            name = name or (named[1] if named else "")
            found.append(Part(name, first, number + 1))
    return found


def _llvm_parts(lines: list[str]) -> list[Part]:
    return _until(lines, _LLVM_HEAD, "}")


def _ptx_parts(lines: list[str]) -> list[Part]:
    return _until(lines, _PTX_HEAD, "}")


def _until(lines: list[str], head: re.Pattern[str], end: str) -> list[Part]:
    found: list[Part] = []
    first: int | None = None
    name = ""
    for number, line in enumerate(lines):
        if first is None and (match := head.match(line)):
            first, name = number, match[match.lastindex or 1].strip('"')
        elif first is not None and line == end:
            found.append(Part(name, first, number + 1))
            first = None
        elif line.endswith(";"):  # a declaration alone
            first = None if line.startswith(")") else first
    return found


def _asm_parts(lines: list[str]) -> list[Part]:
    begins = {m[1]: number for number, line in enumerate(lines) if (m := _ASM_TYPE.match(line))}
    ends = {m[1]: number + 1 for number, line in enumerate(lines) if (m := _ASM_END.match(line))}
    return [
        Part(name.strip('"'), first, ends[name]) for name, first in begins.items() if name in ends
    ]


_PARTS = {"mlir": _mlir_parts, "llvm": _llvm_parts, "asm": _asm_parts, "ptx": _ptx_parts}


def counts_of(text: str, language: str) -> Mapping[str, int]:
    """Operations by dialect; of machine code its instructions, and how many of them work on several
    elements at once (`vector`).
    """
    lines = text.splitlines()
    if language == "mlir":
        found = (match[1] for line in lines if (match := _OPERATION.match(line)))
        bare = (_BUILTIN[word] for line in lines if (word := _first_word(line)) in _BUILTIN)
        return dict(sorted(Counter([*found, *bare]).items()))
    if language == "llvm":
        chosen = [line for line in lines if line.startswith("  ") and _NOT_OPCODE.match(line)]
    elif language in ("asm", "ptx"):
        chosen = [line for line in lines if is_instruction(line)]
    else:
        return {}
    vector = sum(is_vector(line.strip(), language) for line in chosen)
    return {"instructions": len(chosen), "vector": vector}


def _first_word(line: str) -> str:
    match = re.match(r" *([a-z]+)\b(?![.=])", line)
    return match[1] if match else ""


def ptx_facts(text: str) -> Mapping[str, str]:
    """What the PTX itself says. Its registers are virtual: how many a thread takes, and what is
    spilled, only ptxas knows.
    """
    registers: Counter[str] = Counter()
    for kind, count in re.findall(r"\.reg \.(\w+)\s+%\w+<(\d+)>", text):
        registers[kind] += int(count) - 1  # <5> declares %r0 to %r4, of which the first is not used
    shared = sum(map(int, re.findall(r"\.shared .*?\.b8 \S+\[(\d+)\]", text)))
    facts = {"shared memory": f"{shared} B"}
    if registers:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(registers.items()))
        facts["virtual registers"] = f"{listed} (before ptxas)"
    target = re.search(r"^\.target (\S+)", text, re.MULTILINE)
    version = re.search(r"^\.version (\S+)", text, re.MULTILINE)
    if target and version:
        facts["target"] = f"{target[1].rstrip(',')}, PTX {version[1]}"
    return facts
