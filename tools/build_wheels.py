"""Entry point of `make wheels`; the work is in the package `wheels` beside it."""

import sys

from wheels.main import main

sys.exit(main())
