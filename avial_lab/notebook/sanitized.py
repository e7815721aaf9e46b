"""A notebook that somebody else wrote, made harmless before it becomes a page.

What its cells hold, as HTML -> the same without script, handlers and anything of other places, by
an allowlist (bleach, which nbconvert brings along). The page's policy (`POLICY`) is the second
wall: a browser runs and fetches nothing there, whatever is left.
"""

from __future__ import annotations

import re
from typing import Any

import bleach
import nbformat
from bleach.css_sanitizer import ALLOWED_CSS_PROPERTIES, ALLOWED_SVG_PROPERTIES, CSSSanitizer

POLICY = (
    "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
"""Content-Security-Policy: no script at all, and nothing from elsewhere."""

_TAG_WORDS = """
a abbr acronym b blockquote br caption cite code col colgroup dd del details dfn div dl dt em
figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp section small
span strike strong sub summary sup table tbody td tfoot th thead tr tt u ul var wbr svg g defs
title desc path rect circle ellipse line polyline polygon text tspan marker clipPath
linearGradient radialGradient stop pattern
"""
_ADDRESS_WORDS = """
href xlink:href src srcset action formaction data poster background ping cite longdesc
manifest codebase classid profile usemap srcdoc http-equiv
"""
_STYLE_WORDS = """
background border border-bottom border-collapse border-left border-radius border-right border-
spacing border-top box-sizing display flex flex-direction flex-wrap font-feature-settings
font-variant-numeric gap grid-template-columns image-rendering justify-content align-items
line-height list-style margin margin-bottom margin-left margin-right margin-top max-height
max-width min-width overflow-x overflow-y padding padding-bottom padding-left padding-right
padding-top tab-size table-layout word-break
"""
_TAGS = frozenset(_TAG_WORDS.split())
_ADDRESSES = frozenset(_ADDRESS_WORDS.split())
_STYLES = CSSSanitizer(
    allowed_css_properties=[
        *ALLOWED_CSS_PROPERTIES,
        *_STYLE_WORDS.split(),
    ],
    allowed_svg_properties=[*ALLOWED_SVG_PROPERTIES, "paint-order", "text-anchor"],
)
_WITH_CONTENTS = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(r'(<a\b[^<>]*?)\shref="(https?://[^"<>]*)"')


def sanitized(html: str | bytes) -> str:
    """What of `html` cannot do anything. A link to another place is its text, with the address
    to be seen where one points at it.
    """
    text = html.decode() if isinstance(html, bytes) else str(html)
    text = _WITH_CONTENTS.sub("", text)
    text = _LINK.sub(r'\1 title="\2"', text)
    return bleach.clean(
        text,
        tags=_TAGS,
        attributes=_is_harmless,
        protocols=["data", "http", "https"],  # as `_is_harmless` allows
        css_sanitizer=_STYLES,
        strip=True,
    )


def _is_harmless(tag: str, name: str, value: str) -> bool:
    name = name.lower()
    if name.startswith("on"):
        return False
    if name == "style":
        return re.search(r"url\s*\(\s*['\"]?\s*(?!#)|@import|expression", value, re.I) is None
    if name not in _ADDRESSES:
        return ":" not in name or name.startswith(("xml:", "xmlns:"))
    if name == "src":
        return tag == "img" and re.match(r"data:image/[\w.+-]+[;,]", value) is not None
    return name in ("href", "xlink:href") and _stays_here(value)


def _stays_here(address: str) -> bool:
    """In the page, or a file beside it: no scheme, no other host."""
    return re.fullmatch(r"#[^\s<>\"']*|(?!/)[\w./%-]+(?:#[^\s<>\"']*)?", address) is not None


def tame(notebook: nbformat.NotebookNode) -> None:
    """In place: what nbconvert writes into attributes as it is given is what it is meant to be."""
    for number, cell in enumerate(notebook.cells):
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(cell.get("id", ""))):
            cell["id"] = f"cell-{number}"
        tags = cell.metadata.get("tags", [])
        cell.metadata["tags"] = [tag for tag in tags if re.fullmatch(r"[\w-]+", str(tag))]
        for output in cell.get("outputs", ()):
            if "metadata" in output:
                output.metadata = _sizes(output.metadata)
            data = output.get("data", {})
            for kind in [kind for kind in data if kind.startswith("image/")]:
                if kind != "image/svg+xml":
                    data[kind] = re.sub(r"[^A-Za-z0-9+/=\s]", "", str(data[kind]))
            for kind in ("application/javascript", "text/javascript", "application/pdf"):
                data.pop(kind, None)


def _sizes(metadata: Any) -> nbformat.NotebookNode:  # noqa: ANN401 - what a notebook holds
    """Numbers, by the kind of output or for all: widths and heights."""
    kept = nbformat.NotebookNode()
    for key, value in dict(metadata).items():
        if isinstance(value, int | float):
            kept[key] = value
        elif isinstance(value, dict):
            kept[key] = _sizes(value)
    return kept
