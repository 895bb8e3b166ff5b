#!/usr/bin/env python
"""Check the English of pages, docstrings and configurations' comments.

The checks are proselint's, words of our own, long sentences, and options that do not begin with a
noun or verb. Arguments are files and folders: `python scripts/prose.py docs/spaces.md`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from proselint.checks import __register__
from proselint.config import DEFAULT, Config
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_PATHS = ("README.md", "CONTRIBUTING.md", "configs", "docs", "examples", "scripts", "src")
WORDS = {
    r"hears?|heard": "nodes receive or aggregate",
    r"told(?! apart)|tells?(?! apart)": "objects receive, return, report or raise",
    r"whatever": "any, all or regardless of",
    r"(?<!you )wants?": "papers ask for, code requires",
    r"one's own": "your own",
    r"so many": "name the number",
    r"the (?:latter|former)": "repeat the name",
    r"of those that": "of the ... that",
    r"means? nothing": "is invalid or has no effect",
    r"in order to": "to",
    r"utili[sz]\w+": "use",
    r"thereof|thereby|therein|hereby": "name what is meant",
}
"""Patterns that no page has, by what to write instead."""

NO_SUBJECT = re.compile(
    r"^ {4}(?!\w*Error)(?:\w+, )*(\w+): ((?:of|for|in|between|by|at|from|on|to|with|as|after|before"
    r"|if|when|that|what|which|where|it|its|their|those|makes)\b)"
)
"""Lines of options that begin with no noun and no imperative."""

LONGEST = 40
"""Largest number of words in a sentence."""

OFF = {"typography": False, "dates_times": False}
"""Quotes, dots and signs are a keyboard's; there are no times of day."""


class Line(NamedTuple):
    """A line of prose, without the code in it."""

    path: Path
    number: int
    text: str


class Finding(NamedTuple):
    """A fault and its place."""

    path: Path
    number: int
    says: str

    def __str__(self) -> str:
        """As compilers print it."""
        return f"{self.path}:{self.number}: {self.says}"


def main(words: list[str]) -> int:
    """Print what is wrong in files and folders (default: `DEFAULT_PATHS`); return a status."""
    paths = [Path(word) for word in words] or [ROOT / name for name in DEFAULT_PATHS]
    lines = [line for path in _files(paths) for line in prose(path)]
    pages = [line for line in lines if line.path.suffix != ".yaml"]  # comments repeat names
    findings = {*own_words(lines), *long_sentences(lines), *proselint(pages), *options(paths)}
    for finding in sorted(findings):
        print(finding._replace(path=_short(finding.path)))
    return 1 if findings else 0


def _short(path: Path) -> Path:
    path = path.resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".md", ".py", ".yaml"):
                yield file


def prose(path: Path) -> list[Line]:
    """The lines of a page, of a module's docstrings or of a configuration's comments.

    Code is taken out.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml":
        text = "\n".join(_comment(line) for line in text.splitlines())
    if path.suffix != ".py":
        return [Line(path, i, line) for i, line in enumerate(_without_code(text), start=1)]
    lines = []
    for first, docstring in _docstrings(text):
        for i, line in enumerate(_without_code(docstring)):
            lines.append(Line(path, first + i, line))
        lines.append(Line(path, first, ""))
    return lines


def _docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Docstrings of a module, its classes and functions, each with its first line's number."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node.body[0].lineno, docstring


def _comment(line: str) -> str:
    """The comment in a line of YAML, an item of a list if it has a key."""
    key, sign, comment = line.partition("# ")
    if not sign or (key.strip() and not key.endswith(" ")):
        return ""
    return f"- {comment}." if key.strip() else comment


def options(paths: list[Path]) -> Iterator[Finding]:
    """Options in docstrings, which `help` prints, that begin with a preposition or a pronoun."""
    for path in _files(paths):
        if path.suffix != ".py":
            continue
        for first, docstring in _docstrings(path.read_text(encoding="utf-8")):
            for i, line in enumerate(docstring.splitlines()):
                match = NO_SUBJECT.match(line)
                if match:
                    yield Finding(path, first + i, f"begin '{match[1]}: {match[2]}' with a noun")


def _without_code(text: str) -> list[str]:
    """Lines with a word for code and formulas; blocks, columns and tables' rules are empty."""
    text = re.sub(r"```.*?```", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`|\$[^$\n]+\$", _word, text)
    text = re.sub(r"\]\([^)\n]*\)|<!--.*?-->", " ", text)
    code = re.compile(r"^ {4}|\S {2,}\S|^[|\s:-]+$")
    return ["" if code.search(line) else line for line in text.splitlines()]


def _word(match: re.Match[str]) -> str:
    """A word in place of code; each place has a different word, so that none is repeated."""
    return f"term{match.start()}" + "\n" * match[0].count("\n")


def own_words(lines: list[Line]) -> Iterator[Finding]:
    """Words of `WORDS`."""
    for pattern, instead in WORDS.items():
        forbidden = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
        for line in lines:
            for match in forbidden.finditer(line.text):
                yield Finding(line.path, line.number, f"instead of '{match[0]}' write: {instead}")


def long_sentences(lines: list[Line]) -> Iterator[Finding]:
    """Sentences of more than `LONGEST` words; items of lists and cells of tables end them."""
    start = None
    words = 0
    for line in [*lines, Line(Path(), 0, "")]:
        starts_anew = not line.text.strip() or re.match(r"\s*([-|#*>]|\d+\.) ", line.text)
        pieces = re.split(r"((?<=[.!?:;])\s|\|)", line.text)
        for i, piece in enumerate(pieces):
            if (i == 0 and starts_anew) or i % 2:
                if start is not None and words > LONGEST:
                    yield Finding(start.path, start.number, f"a sentence of {words} words")
                start = None
                words = 0
            count = len(re.findall(r"\w[\w'-]*", piece)) if not i % 2 else 0
            start = line if start is None and count else start
            words += count
        if re.search(r"[.!?:;]\s*$", line.text):
            if start is not None and words > LONGEST:
                yield Finding(start.path, start.number, f"a sentence of {words} words")
            start = None
            words = 0


def proselint(lines: list[Line]) -> Iterator[Finding]:
    """Faults that proselint finds."""
    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many(__register__)
    # Titles repeat names that the paragraph after them starts with.
    text = "\n".join("" if line.text.startswith("#") else line.text for line in lines)
    text = re.sub(r"\b\d[\d.,]*", _word, text)
    config = Config(max_errors=1000, checks={**DEFAULT["checks"], **OFF})
    for result in LintFile("prose", text).lint(config):
        line = lines[result.pos[0] - 1]
        yield Finding(line.path, line.number, result.check_result.message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
