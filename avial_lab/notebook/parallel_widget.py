"""The divisions of a model over ranks as a widget: found, picked, simulated, run, compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from avial_lab.compiler.requests import Foresee
from avial_lab.core.errors import AvialError
from avial_lab.core.words import format_seconds
from avial_lab.notebook.asking_widget import AskingWidget, script_and_style
from avial_lab.notebook.display import escape_lines
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.model_search import ModelSearch, SearchRow
from avial_lab.plot.run.pipeline import pipeline_summary
from avial_lab.plot.views.parallel import parallel_data, picked_data, row_data
from avial_lab.program.compiler_client import shared_compiler
from avial_lab.program.divisions import Divisible


class ParallelWidget(AskingWidget):
    """`found` is the search as it is now: rows that were picked are simulated, too."""

    _esm, _css = script_and_style("parallel")

    def __init__(self, asked: Divisible, found: ModelSearch) -> None:
        self.asked, self.found = asked, found
        self.foreseen: dict[str, Foreseen] = {}
        self.ran: dict[str, float] = {}
        super().__init__(parallel_data(found, asked.name))

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._answer(question)
        except AvialError as error:
            return {"error": {"message": error.message, "hint": error.hint}}

    def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        row = next((each for each in self.found.rows if each.words == question["words"]), None)
        if row is None:
            raise AvialError(f"the search has no row '{str(question['words'])[:60]}'")
        if question["want"] == "run":
            took = self.ran[row.words] = self.asked.run(row.words)
            words = f"{row.words}: {format_seconds(took)} in the run, equal to the sequential one"
            return {"words": words, "row": self._data(row)}
        foreseen = self._foreseen(row)
        self.data = parallel_data(self.found, self.asked.name)
        words = f"{row.words}: {pipeline_summary(foreseen)}"
        now = next(each for each in self.found.rows if each.words == row.words)
        return {"words": words, "row": self._data(now), **picked_data(foreseen, row.words)}

    def _data(self, row: SearchRow) -> dict[str, Any]:
        return row_data(row, self.found, ran_s=self.ran.get(row.words))

    def _foreseen(self, row: SearchRow) -> Foreseen:
        if row.words in self.foreseen:
            return self.foreseen[row.words]
        source = replace(self.asked.source, parallel=row.words)
        made = shared_compiler().ask(Foresee(source, self.asked.topology))
        self.foreseen[row.words] = made
        known = replace(
            row, simulated_s=made.trace.makespan_s, held_bytes=max(made.peaks),
            moved_bytes=made.schedule.bytes_moved,
        )  # fmt: skip
        rows = tuple(known if each is row else each for each in self.found.rows)
        self.found = replace(self.found, rows=rows)
        return made

    def still(self) -> dict[str, str]:
        words = str(self.found)
        return {"text/plain": words, "text/html": f"<pre>{escape_lines(words)}</pre>"}
