"""How a text file is written: its encoding, its lines of comment, its separator."""

import codecs
import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from curvlab.data.readers.numbers import COMMA_NUMBER
from curvlab.errors import UsageError

Separator = Literal["tab", "semicolon", "comma", "bar", "space"]

SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ",", "bar": "|", "space": " "}
"""Separators between columns; those that are least likely within a text come first."""

NAMES_OF_SEPARATORS = {mark: name for name, mark in SEPARATORS.items()}

SAMPLE = 1000
"""Lines by which a separator is chosen."""

COMMENTS = ("#", "%")


def read_text(path: Path) -> tuple[str, str]:
    """The text of a file, perhaps compressed by gzip, and its encoding."""
    raw = path.read_bytes()
    try:
        while raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        encoding = _wide_encoding(raw)
        text = raw.decode(encoding or "utf-8-sig")
        encoding = encoding.upper().removesuffix("-LE").removesuffix("-BE") or "UTF-8"
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
        encoding = "Windows-1252"
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}): it is not a complete .gz.") from None
    if "\0" in text:
        raise UsageError(f"{path} is not a text: write a table in UTF-8.")
    text = text.removesuffix("\x1a")  # the end of a file of MS-DOS
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def _wide_encoding(raw: bytes) -> str:
    """UTF-16 or UTF-32 by the byte order mark, UTF-16 also by its zeros; empty for others."""
    if raw[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return "utf-32"
    if raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    start = raw[:1000]
    zeros = start[::2].count(0), start[1::2].count(0)
    if len(raw) % 2 or not start or max(zeros) < 0.4 * len(start[::2]):
        return ""
    if min(zeros) > 0:
        return ""  # not a text of the Latin alphabet
    return "utf-16-be" if zeros[0] else "utf-16-le"


def blank_comments(text: str) -> tuple[str, tuple[str, ...]]:
    """Empty the lines of comment, so that lines keep their numbers; return their texts.

    Those are the lines at the beginning that start with # or %, and later ones with a blank after
    it. Where a later field starts with such a mark, or a later line with the same word, the mark
    belongs to names (`#tag`).
    """
    marks = _marks_of_comments(text)
    if not marks:
        return text, ()
    start = rf"[ \t]*[{''.join(marks)}]"
    lead = re.match(rf"(?:[ \t]*\n|{start}.*(?:\n|\Z))*", text)
    end = lead.end() if lead else 0
    for line in re.finditer(rf"(?m)^{start}\w.*", text[:end]):
        name = re.escape(_words(line.group())[0])
        if re.search(rf"(?m)^[ \t]*{name}[\s;,|]", text[end:]):
            end = line.start()
            break
    head = text[:end]
    body = text[end:]
    if not body.strip() and not re.fullmatch(rf"(?:{start}?(?:[ \t].*)?(?:\n|\Z))*", text):
        return text, ()
    comments = [*re.findall(rf"(?m)^{start}(.*)", head)]
    later = rf"(?m)^{start}(?:[ \t].*|$)"
    comments += [line.strip()[1:] for line in re.findall(later, body)]
    return re.sub(r".+", "", head) + re.sub(later, "", body), tuple(comments)


def blank_marked_edges(text: str) -> tuple[str, str]:
    """Empty the lines that seem to be edges behind a # or %, and say how such lines are read.

    They are comments if each has two ids of other lines behind the mark. Otherwise the mark belongs
    to names.

    Args:
        text: Text without its lines of comment.
    """
    marks = "".join(_marks_of_comments(text))
    if not marks:
        return text, ""
    line = re.compile(rf"(?m)^[ \t]*([{marks}])(\w.*)$")
    marked = [*line.finditer(text)]
    plain = line.sub("", text)
    if not marked or not plain.strip():
        return text, ""
    ids = {*_words(plain)}
    example = marked[0].group().strip()
    name = _words(example)[0]
    if all(len(_words(match[2])) > 1 and {*_words(match[2])[:2]} <= ids for match in marked):
        return plain, f"{example!r} is a comment (guess: write {name} in quotes for a name)"
    return text, f"{name!r} is a name (guess: write a blank after {marked[0][1]} in comments)"


def _marks_of_comments(text: str) -> list[str]:
    """The marks of comments that no later field of a line begins with."""
    return [m for m in COMMENTS if not re.search(rf"(?m)^[^{m}\n].*[\t;,| ]\"?{m}\w", text)]


def _words(text: str) -> list[str]:
    """Words of a text in any of the separators."""
    return [word for word in re.split(r"[\s;,|]+", text) if word]


def split_lines(lines: Sequence[str], separator: str, quoted: bool = True) -> list[list[str]]:
    """Fields of lines; blanks in a row separate once."""
    if separator == "space":
        lines = [re.sub(r"[ \t]+", " ", line.strip()) for line in lines]
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    marks = {"delimiter": SEPARATORS[separator], "quoting": quoting, "skipinitialspace": True}
    return [*csv.reader(lines, **marks)]  # type: ignore[arg-type]


def find_separator(lines: Sequence[str], quoted: bool) -> tuple[str, str]:
    """The separator with which most lines have as many columns, and a second choice or nothing."""
    shares = dict[str, float]()
    rows = dict[str, list[list[str]]]()
    for name in SEPARATORS:
        rows[name] = split_lines(lines, name, quoted)
        counts = Counter(len(row) for row in rows[name] if len(row) > 1)
        if counts:
            shares[name] = max(counts.values()) / len(lines)
    best = [name for name, share in shares.items() if share == max(shares.values())]
    if not best:
        return "comma", ""
    first = best[0]
    spaced = rows["space"]
    numbers = all(re.fullmatch(r"[+-]?[\d.,eE+-]+", text) for row in spaced for text in row)
    wide = "space" in best and len(spaced[-1]) > len(rows[first][-1])
    if wide and first == "tab" and numbers:
        first = "space"
    if "space" in best and first == "comma" and _has_comma_numbers(spaced):
        first = "space"
    alternatives = [name for name in best if name not in (first, "space")]
    return first, alternatives[0] if alternatives else ""


def _has_comma_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Whether commas occur in numbers after the first two fields of the rows, and only there."""
    numbers = [text for row in rows[1:] or rows for text in row[2:] if "," in text]
    if not numbers or not all(re.fullmatch(COMMA_NUMBER, text) for text in numbers):
        return False
    return not any("," in text for row in rows for text in row[:2])
