"""A page in one file: styles, scripts and data are inline, and it can load nothing else.

HTML, views -> a page that works from a disk, without a network and without scripts.

    <section> <h2>Task graph</h2>
      <div data-view="graph" hidden>               a view to explore; script shows it …
      <script type="application/json">             … with this data
      <details open> <svg> <table> </details>      the same as a picture, which script folds

Without scripts (switched off, or stopped by a reader of mail) everything that is open stays so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files

from avial_lab.core.errors import InternalError
from avial_lab.plot import svg, views

# Nothing may be fetched, sent, framed or based elsewhere. `blob:` is a picture that a view makes
# for who saves it; styles are inline in the elements.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)

_EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const|let)\b)", re.MULTILINE)
_MODULE = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)


@dataclass(frozen=True)
class Embedded:
    """A view with its data, as embedded in a page. `kind` names the module in `plot/views/`."""

    kind: str
    data: str

    @classmethod
    def of(cls, kind: str, data: Mapping[str, object]) -> Embedded:
        return cls(kind, _json(data))

    @property
    def html(self) -> str:
        """The place where it is shown, and its data."""
        return (
            f'<div class="view" data-view="{self.kind}" hidden></div>'
            f'<script type="application/json" id="data-{self.kind}">{self.data}</script>'
        )

    @property
    def nbytes(self) -> int:
        return len(self.data.encode())


def page_html(title: str, body: str, *, kinds: Iterable[str] = ()) -> str:
    """The page; `body` (HTML) has the `Embedded.html` of a view of each of these kinds."""
    folder = files("avial_lab.plot")
    code = [folder.joinpath("page.js").read_text(encoding="utf-8")]
    body, inks = inks_once(body)
    styles = [folder.joinpath("report.css").read_text(encoding="utf-8"), inks]
    for kind in kinds:
        script, style = views.source(kind)
        styles.append(style)
        code.append(_mounted(kind, script))
    policy = _POLICY.format(scripts=" ".join(map(_hash, code)))
    scripts = "".join(f'<script type="module">{each}</script>' for each in code)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{svg.escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{''.join(styles)}</style></head>"
        f"<body><main>{body}</main>{scripts}</body></html>\n"
    )


def code_bytes(kinds: Iterable[str]) -> int:
    """What the scripts and styles of these views add to a page."""
    return sum(len(part.encode()) for kind in kinds for part in views.source(kind))


def inks_once(body: str) -> tuple[str, str]:
    """`body` with a class where coloured text has a style, and the styles of these classes: they
    are most of what a coloured text weighs.

    >>> inks_once('<span style="color: red">x</span>')
    ('<span class="i0">x</span>', '.i0{color: red}')
    """
    numbers: dict[str, int] = {}

    def classed(span: re.Match[str]) -> str:
        return f'<span class="i{numbers.setdefault(span[1], len(numbers))}">'

    # A quotation mark in a user's text is escaped, so that this is always one of our tags.
    body = re.sub(r'<span style="([^"]*)">', classed, body)
    return body, "".join(f".i{number}{{{style}}}" for style, number in numbers.items())


def _mounted(kind: str, script: str) -> str:
    """A view's module as a script of its own, which shows the view where the page has a place.

    Names of two modules do not meet: each is a module still.
    """
    inner = _EXPORT.sub("", script)
    foreign = _MODULE.search(inner)
    if foreign is not None or "</script" in inner or "<!--" in inner:
        what = foreign[0].strip() if foreign else "a tag"
        raise InternalError(f"the view '{kind}' cannot be inlined: {what}")
    told = f'{{detail: {{kind: "{kind}", mount}}}}'
    return f'{inner}\ndocument.dispatchEvent(new CustomEvent("avial-view", {told}));\n'


def _json(data: Mapping[str, object]) -> str:
    r"""Escaped for a script element, where `</script` and `<!--` mean something.

    >>> _json({"name": "</script>"})
    '{"name":"\\u003c/script>"}'
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A lone surrogate from a user's text is no UTF-8.
    text = text.encode("utf-8", "replace").decode()
    return re.sub(r"<(?=[/!A-Za-z])", r"\\u003c", text)


def _hash(script: str) -> str:
    """What the policy calls this script by; any other is not run."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
