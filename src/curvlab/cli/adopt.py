"""Take over what a search has found: a model's recipe on a data set and its split.

curvlab adopt search/node_classification/fpst/texas          writes configs/recipe/...
curvlab adopt search/node_classification/fpst/texas --show   the best five trials
curvlab adopt outputs/search/*/*/*                           several searches
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from curvlab.cli.verbs import answered, parser_of, show
from curvlab.config.folder import CONFIGS
from curvlab.errors import FAULT, UsageError

SHOWN = 5


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code is 2 for wrong input."""
    parser = parser_of("adopt", __doc__)
    what = "a search's folder, as curvlab train -m search=... names it, or as from outputs/"
    parser.add_argument("searches", nargs="+", type=Path, metavar="SEARCH", help=what)
    parser.add_argument("--show", action="store_true", help="show the best trials, write nothing")
    what = "replace a recipe with a higher validation score, or one that no search has found"
    parser.add_argument("--force", action="store_true", help=what)
    what = "folder of configurations (default: configs)"
    parser.add_argument("--configs", type=Path, default=CONFIGS, help=what)
    return answered(parser, _adopt, arguments)


def _adopt(args: argparse.Namespace) -> None:
    from curvlab.search.adopt import adopt, ranking  # torch, for which --help does not wait
    from curvlab.tables.spec import workplace

    refused = []
    for search in args.searches:
        folder = search if search.is_dir() else workplace() / "outputs" / search
        try:
            if args.show:
                show(ranking(folder, SHOWN), str(search))
            else:
                print(adopt(folder, args.configs, args.force))
        except UsageError as error:
            refused.append(str(error))
    if refused:
        raise UsageError(FAULT.join(refused))
