"""`python -m curvlab`: the same as `curvlab`."""

import sys

from curvlab.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
