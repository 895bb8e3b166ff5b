"""Text files of triples, read line by line."""

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from curvlab.errors import UsageError

COLUMNS = ("head", "relation", "tail")
EXAMPLE = {"head": "Paris", "relation": "capital_of", "tail": "France"}
SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": " ", "bar": "|"}
# What first lines call the columns, in any case.
HEADER_WORDS = (
    {"head", "h", "subject", "subj", "s", "source", "src", "from", "entity1", "head_id"},
    {"relation", "rel", "r", "predicate", "pred", "p", "property", "edge", "label", "relation_id"},
    {"tail", "t", "object", "obj", "o", "target", "dst", "to", "entity2", "tail_id"},
)


class Triple(NamedTuple):
    """A fact, by its names."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class TripleFormat:
    """How lines are to be read.

    Attributes:
        columns: the order of head, relation and tail.
        separator: one of `SEPARATORS`, of which a line has two; quotes are part of a name.
        header: whether the first line of a file names the columns; None: unknown, a first line
            that looks like a header is refused.

    Raises:
        UsageError: A value is something else.
    """

    columns: Sequence[str] = COLUMNS
    separator: str = "tab"
    header: bool | None = False

    def __post_init__(self) -> None:
        if sorted(self.columns) != sorted(COLUMNS):
            raise UsageError(
                f"columns={list(self.columns)} must be head, relation and tail in "
                "the order of the files"
            )
        if self.header not in (None, True, False):
            raise UsageError(
                f"header={self.header} must be True, False, or None to refuse what looks like one"
            )


def read_triples(path: Path, kind: TripleFormat | None = None) -> list[Triple]:
    r"""Parse the lines of a text file in UTF-8, which may be compressed (`.gz`).

    A line ends at `\n` or `\r\n`, and a byte-order mark before the first is none of its names.
    Spaces around names do not count; nothing else of a name is changed.

    Args:
        path: The file.
        kind: How lines are to be read; None for head, relation and tail between tabs.

    Raises:
        UsageError: The file is not such a text, has no triples, or a line is not three names.
    """
    kind = kind or TripleFormat()
    separator = SEPARATORS[kind.separator]
    order = [list(kind.columns).index(column) for column in COLUMNS]
    triples = []
    skips = kind.header is True
    for number, line in enumerate(_text(path).split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip(" "):
            continue
        if skips:
            skips = False
            continue
        fields = [field.strip(" ") for field in line.split(separator)]
        if len(fields) != 3 or not all(fields):
            count = f"{len(fields)} column{'s' * (len(fields) != 1)}"
            found = "an empty name" if len(fields) == 3 else count
            raise UsageError(
                f"{path}, line {number}: expected {', '.join(kind.columns[:2])} and "
                f"{kind.columns[2]} separated by {kind.separator}s, but found {found} in "
                f"{line[:60]!r}."
            )
        triples.append(Triple(*(fields[i] for i in order)))
    if not triples:
        example = separator.join(EXAMPLE[column] for column in kind.columns)
        raise UsageError(f"{path} has no triples: expected lines such as {example}")
    return triples


def check_headers(parts: Mapping[Path, Sequence[Triple]]) -> None:
    """Refuse files whose first line looks like the columns' names.

    So does one of words that columns are called by, and one that stands first in every file and
    whose names no other line has.

    Args:
        parts: the triples of each file, in its order.

    Raises:
        UsageError: One does.
    """
    firsts = {path: triples[0] for path, triples in parts.items()}
    names = [path for path, first in firsts.items() if _is_of_words(first)]
    if not names and _is_alone(list(parts.values())):
        names = list(firsts)
    if names:
        raise UsageError(
            f"the first line of {', '.join(path.name for path in names)} in {names[0].parent}, "
            f"{' '.join(firsts[names[0]])!r}, looks like a header: skip the first line of every "
            "file by header=True, or take it for a triple by "
            "header=False."
        )


def _is_of_words(triple: Triple) -> bool:
    pairs = zip(triple, HEADER_WORDS, strict=True)
    return all(name.casefold() in words for name, words in pairs)


def _is_alone(parts: Sequence[Sequence[Triple]]) -> bool:
    """Whether all files start with the same triple, of names that are nowhere else."""
    first = parts[0][0]
    if len(parts) < 2 or any(part[0] != first for part in parts):
        return False
    rest = [triple for part in parts for triple in part[1:]]
    return bool(rest) and not any(set(first) & set(triple) for triple in rest)


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UsageError(
            f"{path} cannot be decompressed ({error}): compress it again by gzip, or put the text "
            "there without .gz."
        ) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Before the error lies what was decoded, without the byte-order mark of three bytes.
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        raise UsageError(
            f"{path}, line {line}: byte {error.object[error.start]:#04x} is not UTF-8: convert the "
            "file, from Latin-1 by iconv -f latin1 -t utf-8."
        ) from error
