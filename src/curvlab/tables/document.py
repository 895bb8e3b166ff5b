"""Tables inside a text, each between two marks, written anew from the results."""

import re
from collections.abc import Callable, Iterable, Sequence

from curvlab.errors import UsageError

_MARKED = re.compile(r"(?ms)^<!-- tables\.py (?P<words>[^\n]+?) -->\n.*?^<!-- end -->$")
_CELL = re.compile(r"<!-- (?P<words>(cell|paired) [^\n>]+?) -->[^\n]*?<!-- /cell -->")
_MARK = re.compile(r"(?m)^<!-- (tables\.py .*|end) -->$")


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def refresh(text: str, render: Callable[[str], str]) -> str:
    """A text with what stands between each `<!-- tables.py WORDS -->` and `<!-- end -->` new.

    Within a line, `<!-- cell TABLE ROW COLUMN -->` and `<!-- /cell -->` stand around a number,
    `<!-- paired TABLE ROW COLUMN ROW COLUMN -->` and `<!-- /cell -->` around one of two cells.

    Args:
        text: the text, for instance Markdown.
        render: what is to stand there, from WORDS; those within a line begin with `cell` or
            `paired`.

    Raises:
        UsageError: there is no such pair of marks, or half of one.
    """
    pairs = len(_MARKED.findall(text))
    if not pairs or len(_MARK.findall(text)) != 2 * pairs:
        raise UsageError(
            "what is to be written anew must stand between a line <!-- tables.py TABLE --> and a "
            "line <!-- end -->"
        )

    def written(match: re.Match[str]) -> str:
        words = match["words"]
        return f"<!-- tables.py {words} -->\n\n{render(words).strip()}\n\n<!-- end -->"

    def number(match: re.Match[str]) -> str:
        words = match["words"]
        return f"<!-- {words} -->{render(words).strip()}<!-- /cell -->"

    return _CELL.sub(number, _MARKED.sub(written, text))
