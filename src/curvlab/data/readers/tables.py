"""Tables of a user's files: their separator, encoding, comments and quotes are found by content.

pandas parses; errors name file and line.
"""

import csv
import io
import re
import warnings
from ast import literal_eval
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curvlab.data.readers.numbers import COMMA_NUMBER, MIXED, parse_numbers, read_commas
from curvlab.data.readers.texts import (
    NAMES_OF_SEPARATORS,
    SAMPLE,
    SEPARATORS,
    blank_comments,
    blank_marked_edges,
    find_separator,
    read_text,
    split_lines,
)
from curvlab.data.readers.words import split_pairs
from curvlab.errors import FAULT, UsageError

NO_TABLES = {
    "%%matrixmarket": "is in the format Matrix Market: read it by scipy.io.mmread and write its "
    "row and col as the lines of edges.csv",
    "<!doctype html": "is a web page, not a table: download the file itself",
    "<html": "is a web page, not a table: download the file itself",
    "<?xml": "is XML: name it .graphml or .gexf if it is a graph",
    "{": "is JSON: read it by networkx.node_link_graph and write it by networkx.write_graphml",
    "[": "is JSON: write a table with one line per edge, such as a,b",
    "version https://git-lfs": "is a pointer of Git LFS, not the file: fetch it by git lfs pull",
    "graph [": "is GML: name it .gml",
    "*vertices": "is Pajek's: name it .net",
    "*network": "is Pajek's: name it .net",
    "digraph ": "is in the language DOT: write it by networkx.write_graphml",
    "graph {": "is in the language DOT: write it by networkx.write_graphml",
}
"""What to do with a text that is no table, by its first characters."""


MISSING = frozenset(
    {"", "NULL", "Null", "null", "None", "none", r"\N", ".", "-"}
    | {"NA", "na", "<NA>", "N/A", "n/a", "#N/A", "NaN", "nan", "NAN", "NaT"}
)
"""Texts of a missing value in columns of numbers, labels and texts; never of an id."""

QUOTED_OR_PLAIN = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^()'"])*"""
"""What can be between the brackets of a value that NumPy prints."""


@dataclass(frozen=True)
class Table:
    """A table of a file.

    Attributes:
        path: path of the file.
        frame: texts, or values where the file has typed columns; its index numbers the lines.
        unit: unit that the index counts: `line`, `row`, `node`, `edge`.
        faults: sentences on what is wrong, of this table and of those that share the list.
        form: how the file is written, as `separator comma`; empty for typed files.
        headed: whether the file has named the columns.
        comments: lines of comment.
        missing: texts of a missing value.
        notes: sentences on guesses about values that were read.
    """

    path: Path
    frame: pd.DataFrame
    unit: str = "line"
    faults: list[str] = field(default_factory=list)
    form: tuple[str, ...] = ()
    headed: bool = True
    comments: tuple[str, ...] = ()
    missing: frozenset[str] = MISSING
    notes: list[str] = field(default_factory=list)

    def refuse(self, wrong: Any, column: Hashable, remedy: str) -> None:
        """Note the place and value of the first invalid row; the remedy continues the sentence."""
        rows = np.flatnonzero(wrong)
        if len(rows):
            value = str(self.frame[column].astype(object).fillna("").iloc[rows[0]])[:40]
            remainder = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
            place = f"{self.unit} {self.frame.index[rows[0]]}, column {column!r}"
            self.faults.append(f"{self.path}, {place}: {value!r}{remainder} {remedy}")

    def names_of(self, columns: Sequence[str | int]) -> list[str]:
        """Names of columns that a user gives by name or number, from 1."""
        names = dict(enumerate(map(str, self.frame), 1))
        by_name = []
        for column in columns:
            if isinstance(column, int):
                by_name.append(names.get(column, f"column {column}"))
            else:
                by_name.append(column)
        return by_name

    def has(self, columns: Sequence[str], key: str) -> None:
        """Note a fault for each missing column that an option names."""
        columns_text = ", ".join(map(str, self.frame.columns[:12]))
        strange = [name for name in columns if name not in self.frame]
        self.faults.extend(
            f"{key}=[{name}] names a column, but {self.path} has {columns_text}" for name in strange
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
        """A column as texts, empty where a value is missing."""
        return self.texts(column).mask(self.blank(column), "")

    def ids(self, column: Hashable) -> "pd.Series[Any]":
        texts = self.texts(column)
        self.refuse(texts.eq(""), column, "is not an id: write one, or take the line out")
        return texts

    def blank(self, column: Hashable) -> np.ndarray:
        """Where a column has no value `[rows]`; in a column with `+`, `-` is a value."""
        texts = self.texts(column)
        texts_of_none = self.missing
        if texts.eq("+").any():
            texts_of_none = texts_of_none - {"-"}
        return texts.isin(texts_of_none).to_numpy(dtype=bool)

    def missing_texts(self, column: Hashable) -> str:
        """The texts of a column's missing values, as ` (NA, -)`; empty without texts."""
        texts = sorted({*map(str, self.texts(column)[self.blank(column)])} - {""})
        return f" ({', '.join(texts[:5])})" if texts else ""

    def parsed(self, column: Hashable) -> "pd.Series[Any]":
        """A column as numbers, true as 1 and false as 0; NaN in place of any other text.

        `read_commas` says what commas in numbers mean.
        """
        values = self.frame[column]
        if pd.api.types.is_numeric_dtype(values) or values.dtype.kind in "mM":
            return pd.to_numeric(values, errors="coerce")
        texts = self.values(column)
        truth = texts.str.casefold().map({"": np.nan, "true": 1.0, "false": 0.0})
        if truth[texts.ne("")].notna().all():
            return truth
        return parse_numbers(texts, self.comma_separates)

    @property
    def comma_separates(self) -> bool:
        """Whether commas are between the columns of the file."""
        return bool(self.form) and self.form[0].startswith("separator comma")

    def is_text(self, column: str) -> bool:
        """Whether fewer than half of a column's values are numbers."""
        is_number = self.parsed(column).notna()
        is_number |= self.values(column).str.fullmatch(COMMA_NUMBER)
        return bool((~is_number[~self.blank(column)]).mean() > 0.5)

    def numbers(self, column: Hashable, remedy: str, blank: bool = False) -> np.ndarray:
        """A column as float64 numbers, finite in float32; NaN where `blank` allows none."""
        parsed = self.parsed(column)
        is_blank = self.blank(column)
        numbers = np.where(is_blank, np.nan, parsed.to_numpy(np.float64, na_value=np.nan))
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(numbers.astype(np.float32))
        wrong &= ~is_blank | (not blank)
        texts = self.values(column)
        commas = read_commas(texts, self.comma_separates)
        if commas.guess:
            self.notes.append(f"{column}: {commas.guess}")
        if commas.mark is None:
            is_mixed = texts.str.fullmatch(COMMA_NUMBER).to_numpy(bool)
            self.refuse(is_mixed, column, MIXED)
            wrong &= ~is_mixed
        self.refuse(wrong, column, f"is not a finite number: {remedy}")
        return numbers

    def with_header(self) -> "Table":
        """The table whose first line names the columns."""
        names = [*self.frame.iloc[0].fillna("").str.strip()] if len(self.frame) else []
        names = [name or f"column {i}" for i, name in enumerate(names, 1)]
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise UsageError(f"{self.path} has two columns {repeated[0]!r}: rename one.")
        return self.replace(frame=self.frame.iloc[1:].set_axis(names, axis=1), headed=True)

    def replace(self, **changes: Any) -> "Table":
        return Table(**{**vars(self), **changes})


def check_file(path: Path, description: str) -> None:
    """Refuse a missing or empty file, with a sentence on what it should be."""
    if not path.is_file() or not path.stat().st_size:
        state = "is empty" if path.exists() else "is not there"
        if path.is_dir():
            state = "is a folder"
        raise UsageError(f"{path} {state}: give the path of {description}.")


def read_table(path: Path, separator: str | None = None, plain: bool = False) -> Table:
    """Read a table of text, perhaps with `.gz`, or of Parquet, without blank lines.

    Columns of a file of text are texts, so that an id keeps its zeros, and are called `column 1`
    and so on. `plain`: lines of comment are not special, and quotes only between commas.
    """
    check_file(path, "a table")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    text, encoding = read_text(path)
    _refuse_other_formats(path, text)
    form = list[str]()
    excel_line = re.match(r"\s*\"?sep=(\t|[,;| ])\"?[ \t]*(?=\n)", text)
    if excel_line:  # a line of Excel's
        separator = separator or NAMES_OF_SEPARATORS[excel_line[1]]
        text = text[excel_line.end() :]
    comments = tuple[str, ...]()
    marks = ""
    if not plain:
        text, comments = blank_comments(text)
        text, marks = blank_marked_edges(text)
    text, attributes = _split_dictionaries(text)
    delimiter, quoted, alternative = _find_form(text, separator, plain)
    if not plain and separator is None and delimiter in ("comma", "space"):
        _refuse_tuples(path, text)
    if not plain and delimiter == "space":
        text = re.sub(r"(?m)(?<=\S)[ \t]+#[ \t].*$", "", text)  # comments at the end of lines
    if attributes is not None and delimiter == "space":
        joined = _join_names(text)
        if joined:
            text = joined
            delimiter = "tab"
            quoted = False
            form.append("names have blanks (guess: write tabs between names)")
    guess = f" (guess: dataset.source.separator={alternative})" if alternative else ""
    form.insert(0, f"separator {delimiter}{guess}")
    if encoding != "UTF-8":
        hint = " (guess: write UTF-8)" if encoding == "Windows-1252" else ""
        form.append(f"encoding {encoding}{hint}")
    if marks:
        form.append(marks)
    frame = _parse(path, text, delimiter, quoted, plain)
    if attributes is not None:
        frame = frame.join(attributes)
    return Table(path, frame, form=tuple(form), headed=False, comments=comments)


def _read_parquet(path: Path) -> Table:
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise UsageError(f"{path}: {error}: pip install 'curvlab[parquet]'") from None
    except Exception as error:  # each kind of damage raises its own
        reason = " ".join(str(error).split())[:120]
        raise UsageError(f"{path} cannot be read ({reason}): write it again.") from error
    return Table(path, frame.set_axis(frame.columns.astype(str), axis=1), "row")


def _refuse_other_formats(path: Path, text: str) -> None:
    """Refuse a text whose beginning shows that it is no table, regardless of the file's name."""
    for start, remedy in NO_TABLES.items():
        if text[:1000].lstrip().casefold().startswith(start):
            raise UsageError(f"{path} {remedy}.")


def _refuse_tuples(path: Path, text: str) -> None:
    """Refuse lines that begin with a tuple as Python prints it: (0, 1)."""
    last = text.rstrip()[:10_000].split("\n")[-1]
    if re.match(r"\s*\(+[^()]*,[^()]*\)", last):
        raise UsageError(
            f"{path} has tuples of Python's: write one line per edge without brackets, such as "
            "a,b, or, if nodes are tuples, tabs between them; separator=space separates by blanks."
        )


def _find_form(text: str, separator: str | None, plain: bool) -> tuple[str, bool, str]:
    """The separator, whether fields are quoted, and another separator that would do."""
    lines = [line for line in text[: 2**20].split("\n")[:SAMPLE] if line.strip()]
    paired = text.count('"') % 2 == 0

    def choose(quoted: bool) -> tuple[str, str]:
        if separator is not None:
            return separator, ""
        return find_separator(lines, quoted)

    quoted = paired and not plain
    name, alternative = choose(quoted)
    if plain and paired and '"' in text and name in ("comma", "semicolon"):
        quoted = True
        name, alternative = choose(quoted)
    return name, quoted, alternative


def _parse(path: Path, text: str, separator: str, quoted: bool, plain: bool) -> pd.DataFrame:
    """Fields of a text, in rows by the numbers of their lines."""
    skipped = re.match(r"(?:[ \t]*\n)*", text).group().count("\n")  # type: ignore[union-attr]
    if not text.strip():
        return pd.DataFrame()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of lines that are too long
            frame = pd.read_csv(
                io.StringIO(text),
                sep=r"\s+" if separator == "space" else SEPARATORS[separator],
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                header=None,
                skiprows=skipped,
                dtype=str,
                keep_default_na=False,
                na_values=[""],
                skip_blank_lines=False,
                skipinitialspace=True,
            )
    except Exception as error:  # each kind of damage raises its own
        rows = _even_rows(split_lines(text.split("\n"), separator, quoted), plain)
        if rows is None:
            reason = " ".join(str(error).split())[:120]
            remedy = "name another by separator=tab"
            if separator == "space":
                remedy += ", or name a list of neighbours FILE.adjlist"
            raise UsageError(
                f"{path} cannot be read ({reason}): write as many fields in every line, texts with "
                f"the separator ({separator}) in quotes, or {remedy}."
            ) from error
        fields = [[text or None for text in row] for row in rows[skipped:]]
        frame = pd.DataFrame(fields, dtype=object)
    frame.index = pd.RangeIndex(skipped + 1, skipped + 1 + len(frame))
    frame = frame.dropna(how="all")
    empty = [column for column in frame.columns[2:] if frame[column].isna().all()]
    frame = frame.drop(columns=empty)  # a separator at the end of every line is no column
    return frame.set_axis([f"column {i}" for i in range(1, frame.shape[1] + 1)], axis=1)


def _even_rows(rows: Sequence[list[str]], plain: bool) -> list[list[str]] | None:
    """Rows of one length; None if they differ by more than empty fields at the end or a row's name.

    R writes names of rows in a first column, which the header does not name. Unless `plain`, a
    first line whose words occur below is no such header.
    """
    stripped = [_without_empty_end(row) for row in rows]
    first = next((i for i, row in enumerate(stripped) if row), 0)
    lengths = {len(row) for row in stripped[first + 1 :] if row}
    if len(lengths) != 1:
        return None
    (length,) = lengths
    is_header = plain or _are_names(stripped[first], stripped[first + 1 :])
    if len(stripped[first]) == length - 1 and is_header:
        stripped[first] = ["", *stripped[first]]
    if len(stripped[first]) != length:
        return None
    return [row or [""] * length for row in stripped]


def _are_names(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether names of columns occur in no row, or name the rows of a matrix."""
    rows = [row for row in rows if row]
    return [*names] == [row[0] for row in rows] or {*names}.isdisjoint({*chain(*rows)})


def _without_empty_end(row: list[str]) -> list[str]:
    """A row up to its last field that is not empty."""
    length = len(row)
    while length and not row[length - 1]:
        length -= 1
    return row[:length]


def _join_names(text: str) -> str:
    """Lines of two names with blanks, with tabs between the names; empty if none has blanks."""
    rows = [line.split() for line in text.split("\n")]
    words = [row for row in rows if row]
    if '"' in text or all(len(row) == 2 for row in words):
        return ""
    pairs = iter(split_pairs(words))
    return "\n".join("\t".join(next(pairs)) if row else "" for row in rows)


def _split_dictionaries(text: str) -> tuple[str, pd.DataFrame | None]:
    """Take the dictionaries off that networkx writes at the end of the lines of a list of edges."""
    form = re.compile(r"[ \t;,|]*(\{.*\})[ \t]*$")
    if not re.match(r"\s*\S.*" + form.pattern, text, re.MULTILINE):
        return text, None
    lines = []
    rows = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = form.search(line)
        try:
            rows[number] = _dictionary(match[1]) if match else {}
        except (ValueError, SyntaxError):
            return text, None
        lines.append(line[: match.start()] if match else line)
    return "\n".join(lines), pd.DataFrame.from_dict(rows, orient="index").rename(columns=str)


def _dictionary(text: str) -> Any:
    """A dictionary as Python prints it, with numbers as NumPy prints them since its version 2."""
    try:
        return literal_eval(text)
    except ValueError:
        text = re.sub(rf"\b(?:np|numpy)\.\w+\(({QUOTED_OR_PLAIN})\)", r"\1", text)
        text = re.sub(r"\b(?:np|numpy)\.(True|False)_", r"\1", text)
        text = re.sub(r"(?<=[:,\[(]) *nan\b", " None", text)
        return literal_eval(re.sub(r"(?<=[:,\[(-]) *inf\b", " 1e999", text))
