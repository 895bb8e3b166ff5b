#!/usr/bin/env python
"""Fetch the raw files of datasets ahead of time, for instance before going offline.

scripts/download.py web_edu power      these two
scripts/download.py all                every dataset there is

Files come from CURVLAB_MIRROR if it is set (a folder with the same layout), else from the
network, and are verified by their checksums.
"""

import argparse
import logging
import sys
from pathlib import Path

from curvlab.data.datasets.named import dataset_names, named_source
from curvlab.errors import UsageError

CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def parse_arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"datasets: {', '.join(dataset_names(CONFIGS))}",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="a dataset, or `all`")
    parser.add_argument("--data-dir", type=Path, help="folder for the files (default: data)")
    return parser.parse_args()


def main() -> int:
    """Run the command line; the exit code is 2 for wrong input."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    arguments = parse_arguments()
    everything = arguments.names == ["all"]
    code = 0
    for name in dataset_names(CONFIGS) if everything else arguments.names:
        try:
            files = named_source(name, arguments.data_dir, CONFIGS).download()
            print(f"{name}: {', '.join(map(str, files)) or 'generated, needs no file'}")
        except UsageError as error:
            print(f"download.py: {error}", file=sys.stderr)
            code = 2
            if not everything:  # of all datasets, some can always not be had
                break
    return code


if __name__ == "__main__":
    sys.exit(main())
