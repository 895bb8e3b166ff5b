"""Arguments, tables and errors of the verbs that use finished runs."""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from curvlab.config.folder import add
from curvlab.errors import DivergedError, UsageError, format_error, system_message
from curvlab.files import atomic_path, name_in_errors
from curvlab.program import expand_home

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from curvlab.run.load import Run

SHOWN_ROWS = 20  # rows of a table on the terminal; a file has all of them
SHOWN_COLUMNS = 10

FORMULAS = ("=", "+", "-", "@")
"""Beginnings of texts that a spreadsheet runs as formulas."""


class OneLineParser(argparse.ArgumentParser):
    """A parser that refuses invalid arguments in one sentence, with exit code 2."""

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


class Verb(OneLineParser):
    """A verb: its arguments, with the docstring of its module as help, and its work."""

    def __init__(
        self,
        verb: str,
        doc: str | None,
        work: Callable[[argparse.Namespace], None],
        level: int = logging.WARNING,
    ) -> None:
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=f"curvlab {verb}", description=doc, formatter_class=form)
        self.work = work
        self.level = level
        description = "additional folder of configurations, DIR or pkg://PACKAGE"
        self.add_argument("--config-dir", type=_add_folder, metavar="DIR", help=description)

    def __call__(self, arguments: Sequence[str]) -> int:
        """Parse and run a verb; print an error as one sentence and return the exit code."""
        logging.basicConfig(level=self.level, format="%(message)s")
        parse = self.parse_args if self._subparsers else self.parse_intermixed_args
        try:
            args = parse(expand_home(arguments))
        except SystemExit as end:  # of --help
            return int(end.code or 0)
        try:
            self.work(args)
        except (UsageError, DivergedError, OSError) as error:
            message = format_error(error)
            if isinstance(error, OSError):
                message = system_message(error)
            print(f"{self.prog}: {message}", file=sys.stderr)
            return 2 if isinstance(error, UsageError) else 1
        return 0


def add_run_arguments(verb: Verb) -> None:
    """Give a verb the arguments of one finished run."""
    verb.add_argument("run", metavar="RUN", help="folder of a run, or its best.ckpt")
    description = "build any class that RUN names; its author can then run code here"
    verb.add_argument("--trust", action="store_true", help=description)


def graph_in(folder: str | None, run: "Run") -> "Data | None":
    """Read a graph with the run's vocabulary of classes and features; None without a folder."""
    if folder is None:
        return None
    from curvlab.data.datasets.reading import read_graph, reader_of

    run.check_inductive()
    source = run.config.dataset.source
    names = {f.name for f in fields(reader_of(folder))}.intersection(source)
    names -= {"path", "nodes", "features", "options", "target"}
    options = {str(name): source[name] for name in names}
    graph, _ = read_graph(folder, known=run.vocabulary, **options)
    return graph


def add_spreadsheet_argument(verb: Verb) -> None:
    """Add the option for spreadsheets to a verb that writes tables."""
    description = "in .csv, put ' before names that a spreadsheet would run as a formula (= + - @)"
    verb.add_argument("--spreadsheet", action="store_true", help=description)


def write(frame: "pd.DataFrame", path: Path, spreadsheet: bool = False) -> None:
    """Write a table atomically, in the format of its file's suffix.

    For a `spreadsheet`, texts of a CSV file that it would take for formulas are marked as texts.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--output {path}: tables are written as .csv or .parquet")
    with atomic_path(path) as partial:
        if path.suffix == ".csv":
            safe = frame.rename(columns=as_text).map(as_text) if spreadsheet else frame
            safe.to_csv(partial, index=False)
            return
        try:
            frame.to_parquet(partial, index=False)
        except ImportError:
            raise UsageError(
                "parquet files need the package pyarrow: pip install pyarrow, or write .csv"
            ) from None


def as_text(value: Any) -> Any:
    """A value for a spreadsheet; a text that begins like a formula is quoted, as `'=text`."""
    is_formula = isinstance(value, str) and value.lstrip().startswith(FORMULAS)
    return f"'{value}" if is_formula else value


def show(frame: "pd.DataFrame", title: str, digits: int = 4) -> None:
    """Print the first rows and columns of a table."""
    columns = list(frame.columns)[:SHOWN_COLUMNS]
    format_float = f"{{:.{digits}f}}".format
    text = frame[columns].head(SHOWN_ROWS).to_string(index=False, float_format=format_float)
    print(f"{title}\n{text}")
    rows = len(frame) - SHOWN_ROWS
    columns_left = len(frame.columns) - SHOWN_COLUMNS
    hidden = []
    if rows > 0:
        hidden.append(f"{rows:,} more rows")
    if columns_left > 0:
        noun = "column" if columns_left == 1 else "columns"
        hidden.append(f"{columns_left} more {noun}")
    if hidden:
        print(f"... {' and '.join(hidden)}: --output FILE.csv writes all")


def deliver(text: str, output: Path | None) -> None:
    """Print the text, or write it to a file."""
    if output is None or not text:
        print(text, end="")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    with name_in_errors(output):
        output.write_text(text, encoding="utf-8")
    print(f"wrote {output}")
