#!/usr/bin/env python
"""Take over what a search has found: a model's recipe on a data set and its split.

scripts/adopt.py search/node_classification/fpst/texas          writes configs/recipe/...
scripts/adopt.py search/node_classification/fpst/texas --show   the best five trials
scripts/adopt.py outputs/search/*/*/*                           several searches
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console

from curvlab.errors import UsageError
from curvlab.search.adopt import adopt, ranking

ROOT = Path(__file__).resolve().parents[1]
SHOWN = 5


def parse_arguments() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = "a search's folder, as train.py -m search=... names it, or as from outputs/"
    parser.add_argument("searches", nargs="+", type=Path, metavar="SEARCH", help=what)
    parser.add_argument("--show", action="store_true", help="show the best trials, write nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace a recipe with a higher validation score, or one that no search has found",
    )
    parser.add_argument(
        "--configs",
        type=Path,
        default=ROOT / "configs",
        help="folder of configurations (default: configs)",
    )
    return parser.parse_args()


def main() -> int:
    """Run the command line; the exit code is 2 if a search is not taken over."""
    arguments = parse_arguments()
    refused = 0
    for search in arguments.searches:
        folder = search if search.is_dir() else ROOT / "outputs" / search
        try:
            if arguments.show:
                Console().print(ranking(folder, SHOWN))
            else:
                print(adopt(folder, arguments.configs, arguments.force))
        except UsageError as error:
            print(f"adopt.py: {error}", file=sys.stderr)
            refused = 2
    return refused


if __name__ == "__main__":
    sys.exit(main())
