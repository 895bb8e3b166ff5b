"""Fetch the raw files of datasets ahead of time, for instance before going offline.

curvlab data web_edu power      these two
curvlab data all                every dataset there is

Files come from CURVLAB_MIRROR if it is set (a folder with the same layout), else from the
network, and are verified by their checksums.
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from curvlab.cli.verbs import answered, parser_of
from curvlab.config.folder import CONFIGS, choices
from curvlab.errors import FAULT, UsageError


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is 2 for wrong input."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = parser_of("data", __doc__)
    parser.epilog = f"datasets: {', '.join(choices(CONFIGS, 'dataset'))}"
    parser.add_argument("names", nargs="+", metavar="NAME", help="a dataset, or `all`")
    parser.add_argument("--data-dir", type=Path, help="folder for the files (default: data)")
    return answered(parser, _fetch, arguments)


def _fetch(args: argparse.Namespace) -> None:
    from curvlab.data.datasets.named import named_source  # torch, for which --help does not wait

    missing = []
    for name in choices(CONFIGS, "dataset") if args.names == ["all"] else args.names:
        try:
            files = named_source(name, args.data_dir, CONFIGS).download()
            print(f"{name}: {', '.join(map(str, files)) or 'generated, needs no file'}")
        except UsageError as error:
            missing.append(str(error))
    if missing:
        raise UsageError(FAULT.join(missing))
