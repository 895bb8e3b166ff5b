#!/usr/bin/env python
"""`curvlab plot` from a checkout."""

import sys

from curvlab.cli.plot import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
