"""Take over what a search has found: a model's recipe on a data set and its split.

curvlab adopt search/node_classification/fpst/texas          writes configs/recipe/...
curvlab adopt search/node_classification/fpst/texas --show   the best five trials
curvlab adopt outputs/search/*/*/*                           several searches
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.program import parser as parser_of
from curvlab.program import plain_console, program
from curvlab.search.adopt import adopt, ranking
from curvlab.tables.folders import workplace

SHOWN = 5


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line's arguments."""
    parser = parser_of("adopt", __doc__)
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
        default=CONFIGS,
        help="folder of configurations (default: configs)",
    )
    return parser.parse_args(words)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is 2 if a search is not taken over."""
    args = parse_arguments(arguments)
    refused = 0
    for search in args.searches:
        folder = search if search.is_dir() else workplace() / "outputs" / search
        try:
            if args.show:
                plain_console().print(ranking(folder, SHOWN))
            else:
                print(adopt(folder, args.configs, args.force))
        except UsageError as error:
            print(f"{program('adopt')}: {error}", file=sys.stderr)
            refused = 2
    return refused
