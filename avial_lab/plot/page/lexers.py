"""Colouring rules for MLIR (with our short notation) and PTX, for Pygments.

Pygments has LLVM IR; these two it has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pygments.lexer import (
    RegexLexer,
    bygroups,  # pyright: ignore[reportUnknownVariableType] - Pygments' stubs
)
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

_MLIR_TYPES = (
    r"\b(?:[su]?i\d+|f\d+(?:E\dM\d\w*)?|bf16|tf32|index|none)\b"
    r"|\b(?:memref|tensor|vector|complex|tuple)(?=<)"
    r"|![\w.]+"
)


class MLIRLexer(RegexLexer):
    """MLIR's generic and pretty forms, and avial's notation: an operation is any `dialect.name`."""

    name = "MLIR"
    aliases: ClassVar[Sequence[str]] = ["mlir", "avial"]
    filenames: ClassVar[Sequence[str]] = ["*.mlir", "*.avial"]
    url = "https://mlir.llvm.org/docs/LangRef/"

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//.*?$", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"(?=\s*\()', Name.Function),
            (r'"(?:[^"\\\n]|\\.)*"', String.Double),
            (r'"(?:[^"\\\n]|\\.)*\\?$', String.Double),  # one that is not closed
            (r"%[\w$.\-]+(?:[:#]\d+)?", Name.Variable),
            (r"@[\w$.\-]+", Name.Label),
            (r'@"[^"\n]*"', Name.Label),
            (r"\^[\w$.\-]+", Name.Label),
            (r"#[A-Za-z_][\w.]*", Name.Constant),
            # A shape in a type, `memref<20x3xf32>`: an x joins its numbers to the element type.
            (r"(<)((?:(?:\d+|\?)x)+)(\w+)?", bygroups(Punctuation, Number.Integer, Keyword.Type)),
            (_MLIR_TYPES, Keyword.Type),
            (r"[a-zA-Z_]\w*(?:\.\w+)+", Name.Function),
            (
                r"\b(?:module|func|return|loc|affine_map|affine_set|dense|true|false|unit)\b",
                Keyword,
            ),
            (
                r"\b(?:reads|writes|after|to|step|blocks|threads|attributes|private|ins|outs|iter_args)\b",
                Keyword,
            ),
            (r"\b0x[0-9a-fA-F]+\b", Number.Hex),
            (r"-?\b\d+\.\d*(?:[eE][-+]?\d+)?", Number.Float),
            (r"-?\b\d+", Number.Integer),
            (r"->|==|[=:*+\-/|]", Operator),
            (r"[A-Za-z_]\w*", Name),
            (r"[{}()\[\]<>,;?]", Punctuation),
            (r".", Text),
        ]
    }


class PTXLexer(RegexLexer):
    """NVIDIA's PTX: directives, instructions with their types, registers."""

    name = "PTX"
    aliases: ClassVar[Sequence[str]] = ["ptx"]
    filenames: ClassVar[Sequence[str]] = ["*.ptx"]
    url = "https://docs.nvidia.com/cuda/parallel-thread-execution/"

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//.*?$", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (r'"[^"\n]*"', String.Double),
            (r"^(\s*)([$\w]+)(:)", bygroups(Whitespace, Name.Label, Punctuation)),
            (r"\$\w+", Name.Label),
            (r"\.(?:[busf]\d+|pred|b128|f16x2|bf16)\b", Keyword.Type),
            (r"\.\w+", Keyword.Declaration),
            (r"%[\w.]+(?:<\d+>)?", Name.Variable),
            (r"@!?", Operator),
            (r"\b0[fFdD][0-9a-fA-F]+\b|\b0x[0-9a-fA-F]+U?\b", Number.Hex),
            (r"-?\b\d+\.\d+\b", Number.Float),
            (r"-?\b\d+U?\b", Number.Integer),
            (r"\bsm_\w+", Name.Constant),
            (r"[a-zA-Z_]\w*", Name.Function),
            (r"[{}()\[\],;<>+|=\-]", Punctuation),
            (r".", Text),
        ],
        "comment": [
            (r"[^*]+", Comment.Multiline),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"\*", Comment.Multiline),
        ],
    }
