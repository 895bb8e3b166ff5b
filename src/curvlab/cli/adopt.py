"""Adopt the winner of a search as a model's recipe on a data set and its split.

curvlab adopt search/node_classification/fpst/texas          writes configs/recipe/...
curvlab adopt search/node_classification/fpst/texas --show   the best five trials
curvlab adopt outputs/search/*/*/*                           several searches
curvlab adopt outputs/search/*/*/* --into budget             for table=budget/... alone
"""

import argparse
from glob import glob
from pathlib import Path

from curvlab.cli.verbs import Verb, show
from curvlab.config.folder import CONFIGS
from curvlab.errors import FAULT, UsageError

MAX_TRIALS = 5


def _adopt(args: argparse.Namespace) -> None:
    from curvlab.search.adopt import adopt, ranking  # torch, for which --help does not wait
    from curvlab.tables.spec import workplace

    refusals = []
    searches: list[Path] = []
    for pattern in args.searches:
        matches = sorted(glob(str(pattern)))  # noqa: PTH207
        searches += map(Path, matches or [pattern])
    for search in searches:
        folder = search
        if not search.is_dir() and search.parts[:1] != ("outputs",):
            folder = workplace() / "outputs" / search
        try:
            if args.show:
                show(ranking(folder, MAX_TRIALS), str(search))
            else:
                print(adopt(folder, args.configs, args.force, args.into))
        except UsageError as error:
            refusals.append(str(error))
    if refusals:
        raise UsageError(FAULT.join(refusals))


main = Verb("adopt", __doc__, _adopt)
main.add_argument(
    "searches",
    nargs="+",
    type=Path,
    metavar="SEARCH",
    help="a search's folder, as curvlab train -m search=... names it, or as from outputs/",
)
main.add_argument("--show", action="store_true", help="show the best trials, write nothing")
main.add_argument(
    "--force",
    action="store_true",
    help="replace a recipe with a higher validation score, or one that no search has found",
)
main.add_argument(
    "--into",
    default="",
    metavar="NAME",
    help="write to configs/recipe/NAME, which a table reads by ${searched:NAME,...}",
)
main.add_argument(
    "--configs", type=Path, default=CONFIGS, help="folder of configurations (default: configs)"
)
