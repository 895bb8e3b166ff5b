#!/usr/bin/env python
"""`curvlab wandb_sync` from a checkout."""

import sys

from curvlab.cli.wandb_sync import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
