"""`curvlab train` from a checkout: `python train.py model=fpst dataset=web_edu`, or `--help`."""

import sys

from curvlab.cli.train import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
