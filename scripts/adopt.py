#!/usr/bin/env python
"""`curvlab adopt` from a checkout."""

import sys

from curvlab.cli.adopt import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
