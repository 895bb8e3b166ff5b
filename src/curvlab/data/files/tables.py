"""Tables of a user's files, read by pandas; errors name file and line."""

import csv
import gzip
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvlab.errors import FAULT, UsageError

SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": r"\s+", "bar": "|"}

ROLES = {
    "source": ("source", "src", "from", "u", "head", "node1", "id1", "id_1", "node_id_1", "start"),
    "target": ("target", "dst", "to", "v", "tail", "node2", "id2", "id_2", "node_id_2", "end"),
    "weight": ("weight", "weights", "w", "value", "strength"),
    "relation": ("relation", "predicate", "rel"),
    "id": ("id", "node", "node_id"),
    "label": ("label", "class", "y", "category"),
    "split": ("split", "part", "subset"),
}
"""Names of columns, in any case."""

MISSING = {"", "NULL", "Null", "null", "None", "none", r"\N", ".", "-"}
MISSING |= {"NA", "na", "<NA>", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "NaT"}
"""Texts of a missing value in columns of numbers, labels and texts; never of an id."""


@dataclass(frozen=True)
class Table:
    """A table of a file.

    Attributes:
        path: of the file.
        frame: texts, or values where the file has typed columns; its index numbers the lines.
        unit: what the index counts: `line`, `row`, `node`, `edge`.
        faults: sentences on what is wrong, of this table and of those that share the list.
    """

    path: Path
    frame: pd.DataFrame
    unit: str = "line"
    faults: list[str] = field(default_factory=list)

    def refuse(self, wrong: Any, column: Hashable, remedy: str) -> None:
        """Note the place and value of the first invalid row; the remedy continues the sentence."""
        rows = np.flatnonzero(wrong)
        if len(rows):
            value = str(self.frame[column].astype(object).fillna("").iloc[rows[0]])[:40]
            more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
            place = f"{self.unit} {self.frame.index[rows[0]]}, column {column!r}"
            self.faults.append(f"{self.path}, {place}: {value!r}{more} {remedy}")

    def has(self, columns: Sequence[str], key: str) -> None:
        """Note a fault for each missing column that an option names."""
        shown = ", ".join(map(str, self.frame.columns[:12]))
        strange = [name for name in columns if name not in self.frame]
        self.faults.extend(
            f"{key}=[{name}] names a column, but {self.path} has {shown}" for name in strange
        )

    def check(self) -> None:
        """Raise all faults in one `UsageError`, if there are some."""
        if len(self.faults) == 1:
            raise UsageError(f"{self.faults[0]}.")
        if self.faults:
            raise UsageError(FAULT.join([f"{len(self.faults)} faults:", *self.faults]))

    def texts(self, column: Hashable) -> "pd.Series[Any]":
        """A column as texts, empty where a typed column has no value."""
        values = self.frame[column]
        values = values.convert_dtypes() if pd.api.types.is_float_dtype(values) else values
        return values.astype("str").fillna("").str.strip()

    def values(self, column: Hashable) -> "pd.Series[Any]":
        """A column as texts, empty where its text is one of `MISSING`."""
        return self.texts(column).mask(self.blank(column), "")

    def ids(self, column: Hashable) -> "pd.Series[Any]":
        texts = self.texts(column)
        self.refuse(texts.eq(""), column, "is not an id: write one, or take the line out")
        return texts

    def blank(self, column: Hashable) -> np.ndarray:
        """Where a column has no value `[rows]`; `-` is one next to `+`."""
        texts = self.texts(column)
        signs = {"-"} if texts.eq("+").any() else set()
        return texts.isin(MISSING - signs).to_numpy(dtype=bool)

    def parsed(self, column: Hashable) -> "pd.Series[Any]":
        """A column as numbers, true as 1 and false as 0; NaN where it has another text."""
        values = self.frame[column]
        if not pd.api.types.is_numeric_dtype(values) and values.dtype.kind not in "mM":
            texts = self.values(column)
            truth = texts.str.casefold().map({"": np.nan, "true": 1.0, "false": 0.0})
            values = truth if truth.notna().eq(texts.ne("")).all() else texts
        return pd.to_numeric(values, errors="coerce")

    def is_text(self, column: str) -> bool:
        """Whether fewer than half of a column's values are numbers."""
        return bool(self.parsed(column)[~self.blank(column)].isna().mean() > 0.5)

    def numbers(self, column: Hashable, remedy: str, blank: bool = False) -> np.ndarray:
        """A column as float64 numbers, finite in float32; NaN where `blank` allows none."""
        parsed, missing = self.parsed(column), self.blank(column)
        numbers = np.where(missing, np.nan, parsed.to_numpy(np.float64, na_value=np.nan))
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(numbers.astype(np.float32))
        wrong &= ~missing | (not blank)
        self.refuse(wrong, column, f"is not a finite number: {remedy}")
        return numbers


def check_file(path: Path, what: str) -> None:
    """Refuse a missing or empty file, with a sentence on `what` it should be."""
    if not path.is_file() or not path.stat().st_size:
        found = "is a folder" if path.is_dir() else "is empty" if path.exists() else "is not there"
        raise UsageError(f"{path} {found}: give the path of {what}.")


def read_table(
    path: Path,
    separator: str | None = None,
    header: bool = False,
    plain: bool = False,
) -> Table:
    """Read a table of text in UTF-8, perhaps with `.gz`, or of Parquet, without blank lines.

    Columns of a file of text are texts, so that an id keeps its zeros. `header`: the first line
    names the columns. `plain`: quotes, and lines at the beginning with # or %, are not special.
    """
    check_file(path, "a table")
    options: dict[str, Any] = {
        "sep": SEPARATORS[separator or ("tab" if ".tsv" in path.suffixes else "comma")],
        "quoting": csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL,
        "header": 0 if header else None,
        "index_col": False if header else None,
        "keep_default_na": False,
        "na_values": [""],
        "encoding": "utf-8-sig",
        "skip_blank_lines": False,
        "skipinitialspace": True,
    }
    try:
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path)
            return Table(path, frame.set_axis(frame.columns.astype(str), axis=1), "row")
        marks = ("",) if plain else ("", "#", "%")
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8-sig") as stream:
            skipped = sum(1 for _ in takewhile(lambda line: line.strip()[:1] in marks, stream))
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of lines that are too long
            frame = pd.read_csv(path, skiprows=skipped, dtype=str, **options)
    except ImportError as error:
        raise UsageError(f"{path}: {error}: pip install 'curvlab[parquet]'") from None
    except Exception as error:  # each kind of damage raises its own
        why = " ".join(str(error).split())[:120]
        raise UsageError(
            f"{path} cannot be read ({why}): write a table in UTF-8 with as many fields in every "
            "line, texts with the separator in quotes."
        ) from error
    frame.index = pd.RangeIndex(skipped + 1 + header, skipped + 1 + header + len(frame))
    frame = frame.rename(columns=str.strip) if header else frame
    if header and any(name.startswith("Unnamed: ") for name in frame):
        raise UsageError(f"{path} has a column without a name: give it one, or take it out.")
    return Table(path, frame.dropna(how="all"))
