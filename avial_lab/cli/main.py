"""The command line: `avial-lab run | graph | lower | demo | bench | doctor | export | …`.

Arguments -> text, files and an exit code. 0 only where the result is there (and equal to the
reference, with --check); errors go to stderr.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence

from avial_lab.cli.arguments import argument_parser
from avial_lab.core.errors import AvialError, RenamedWarning
from avial_lab.core.files import disk_errors


def main(arguments: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An en dash that the terminal's locale has no letter for is a question mark.
            stream.reconfigure(errors="replace")
    options = argument_parser().parse_args(arguments)
    options.given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings(), disk_errors():
            warnings.showwarning = _show_warning
            warnings.simplefilter("default", RenamedWarning)
            return options.command(options)
    except AvialError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _show_warning(
    message: Warning | str, category: type[Warning], *_place: object, **_more: object
) -> None:
    """Without the line in avial_lab that it comes from."""
    print(f"{category.__name__}: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
