"""Entry point of `make setup`; the work is in the package `setup_environment` beside it."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - so that an old Python says it clearly
    sys.exit(
        "make setup: Python %d.%d is too old: Neuropod needs 3.11, 3.12 or 3.13 "  # noqa: UP031
        "(PYTHON=python3.12 picks another)" % (sys.version_info[0], sys.version_info[1])
    )

from setup_environment.main import main

sys.exit(main())
