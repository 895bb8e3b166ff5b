#!/usr/bin/env python
"""`curvlab bench` from a checkout."""

import sys

from curvlab.cli.bench import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
