"""Names with blanks in lists whose separator is a blank too, as networkx writes them."""

from collections import Counter
from collections.abc import Iterable, Sequence

from curvlab.errors import UsageError

LONGEST = 6
"""The most words of a name."""

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
        possible = [
            {name for name in starts if _split(row[len(name.split()) :], names) is not None}
            for row, starts in zip(rows, first, strict=True)
        ]
        if possible == first:
            break
        first = possible
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
    """Words as a sequence of names, the longest first; None if they are no such sequence."""
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
        names = {name for place in range(1, len(row)) for name in _cut(row, place)}
        counts.update(names)

    def frequency(pair: tuple[str, str]) -> int:
        return counts[pair[0]] * counts[pair[1]]

    pairs = list[tuple[str, str]]()
    for row in lines:
        if len(row) < 2:
            raise UsageError(REMEDY)
        candidates = [_cut(row, place) for place in range(1, len(row))]
        pairs.append(max(candidates, key=frequency))
    return pairs


def _cut(row: Sequence[str], place: int) -> tuple[str, str]:
    """The words before a place and those from it on, as two names."""
    return " ".join(row[:place]), " ".join(row[place:])
