#!/usr/bin/env python
"""`curvlab data` from a checkout."""

import sys

from curvlab.cli.data import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
