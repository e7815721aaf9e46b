"""A view as an anywidget that answers what the view asks: nothing is fetched from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython.display import display

from avial_lab.plot import views

_ASKING = Path(__file__).with_name("asking.js").read_text("utf-8")


# In a trusted notebook JupyterLab takes a widget before anything else of its output, also where no
# kernel knows it any more, and says "model not found". So what stays is an output of its own before
# the widget's; of the two the reader sees the one that has something to show. What stays waits a
# second: a widget that has just been made would push it away. (`avial-widget`: asking.js.)
_STAYS = """<style>
.jp-OutputArea-child:has(.avial-still):has(+ .jp-OutputArea-child .avial-widget),
.jp-OutputArea-child:has(.avial-still) + .jp-OutputArea-child:not(:has(.avial-widget))
  > .jp-OutputArea-output.lm-Panel { display: none }
.avial-still { animation: avial-still 1s step-end }
@keyframes avial-still { from { max-height: 0; overflow: hidden } }
</style>
<div class="avial-still">STILL<p>As saved: run this cell again to go on from here.</p></div>"""


def script_and_style(kind: str) -> tuple[str, str]:
    """Of the view called `kind`, as one module: a browser has nowhere to import a second one
    from.
    """
    script, style = views.source(kind)
    return script + _ASKING, style


class AskingWidget(anywidget.AnyWidget):
    """`data` is what the view begins with."""

    data = traitlets.Dict().tag(sync=True)

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(data=data)
        self.on_msg(self._receive)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """To what the view asked; a user's mistake is an answer, too."""
        raise NotImplementedError

    def still(self) -> dict[str, str]:
        """The text and HTML of it where the widget cannot be."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        """Two outputs: what is shown where the widget cannot be (in a notebook that was saved, or
        is not trusted), and the widget.
        """
        still = self.still()
        display({**still, "text/html": _STAYS.replace("STILL", still["text/html"])}, raw=True)
        shown: Any = super()._repr_mimebundle_()
        data, metadata = shown if isinstance(shown, tuple) else (shown or {}, {})
        nothing = {"text/html": "", "text/plain": ""}
        display({**data, **nothing}, metadata=metadata, raw=True)

    def _receive(self, _: object, message: Mapping[str, Any], __: object) -> None:
        try:
            answer = self.answer(message["question"])
        except Exception as error:  # sent to the page, which waits for it; then as loud as any
            told = {"message": f"{type(error).__name__}: {error}", "hint": None}
            self.send({"id": message["id"], "answer": {"error": told}})
            raise
        self.send({"id": message["id"], "answer": answer})
