"""A cluster that is started while the notebook goes on.

StartOptions -> a thread; its cluster, or why there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from IPython.display import display

from avial_lab.core.errors import AvialError
from avial_lab.notebook.clusters import StartOptions, open_cluster
from avial_lab.notebook.display import Note
from avial_lab.program.reference_run import OneProcess
from avial_lab.runtime.launch.cluster import Cluster


class BackgroundStart:
    """`words` is what is being waited for, `error` why there is no cluster; `keep` gets the
    cluster, and `tell` is called whenever one of these is new, both from the thread.
    """

    def __init__(
        self,
        options: StartOptions,
        *,
        keep: Callable[[Cluster | OneProcess], None],
        tell: Callable[[], None],
    ) -> None:
        self._crowded = options.crowd
        self.words = self._crowded or "starting"
        self.error: str | None = None
        self._options = options
        self._said, self._over = False, threading.Event()
        self._keep, self._tell = keep, tell
        # A daemon: a kernel that ends does not wait for it; the guardian ends what was started.
        threading.Thread(target=self._start, name="cluster start", daemon=True).start()

    @property
    def going_on(self) -> bool:
        return not self._over.is_set()

    def wait(self) -> None:
        """Until it is over; the cell that waits says so. Why there is no cluster is said once, and
        the cell goes on without.
        """
        if self.going_on:
            shown = display(Note(f"Waiting for the cluster: {self.words}"), display_id=True)
            self._over.wait()
            if shown is not None and self.error is None:
                shown.update(Note("The cluster is ready."))
        if self.error is not None and not self._said:
            self._said = True
            title = "The cluster did not start; programs start their own ranks."
            display(Note(title, self.error))

    def _start(self) -> None:
        try:
            cluster, _ = open_cluster(self._options, tell=self._set_words)
        except AvialError as error:
            self.error = str(error)
        except Exception as error:  # the boundary of a thread: whoever waits gets it
            self.error = f"{type(error).__name__}: {error}"
        else:
            self._keep(cluster)
        self._over.set()
        self._tell()

    def _set_words(self, words: str) -> None:
        self.words = f"{words}; {self._crowded}" if self._crowded else words
        self._tell()
