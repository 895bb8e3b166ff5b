"""Names of columns: their roles, the two ends of an edge, and their form on the command line."""

import re
from collections.abc import Iterable, Sequence
from itertools import permutations

ROLES = {
    "weight": ("weight", "weights", "w", "value", "strength"),
    "relation": ("relation", "predicate", "rel"),
    "id": ("id", "node", "nodeid"),
    "label": ("label", "class", "y", "category"),
    "split": ("split", "part", "subset"),
}
"""Names of columns by role, as `plain_name` writes them."""

ENDS = {
    "source": ("target", "destination", "dest", "sink"),
    "src": ("dst", "dest", "tgt", "trg", "target"),
    "from": ("to",),
    "head": ("tail",),
    "parent": ("child",),
    "citing": ("cited",),
    "cites": ("cited",),
    "origin": ("destination", "dest"),
    "start": ("end",),
    "sender": ("receiver", "recipient"),
    "follower": ("followee", "followed", "following"),
    "subject": ("object",),
    "buyer": ("seller",),
    "who": ("whom",),
    "left": ("right",),
    "first": ("second",),
    "u": ("v",),
    "i": ("j",),
    "a": ("b",),
    "1": ("2",),
    "0": ("1",),
}
"""Words for the first end of an edge, with the words for the second end."""

NO_TEXTS = ("null", "true", "false", "nan", "inf")
"""Words that Hydra reads as values of another type."""

NUMBERED = re.compile(r"column (\d+)")
"""Names of columns without a header."""


def plain_name(name: str) -> str:
    """The name of a column in lower case, without signs and blanks."""
    return re.sub(r"[\W_]", "", str(name)).casefold()


def columns_by_role(columns: Iterable[str], excluded_names: Sequence[str] = ()) -> dict[str, str]:
    """Columns by role, found by name; the first existing name of a role counts."""
    plain_columns = {plain_name(name): name for name in reversed([*columns])}
    roles = {}
    for role, names in ROLES.items():
        for name in names:
            if name in plain_columns and name not in excluded_names:
                roles[role] = plain_columns[name]
                break
    return roles


def find_ends(columns: Sequence[str]) -> list[str]:
    """The first two columns named as the two ends of an edge, such as from and to; or none."""
    words = {name: _split_words(name) for name in columns}
    for first, second in permutations(columns, 2):
        if _are_ends(words[first], words[second]):
            return [first, second]
    return []


def _split_words(name: str) -> list[str]:
    """The words of a name such as `sourceAirport1`, in lower case."""
    spaced = re.sub(r"([a-z])([A-Z0-9])|([A-Za-z])(\d)", r"\1\3 \2\4", str(name))
    return re.sub(r"[\W_]+", " ", spaced).casefold().split()


def _are_ends(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two names differ in one word: a first end's word and its counterpart."""
    if len(first) != len(second):
        return False
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    if len(pairs) != 1:
        return False
    ((word, counterpart),) = pairs
    return counterpart in ENDS.get(word, ())


def quote_name(name: str) -> str:
    """Quote the name of a column for a message; `column 1` stays without quotes."""
    return name if NUMBERED.fullmatch(name) else repr(name)


def hydra_list(names: Sequence[str]) -> str:
    """Format a list of columns for the command line."""
    return f"[{','.join(map(_hydra_text, names))}]"


def _hydra_text(name: str) -> str:
    numbered = NUMBERED.fullmatch(name)
    if numbered:
        return numbered[1]
    is_word = re.fullmatch(r"[A-Za-z_./~][\w./~+-]*", name, re.ASCII)
    if is_word and name.casefold() not in NO_TEXTS:
        return name
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
