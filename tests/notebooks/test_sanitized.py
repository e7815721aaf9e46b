"""A page that is made of somebody else's notebook runs nothing and fetches nothing."""

from __future__ import annotations

from html.parser import HTMLParser

import nbformat
import pytest

from avial_lab.notebook import export
from avial_lab.notebook.sanitized import POLICY, sanitized

new = nbformat.v4

EVIL = [
    "<script>alert(1)</script>",
    "<SCRIPT src=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    '<img src="https://evil.example/pixel.png">',
    "<svg/onload=alert(1)><script>alert(1)</script></svg>",
    '<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
    '<svg><use href="https://evil.example/a.svg#x"/><animate onbegin=alert(1) /></svg>',
    '<a href="javascript:alert(1)">x</a>',
    '<a href=" java&#115;cript:alert(1)">x</a>',
    '<a href="//evil.example">x</a><a href="data:text/html,<script>alert(1)</script>">x</a>',
    '<iframe src="https://evil.example" srcdoc="<script>alert(1)</script>"></iframe>',
    '<object data="evil.swf"></object><embed src="evil.swf">',
    '<form action="https://evil.example"><input type=submit formaction="https://evil.example">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example">',
    '<base href="https://evil.example/"><link rel=stylesheet href="https://evil.example/x.css">',
    '<style>@import "https://evil.example/x.css"; p { background: url(//evil.example) }</style>',
    '<div style="background:url(https://evil.example/x.png)">x</div>',
    '<p title="--><script>alert(1)</script>">x</p><!--<script>--><script>alert(1)//--></script>',
    '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table>',
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    '<div onclick="alert(1)" ONMOUSEOVER=alert(1)>x</div>',
    "<video src='https://evil.example/x.mp4' poster='https://evil.example/x.png'></video>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
]  # fmt: skip


class Found(HTMLParser):
    """What in a page could do something, and where it points to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.policies: list[str | None] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "meta" and known.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(known.get("content"))
        elif tag in ("script", "iframe", "object", "embed", "base", "link", "form", "video", "use"):
            self.bad.append(tag)
        elif "http-equiv" in known:
            self.bad.append(f"{tag} http-equiv")
        for name, value in attrs:
            text = (value or "").lower().replace(" ", "")
            inside = name in ("title", "id") or (name == "href" and text.startswith("#"))
            outside = "evil.example" in text and not inside
            if name.startswith("on") or "javascript:" in text or outside or name == "srcdoc":
                self.bad.append(f"{tag} {name}={value}")
            if name == "href" and text.startswith("data:"):
                self.bad.append(f"{tag} {name}={value}")


def bad_in(html: str) -> list[str]:
    return Found(html).bad


@pytest.mark.parametrize("html", EVIL)
def test_the_finder_finds(html: str) -> None:
    assert bad_in(html) or "style" in html or "noscript" in html or "<scr<" in html


@pytest.mark.parametrize("html", EVIL)
def test_nothing_bad_is_left(html: str) -> None:
    clean = sanitized(html)
    assert bad_in(clean) == []
    assert "url(" not in clean
    assert sanitized(clean) == clean


def foreign(html: str) -> nbformat.NotebookNode:
    """A notebook that has it everywhere where a notebook can have HTML."""
    output = new.new_output
    quote = f'"><b {html}'
    cell = new.new_code_cell(
        f"print({html!r})",
        metadata={"tags": [quote.replace(",", "")], "magics_language": quote},
        outputs=[
            output("display_data", {"text/html": html}),
            output("display_data", {"text/markdown": f"# a\n\n{html}\n\n[b]({html})"}),
            output("display_data", {"image/svg+xml": f"<svg>{html}</svg>"}),
            output("display_data", {"image/png": quote}, metadata={"image/png": {"width": quote}}),
            output("display_data", {"application/javascript": "alert(1)", "text/latex": html}),
            output("display_data", {"text/plain": html}),
            output("stream", name="stdout", text=html),
            output("error", ename=html, evalue=html, traceback=[html]),
        ],
    )
    cells = [cell, new.new_markdown_cell(f"# {html}\n\n{html}"), new.new_raw_cell(html)]
    metadata = {"title": html, "language_info": {"name": html, "pygments_lexer": "python"}}
    notebook = new.new_notebook(cells=cells, metadata=metadata)
    cell["id"] = quote
    return notebook


@pytest.mark.parametrize("html", EVIL)
def test_a_foreign_notebook_becomes_a_harmless_page(html: str) -> None:
    page = export.page(foreign(html), solutions=True, name=html)
    found = Found(page)
    assert found.bad == []
    assert found.policies == [POLICY]
    before = page[: page.index(POLICY)]
    assert "<style" not in before
    assert "<body" not in before


def test_what_people_write_stays() -> None:
    html = (
        '<h1 id="x">a</h1><table style="text-align: left;"><tr><td colspan="2">1 &lt; 2</td></tr>'
        '</table><a href="#x">up</a><a href="01_b.html">next</a>'
        '<img src="data:image/png;base64,AAAA" alt="a picture">'
        '<svg viewBox="0 0 9 9"><path d="M0 0L9 9" stroke="red"></path></svg>'
    )
    clean = sanitized(html)
    for part in ('id="x"', "text-align: left", "1 &lt; 2", 'href="#x"', 'href="01_b.html"',
                 "data:image/png;base64,AAAA", 'alt="a picture"', 'viewBox="0 0 9 9"',
                 'd="M0 0L9 9"'):  # fmt: skip
        assert part in clean
    link = sanitized('<a href="https://mlir.llvm.org/docs">MLIR</a>')
    assert "MLIR</a>" in link
    assert 'title="https://mlir.llvm.org/docs"' in link
    assert "href" not in link
