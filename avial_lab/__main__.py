"""`python -m avial_lab`: the command line (`avial_lab.cli`)."""

from __future__ import annotations

import sys

from avial_lab.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
