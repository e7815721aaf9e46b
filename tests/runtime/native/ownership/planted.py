"""`python -m tests.runtime.native.ownership.planted`: a run whose caller gives the runtime too
little room, and says there is more. A sanitizer ends it; without one it comes to its end.
"""

from __future__ import annotations

import ctypes

from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.core.runtime_constants import Table
from tests.runtime.native.ownership.books import REPLICATE, WRITE, Access, Books, Phase, Space
from tests.runtime.native.ownership.programs import PRELUDE

ROOM = "void *word_of_room(void) { return malloc(8); } void _mlir_ciface_main(void) {}"


def main() -> None:
    books = Books((Storage("a", (4,), 8, ("a",)),), 2, source=PRELUDE + ROOM)
    whole = Access(0, WRITE, lambda part: Box((part[0],), (part[1],)))
    books.run(Phase(0, REPLICATE, (whole,), Space(0, 4, extent=4)))
    room = books.library.word_of_room
    room.restype = ctypes.c_void_p
    books.library.avial_table(
        ctypes.c_int64(Table.PHASES), ctypes.c_void_p(room()), ctypes.c_int64(4)
    )


if __name__ == "__main__":
    main()
