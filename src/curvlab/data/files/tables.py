"""Tables of a user's files, read by pandas; what is wrong with one is said by file and line."""

import csv
import gzip
import re
import warnings
import zlib
from collections.abc import Collection, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import pandas as pd
import psutil

from curvlab.data.files.triple_files import SEPARATORS
from curvlab.errors import UsageError

GROWTH = {".csv": 22, ".tsv": 22, ".txt": 22, ".gz": 90, ".parquet": 25, ".npy": 3, ".npz": 6}
"""Bytes of memory that reading takes for a byte of a file, about, by its ending."""

NOT_A_NUMBER = ("nan", "NaN", "NAN", "<NA>")
"""What programs write where a number is missing."""


@dataclass(frozen=True)
class Table:
    """A table of a file.

    Attributes:
        path: of the file.
        frame: texts, or numbers where the file has typed columns; its index numbers the lines.
        unit: what the index counts: `line`, `row`, `node`, `edge`.
    """

    path: Path
    frame: pd.DataFrame
    unit: str = "line"

    def at(self, line: Any, column: Any = None) -> str:
        """Where something is, for a message."""
        place = f"{self.path}, {self.unit} {line}"
        return place if column is None else f"{place}, column {column!r}"

    def first(self, wrong: "pd.Series[bool] | np.ndarray") -> Any:
        """The first line of which something holds."""
        return self.frame.index[int(np.flatnonzero(np.asarray(wrong))[0])]


def check_memory(path: Path) -> None:
    """Refuse a file that would not fit into memory, by its size, before it is read.

    Raises:
        UsageError: it would not.
    """
    size = path.stat().st_size
    needed = size * GROWTH.get(path.suffix, 4)
    free = psutil.virtual_memory().available
    if needed > free:
        raise UsageError(
            f"{path} has {size / 1e9:.1f} GB and would take about {needed / 1e9:.0f} GB of memory "
            f"to read, of which {free / 1e9:.0f} GB are free: take a part of the graph, or a "
            "machine with more memory."
        )


def check_is_file(path: Path, what: str) -> None:
    """Refuse what is no file, or an empty one.

    Args:
        path: of the file.
        what: it should be, for the message.

    Raises:
        UsageError: there is nothing, or a folder.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder, where {what} should be: give the path of a file.")
    if not path.is_file():
        raise UsageError(f"{path} is not there: give the path of {what}.")
    if path.stat().st_size == 0:
        raise UsageError(f"{path} is empty: it should be {what}.")


def read_table(
    path: Path,
    separator: str | None = None,
    header: bool = False,
    texts: Collection[str] = (),
) -> Table:
    """Read a text or Parquet table.

    Blank lines, and lines before the table that begin with # or %, do not count. Where the first
    line names the columns, those of numbers alone are numbers, but for `texts`.

    Args:
        path: of the file, `.csv`, `.tsv` or `.txt`, perhaps with `.gz`, or `.parquet`.
        separator: one of `SEPARATORS`; None: by the file's name.
        header: whether the first line names the columns.
        texts: columns that stay texts.

    Raises:
        UsageError: it cannot be read, with the line.
    """
    check_is_file(path, "a table")
    check_memory(path)
    if path.suffix == ".parquet":
        return _parquet(path)
    separator = separator or ("tab" if ".tsv" in path.suffixes else "comma")
    skipped, first = _beginning(path)
    if header:
        names = _split(first, separator)
        _check_names(path, names, skipped + 1)
        dtype = {name: str for name in names if name in texts}
        frame = _frame(path, separator, skipped, header=0, dtype=dtype, index_col=False)
        frame.columns = pd.Index(names)
    else:
        frame = _frame(path, separator, skipped, header=None, dtype=str)
    frame.index = pd.RangeIndex(skipped + 1 + header, skipped + 1 + header + len(frame))
    blank = frame.iloc[:, 0].eq("")
    for column in frame.columns[1:] if blank.any() else []:
        blank &= frame[column].astype(str).eq("")
    return Table(path, frame[~blank])


def columns_of(path: Path, separator: str | None = None) -> list[str]:
    """The fields of the first line of a text table that is no comment."""
    separator = separator or ("tab" if ".tsv" in path.suffixes else "comma")
    return _split(_beginning(path)[1], separator)


def is_missing(texts: "pd.Series[str]") -> "pd.Series[bool]":
    """Which texts are none: empty ones and, among numbers, `nan`, which is a name among names."""
    written = texts.isin(NOT_A_NUMBER)
    others = texts[texts.ne("") & ~written]
    numbers = pd.to_numeric(others, errors="coerce").notna().all()
    return texts.eq("") | (written & bool(numbers))


def ids_of(table: Table, column: Hashable) -> "pd.Series[Any]":
    """A column as texts that name nodes.

    Raises:
        UsageError: one is missing, or is no whole number among numbers.
    """
    values = table.frame[column]
    if pd.api.types.is_float_dtype(values):
        wrong = values.isna() | values.ne(values.round())
        if wrong.any():
            line = table.first(wrong)
            raise UsageError(
                f"{table.at(line, column)}: {values.loc[line]} is no id: ids are whole numbers or "
                "texts; write one in every line."
            )
        values = values.astype("int64")
    texts = values.astype(str).str.strip()
    missing = values.isna() | is_missing(texts)
    if missing.any():
        line = table.first(missing)
        raise UsageError(
            f"{table.at(line, column if isinstance(column, str) else None)}: an id is missing: "
            "write one, or take the line out."
        )
    return texts


def numbers_of(table: Table, column: Hashable, what: str, way_out: str) -> np.ndarray:
    """A column as finite float64 numbers.

    Args:
        table: that has it.
        column: its name.
        what: they are, for messages.
        way_out: what to do about one that is none.

    Raises:
        UsageError: one is not a number, or not finite.
    """
    values = table.frame[column]
    parsed = pd.to_numeric(values, errors="coerce")
    if np.iscomplexobj(parsed):
        raise UsageError(f"{table.path}: {what} {column!r} has complex numbers: {way_out}.")
    numbers = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(numbers.astype(np.float32))
    if wrong.any():
        line = table.first(wrong)
        raise UsageError(
            f"{table.at(line, column)}: {str(values.loc[line])[:40]!r} is not a finite number, "
            f"which {what} must be: {way_out}."
        )
    return numbers


def check_alike(ids: "pd.Index[Any]", path: Path) -> None:
    """Refuse ids that write the same number in two ways, as 1 and 01 or 1.0.

    Raises:
        UsageError: two do.
    """
    short = ids[ids.str.len() < 16]  # longer whole numbers are no exact floats
    numbers = pd.to_numeric(pd.Series(short), errors="coerce")
    twice = numbers.notna() & numbers.duplicated(keep=False)
    if twice.any():
        number = numbers[twice].iloc[0]
        one, other = short[np.asarray(numbers == number)][:2]
        raise UsageError(
            f"{path}: ids {one!r} and {other!r} are the same number and would be two nodes: write "
            "each id in one way."
        )


def _beginning(path: Path) -> tuple[int, str]:
    """How many lines come before the table, and its first line."""
    skipped = 0
    try:
        with _opened(path) as stream:
            for raw in stream:
                if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise UsageError(
                        f"{path} is in UTF-16, as spreadsheets write it: save it as UTF-8, for "
                        "instance by iconv -f utf-16 -t utf-8."
                    )
                if b"\x00" in raw:
                    raise UsageError(f"{path}, line {skipped + 1} is no text: save it as UTF-8.")
                line = raw.removeprefix(b"\xef\xbb\xbf").strip(b"\r\n")
                if line.strip() and not line.lstrip().startswith((b"#", b"%")):
                    return skipped, line.decode()
                skipped += 1
    except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
        _refuse(path, error)
    raise UsageError(f"{path} has no line but blank ones and comments: write the table into it.")


def _opened(path: Path) -> AbstractContextManager[IO[bytes]]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _split(line: str, separator: str) -> list[str]:
    if separator == "space":
        return line.split()
    reader = csv.reader([line], delimiter=SEPARATORS[separator], skipinitialspace=True)
    return [field.strip() for field in next(reader)]


def _check_names(path: Path, names: list[str], line: int) -> None:
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated or "" in names:
        what = f"two columns {repeated[0]!r}" if repeated else "a column without a name"
        raise UsageError(f"{path}, line {line} has {what}: give each column a name of its own.")


def _frame(path: Path, separator: str, skipped: int, **options: Any) -> pd.DataFrame:
    """What pandas makes of a text, with its errors in words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=r"\s+" if separator == "space" else SEPARATORS[separator],
                skiprows=skipped,
                keep_default_na=False,
                skip_blank_lines=False,
                skipinitialspace=True,
                low_memory=False,
                encoding="utf-8-sig",
                **options,
            )
    except pd.errors.ParserWarning:
        raise UsageError(
            f"{path}, line {skipped + 2} has more fields than line {skipped + 1} names: give each "
            "line as many; put a text with the separator in quotes."
        ) from None
    except (ValueError, OSError, EOFError, zlib.error) as error:
        _refuse(path, error)


def _refuse(path: Path, error: Exception) -> NoReturn:
    """Raise what reading a text raised, in words."""
    said = " ".join(str(error).split())
    ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", said)
    if ragged:
        raise UsageError(
            f"{path}, line {ragged[2]} has {ragged[3]} fields, where {ragged[1]} are expected: "
            "give each line as many; put a text with the separator in quotes."
        ) from None
    if "EOF inside string" in said:
        raise UsageError(f"{path}: a quote is opened and not closed: close it.") from None
    if isinstance(error, UnicodeDecodeError):
        raise UsageError(
            f"{path}, line {_undecodable(path)} is not UTF-8: convert the file, from Latin-1 by "
            "iconv -f latin1 -t utf-8."
        ) from None
    if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
        raise UsageError(
            f"{path} cannot be decompressed ({said}): compress it again by gzip, or put the text "
            "there without .gz."
        ) from None
    raise UsageError(f"{path} cannot be read: {said[:200]}; check the file.") from None


def _undecodable(path: Path) -> int:
    """The first line that is not UTF-8."""
    with _opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 1


def _parquet(path: Path) -> Table:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise UsageError(
            f"{path}: Parquet needs pyarrow: pip install 'curvlab[parquet]', or write a .csv"
        ) from None
    except Exception as error:  # what damaged bytes do to the reader is anybody's guess
        raise UsageError(
            f"{path} is no Parquet table ({' '.join(str(error).split())[:120]}): write it again."
        ) from error
    frame.columns = pd.Index([str(name) for name in frame.columns])
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    return Table(path, frame, "row")
