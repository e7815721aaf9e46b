"""LLVM IR, assembly and PTX with debug information beside the same without: whose lines are whose.

Two texts that differ in debug information alone, what its line numbers stand for -> the cell's
lines of each line of the clean one; None where the two do not fit together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from avial_lab.artifact.stages import Lines

_DEBUG = re.compile(r",? !dbg !(\d+)")
_NUMBERED = re.compile(r"!\d+\b")
_LOCATION = re.compile(
    r"^!(\d+) = (?:distinct )?!(?:DILocation|DISubprogram)\(.*?\bline: (\d+)", re.MULTILINE
)
_LOC = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_DIRECTIVE = re.compile(
    r"\s*\.(?:loc|file|cfi_\w+)\b|(?:\.L|\$L__)(?:tmp|func_begin|func_end|debug_)\w*:"
)
_DEBUG_SECTION = re.compile(r"\s*\.section\s+\.debug_")
_FUNCTION_ENDS = re.compile(r"\s*(?:\.cfi_endproc|\.size\s)|\}")


def llvm_origins(clean: str, debug: str, table: Sequence[Lines]) -> tuple[Lines, ...] | None:
    """Of the lines of LLVM IR."""
    places = {int(number): int(line) for number, line in _LOCATION.findall(debug)}
    theirs = [line for line in debug.splitlines() if not line.startswith("!")]
    result: list[Lines] = []
    position = 0
    for line in clean.splitlines():
        if line.startswith("!"):
            result.append(())
            continue
        if position == len(theirs):
            return None
        other = theirs[position]
        position += 1
        found = _DEBUG.search(other)
        if _NUMBERED.sub("!", _DEBUG.sub("", other)) != _NUMBERED.sub("!", line):
            return None
        result.append(table[places.get(int(found[1]), 1)] if found else ())
    return tuple(result)


def assembly_origins(clean: str, debug: str, table: Sequence[Lines]) -> tuple[Lines, ...] | None:
    """Of the lines of assembly or PTX: an instruction has the last `.loc` before it."""
    result: list[Lines] = []
    lines = iter(debug.splitlines())
    current: Lines = ()
    for line in clean.splitlines():
        in_section = False
        for other in lines:
            if other == line and not in_section:
                break
            if place := _LOC.match(other):
                current = table[int(place[1])] if int(place[1]) < len(table) else ()
            elif _DEBUG_SECTION.match(other):
                in_section = True
            elif other == line:  # the first of the clean text's lines after the section
                break
            elif not (in_section or _DIRECTIVE.match(other) or not other.strip()):
                return None
        else:
            return None
        result.append(current if is_instruction(line) else ())
        if _FUNCTION_ENDS.match(line):
            current = ()
    return tuple(result)


def is_instruction(line: str) -> bool:
    r"""Whether a line of assembly or PTX is one: indented, no directive, no label, no comment.

    >>> [is_instruction(line) for line in ("\taddq\t$8, %rax", "\t.globl\tf", "f:", "# %bb.0:")]
    [True, False, False, False]
    """
    word = line.strip()
    return (
        line[:1] in "\t @"
        and word[:1] not in ("", ".", "#", "/", "{", "}", "(", ")")
        and (not word.endswith(":"))
    )


_VECTOR = re.compile(r"%[yz]mm\d|\bv\d+\.\d+[bhsd]\b|<\d+ x |\.v[248]\b")
_SCALAR_OR_MOVE = re.compile(r"v?(?:\w*s[sd]|mov[dq]|cvt\w*)$")


def is_vector(instruction: str, language: str) -> bool:
    """Whether an instruction works on several elements at once (x86, AArch64, PTX, LLVM IR).

    >>> [is_vector(i, "asm") for i in ("vaddps %ymm0, %ymm1, %ymm2", "vaddss %xmm0, %xmm1, %xmm1")]
    [True, False]
    """
    if _VECTOR.search(instruction):
        return True
    if language != "asm" or "%xmm" not in instruction:
        return False
    return not _SCALAR_OR_MOVE.match(instruction.split(maxsplit=1)[0])
