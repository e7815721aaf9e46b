"""Pages that are watched: what they ask of the network, what they complain of, whom they shut out.

Chromium page -> requests, complaints, axe's findings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Route, WebSocket

VIEWS = Path(__file__).parents[2] / "avial_lab" / "plot" / "views"
HERE = ("127.0.0.1", "localhost")
OWN = ("data", "blob", "file", "about")
"""Schemes of what never leaves the machine."""


def is_outside(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme not in OWN and parts.hostname not in HERE


@dataclass
class Watch:
    """What a page did; `forgiven` are patterns of complaints that a test brings about."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    def follow(self, context: BrowserContext) -> None:
        """Every page of `context`, from its first request on; what would leave is stopped."""
        context.route(is_outside, lambda route: route.abort())
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.complaints.append(f"uncaught: {error.error}"))
        context.on("page", lambda page: page.on("websocket", self._dial))

    def forgive(self, pattern: str) -> None:
        """Complaints in which this regular expression is found are meant to be."""
        self.forgiven.append(pattern)

    def outside(self) -> list[str]:
        return [url for url in self.requests if is_outside(url)]

    def faults(self) -> list[str]:
        """Requests to other hosts, and errors that nobody forgave."""
        complaints = [
            text
            for text in self.complaints
            if not any(re.search(pattern, text) for pattern in self.forgiven)
        ]
        return [f"asked another host: {url}" for url in self.outside()] + complaints

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def _dial(self, socket: WebSocket) -> None:
        self.requests.append(socket.url)


# A module's host: nothing of JupyterLab's, so that a view shows it needs nothing of it.
_BARE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>a view</title>
<style>:root {{ color-scheme: light dark }}</style>{style}</head>
<body><main><h1>A view</h1><div id="host"></div></main><script type="module">
import {{ mount }} from "./{view}.js";
window.said = [];
window.asked = [];
window.mounted = (host, data) => mount(host, data, {{
  ask: window.avialAnswer && (async question => {{
    window.asked.push(question);
    return await window.avialAnswer(question);
  }}),
  say: text => window.said.push(text),
}});
window.view = window.mounted(document.getElementById("host"), {data});
window.ready = true;
</script></body></html>"""


def mount_view(
    page: Page, view: str, data: Any, *, ask: Callable[[Any], Any] | None = None
) -> Page:
    """`page` with the module `plot/views/VIEW.js` mounted on `data` in `#host`.

    In the page: `view` is what `mount` gave (`update`, `dispose`), `said` what it told `say`,
    `asked` what it asked (`ask` answers), `mounted(host, data)` mounts once more.
    """
    style = f'<link rel="stylesheet" href="./{view}.css">'
    has_style = (VIEWS / f"{view}.css").exists()
    text = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    html = _BARE.format(view=view, data=text, style=style if has_style else "")

    def serve(route: Route) -> None:
        name = urlsplit(route.request.url).path.removeprefix("/")
        file = VIEWS / name
        if name == "":
            route.fulfill(body=html, content_type="text/html; charset=utf-8")
        elif file.is_file() and file.parent == VIEWS:
            route.fulfill(path=file)
        else:
            route.fulfill(status=204)  # the icon that browsers ask for

    page.route("http://localhost/**", serve)
    if ask is not None:
        page.expose_function("avialAnswer", ask)
    page.goto("http://localhost/")
    page.wait_for_function("window.ready === true")
    return page


def serious_faults(page: Page, *selectors: str) -> list[str]:
    """What axe-core finds wrong, serious or critical, within `selectors` (all of the page by
    default): colours, names, roles, order.
    """
    for selector in selectors:
        assert page.locator(selector).count(), f"nothing to look at: {selector}"
    context = {"include": [[selector] for selector in selectors]} if selectors else None
    found = Axe().run(page, context=context)
    return [
        f"{fault['id']} ({fault['impact']}): {fault['help']}\n"
        + "\n".join(
            f"  {node['html'][:160]}\n  {node['failureSummary']}" for node in fault["nodes"]
        )
        for fault in found.response["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
