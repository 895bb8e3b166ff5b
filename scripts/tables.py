#!/usr/bin/env python
"""`curvlab tables` from a checkout."""

import sys

from curvlab.cli.tables import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
