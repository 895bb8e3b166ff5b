"""Arguments, tables and errors of the verbs that use finished runs."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from curvlab.config.folder import add
from curvlab.errors import DivergedError, UsageError, shown, system_message
from curvlab.files import arriving
from curvlab.program import expand_home

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from curvlab.run.load import Run

SHOWN_ROWS = 20  # rows of a table on the terminal; a file has all of them
SHOWN_COLUMNS = 10


class Words(argparse.ArgumentParser):
    """A parser that answers invalid arguments with one sentence and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and where the arguments are listed."""
        print(f"{self.prog}: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def _add_folder(place: str) -> Path:
    """Add a folder of configurations, or raise argparse's error."""
    try:
        return add(place)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class Verb(Words):
    """A verb: its words, whose help is the docstring of its module, and what it does with them."""

    def __init__(
        self,
        verb: str,
        doc: str | None,
        act: Callable[[argparse.Namespace], None],
        level: int = logging.WARNING,
    ) -> None:
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=f"curvlab {verb}", description=doc, formatter_class=form)
        self.act, self.level = act, level
        what = "take configurations from this folder too, DIR or pkg://PACKAGE"
        self.add_argument("--config-dir", type=_add_folder, metavar="DIR", help=what)

    def __call__(self, words: Sequence[str]) -> int:
        """Parse and run a verb; an error is one sentence, invalid arguments have exit code 2."""
        logging.basicConfig(level=self.level, format="%(message)s")
        parse = self.parse_args if self._subparsers else self.parse_intermixed_args
        try:
            args = parse(expand_home(words))
        except SystemExit as left:  # of --help
            return int(left.code or 0)
        try:
            self.act(args)
        except (UsageError, DivergedError, OSError) as error:
            said = system_message(error) if isinstance(error, OSError) else shown(error)
            print(f"{self.prog}: {said}", file=sys.stderr)
            return 2 if isinstance(error, UsageError) else 1
        return 0


def take_run(verb: Verb) -> None:
    """Give a verb the arguments of one finished run."""
    verb.add_argument("run", metavar="RUN", help="folder of a run, or its best.ckpt")
    what = "build classes that are none of curvlab's or a plug-in's, too: RUN may then run code"
    verb.add_argument("--trust", action="store_true", help=what)


def graph_in(folder: str | None, run: "Run") -> "Data | None":
    """Another graph, from a folder of files, with the run's numbers of classes and features."""
    if folder is None:
        return None
    from curvlab.data.datasets.reading import read_graph, reader_of

    run.check_own()
    source, options = run.config.dataset.source, {f.name for f in fields(reader_of(folder))}
    kept = options.intersection(source) - {"path", "nodes", "features", "options", "target"}
    given = {str(name): source[name] for name in kept}
    graph, _ = read_graph(folder, known=run.vocabulary, **given)
    return graph


def write(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table atomically, in the format of its file's suffix."""
    if path.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--output {path}: tables are written as .csv or .parquet")
    with arriving(path) as partial:
        if path.suffix == ".csv":
            frame.to_csv(partial, index=False)
            return
        try:
            frame.to_parquet(partial, index=False)
        except ImportError:
            raise UsageError(
                "parquet files need the package pyarrow: pip install pyarrow, or write .csv"
            ) from None


def show(frame: "pd.DataFrame", title: str, digits: int = 4) -> None:
    """Print the first rows and columns of a table."""
    columns, number = list(frame.columns)[:SHOWN_COLUMNS], f"{{:.{digits}f}}".format
    text = frame[columns].head(SHOWN_ROWS).to_string(index=False, float_format=number)
    print(f"{title}\n{text}")
    rows, more = len(frame) - SHOWN_ROWS, len(frame.columns) - SHOWN_COLUMNS
    left = [f"{rows:,} more rows"] if rows > 0 else []
    left += [f"{more} more columns"] if more > 0 else []
    if left:
        print(f"... {' and '.join(left)}: --output FILE.csv writes all")
