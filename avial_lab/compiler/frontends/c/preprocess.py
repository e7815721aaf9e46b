"""The text that a C file's preprocessor leaves, without the system's headers.

Path -> text with line markers. Standard headers are empty here: of them loop kernels use functions
of math.h, which are known by their names, and a few types.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from avial_lab.core.errors import OptionError, ParseError
from avial_lab.core.toolchain import run, tool

_STANDARD = (
    "assert.h", "complex.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "malloc.h",
    "math.h", "omp.h", "sched.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h",
    "stdlib.h", "string.h", "strings.h", "sys/resource.h", "sys/time.h", "sys/types.h", "time.h",
    "unistd.h",
)  # fmt: skip

_TYPES = """
typedef unsigned long size_t; typedef long ptrdiff_t; typedef struct FILE FILE;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
"""
_GUARDED = f"#ifndef AVIAL_TYPES\n#define AVIAL_TYPES\n{_TYPES}\n#endif\n"
_PLAIN = ("-D__attribute__(x)=", "-D__restrict=", "-D__restrict__=", "-D__inline=", "-Drestrict=")
_LIMIT_S = 30.0
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def preprocessed(
    text: str, name: str, *, include: Sequence[str | Path] = (), define: Mapping[str, object]
) -> str:
    """Of a text from the file `name`. Raises ParseError with what the preprocessor says."""
    if not define and "#" not in text and "restrict" not in text:
        return f'# 1 "{name}"\n' + _COMMENT.sub(_blank, text)
    given = [argument for each in include for argument in ("-I", str(each))]
    given += [f"-D{key}={value}" for key, value in define.items()]
    if any("\0" in argument for argument in given):
        raise OptionError("a folder of include, or a macro of define, holds a NUL")
    with tempfile.TemporaryDirectory(prefix="avial-c-") as directory:
        folder = Path(directory)
        for header in _STANDARD:
            path = folder / "headers" / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_GUARDED, encoding="utf-8")
        (folder / "given.c").write_text(f'#line 1 "{name}"\n{text}', encoding="utf-8")
        line = [str(tool("cc")), "-E", "-nostdinc", "-I", str(folder / "headers")]
        line += [*given, *_PLAIN, str(folder / "given.c")]
        done = run(line, limit_s=_LIMIT_S)
        if done.returncode:
            first = next((one for one in done.stderr.splitlines() if "error" in one), done.stderr)
            raise ParseError(
                f"the C preprocessor says: {first.strip()}",
                hint="include=[folder] says where headers are, define={'N': 100} sets a macro",
            )
        return done.stdout


def _blank(found: re.Match[str]) -> str:
    """As many lines and columns of nothing."""
    return re.sub(r"[^\n]", " ", found[0])
