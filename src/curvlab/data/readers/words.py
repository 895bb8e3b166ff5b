"""Names with blanks in lists whose separator is a blank too, as networkx writes them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from curvlab.errors import UsageError

LONGEST = 6
"""Words of a name at most."""

REMEDY = (
    "its lines have more words than names, as if names had blanks: write it by networkx with "
    "delimiter='\\t'"
)


def join_names(lines: Iterable[Sequence[str]]) -> list[list[str]]:
    """Names of an adjacency list in which every node begins one line, from its words.

    A line begins with its node, and all its other words are names that begin lines. Of the names
    with which this holds, each line begins with the shortest.
    """
    rows = [*lines]
    first = [{" ".join(row[:n]) for n in range(1, min(LONGEST, len(row)) + 1)} for row in rows]
    while True:
        names = set[str]().union(*first)
        kept = [
            {name for name in starts if _split(row[len(name.split()) :], names) is not None}
            for row, starts in zip(rows, first, strict=True)
        ]
        if kept == first:
            break
        first = kept
    if not all(first):
        raise UsageError(REMEDY)
    heads = [min(starts, key=len) for starts in first]
    joined = list[list[str]]()
    for row, head in zip(rows, heads, strict=True):
        rest = _split(row[len(head.split()) :], {*heads})
        if rest is None:
            raise UsageError(REMEDY)
        joined.append([head, *rest])
    return joined


def _split(words: Sequence[str], names: set[str]) -> list[str] | None:
    """Words as a sequence of names, the longest first; None if they are none."""
    places: list[list[str] | None] = [None] * len(words) + [[]]
    for start in reversed(range(len(words))):
        for end in range(start + 1, min(start + LONGEST, len(words)) + 1):
            rest = places[end]
            name = " ".join(words[start:end])
            if rest is not None and name in names:
                places[start] = [name, *rest]
    return places[0]


def split_pairs(lines: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Two names from the words of each line: those that most lines have in common."""
    counts = Counter[str]()
    for row in lines:
        counts.update({" ".join(part) for cut in range(1, len(row)) for part in _cut(row, cut)})

    def shared(row: Sequence[str], cut: int) -> int:
        one, other = (" ".join(part) for part in _cut(row, cut))
        return counts[one] * counts[other]

    pairs = list[tuple[str, str]]()
    for row in lines:
        if len(row) < 2:
            raise UsageError(REMEDY)
        cut = max(range(1, len(row)), key=lambda at: shared(row, at))
        one, other = (" ".join(part) for part in _cut(row, cut))
        pairs.append((one, other))
    return pairs


def _cut(row: Sequence[str], at: int) -> tuple[Sequence[str], Sequence[str]]:
    return row[:at], row[at:]
