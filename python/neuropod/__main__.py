"""`python -m neuropod` is the command line `neuropod`."""

import sys

from neuropod.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
