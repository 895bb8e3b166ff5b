"""Fetch the raw files of datasets ahead of time, for instance before going offline.

curvlab data web_edu power      these two
curvlab data all                every dataset there is

Files come from CURVLAB_MIRROR if it is set (a folder with the same layout), else from the
network, and are verified by their checksums.
"""

import argparse
import logging
from pathlib import Path

from curvlab.cli.verbs import Verb
from curvlab.config.folder import CONFIGS, choices
from curvlab.errors import FAULT, UsageError


def _fetch(args: argparse.Namespace) -> None:
    from curvlab.run.parts import named_source  # torch, for which --help does not wait

    errors = []
    for name in choices(CONFIGS, "dataset") if args.names == ["all"] else args.names:
        try:
            files = named_source(name, args.data_dir).download()
            print(f"{name}: {', '.join(map(str, files)) or 'generated, needs no file'}")
        except UsageError as error:
            errors.append(str(error))
    if errors:
        raise UsageError(FAULT.join(errors))


main = Verb("data", __doc__, _fetch, logging.INFO)
main.epilog = f"datasets: {', '.join(choices(CONFIGS, 'dataset'))}"
main.add_argument("names", nargs="+", metavar="NAME", help="a dataset, or `all`")
main.add_argument("--data-dir", type=Path, help="folder for the files (default: data)")
