"""Lists of triples: which columns have the head, the relation and the tail."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from curvlab.data.readers.column_names import find_ends, plain_name, quote_name
from curvlab.data.readers.edge_headers import RARE
from curvlab.data.readers.edge_lists import SHARED
from curvlab.data.readers.endings import ending_of
from curvlab.data.readers.tables import Table, check_file, read_table
from curvlab.data.readers.texts import read_text
from curvlab.errors import UsageError

TRIPLE = {
    "head": "head h subject subj sub s source src from entity1 e1 node1 start",
    "relation": "relation r predicate pred p rel relationship relationtype type kind edge edgetype "
    "metaedge property label link verb interaction",
    "tail": "tail t object obj o target dst to entity2 e2 node2 end",
}
"""Names of the columns of triples, as `plain_name` writes them."""

N_TRIPLE = re.compile(
    r"\s*(<[^>]*>|_:\S+)\s+(<[^>]*>)\s+"
    r'(<[^>]*>|_:\S+|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?)\s*\.\s*(?:#.*)?'
)


class TripleFile(NamedTuple):
    """A list of triples.

    Attributes:
        table: a table with columns `head`, `relation` and `tail`.
        line: a description of the file.
        headed: whether its first line, or its format, names the columns.
        ordered: whether neither names nor options say which column has the relation.
    """

    table: Table
    line: str
    headed: bool = False
    ordered: bool = False


def triple_table(
    path: Path,
    columns: Sequence[str | int] | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> TripleFile:
    """Read a list of triples.

    Args:
        path: The file.
        columns: The words head, relation and tail in the order of the file, or the names or
            numbers of these columns in the file. If its header has these words, they are names.
        separator: Name of the separator; None: guess.
        header: Whether the first line names the columns; None: guess.
    """
    table = _read_n_triples(path)
    if table is not None:
        return TripleFile(table, "N-Triples", headed=True)
    table = read_table(path, separator, plain=True)
    if table.frame.empty:
        raise UsageError(f"{path} is empty: it must have at least one triple.")
    columns = columns or ()
    order = [*map(str, columns)]
    first = [*table.frame.iloc[0].fillna("").str.strip()]
    roles = triple_roles(first)
    if header is None:
        header = bool(order) and {*columns} <= {*first}
        header = header or (bool(roles) and _names_columns(table.frame, first, roles))
    header_text = "no header"
    if header:
        header_text = "header read"
        table = table.with_header()
    names = [*map(str, table.frame)]
    is_order = sorted(order) == sorted(TRIPLE)
    if is_order and header:
        names_by_word = {plain_name(name): name for name in reversed(names)}
        words = [plain_name(name) for name in names]
        if {*order} <= {*words}:
            order = [*TRIPLE] if words == order else order
            columns = [names_by_word[word] for word in order]
            is_order = False
    if columns and not is_order:
        triple_columns = table.names_of(columns)
        table.has(triple_columns, "columns")
        table.check()
    elif not columns and header and roles:
        triple_columns = [names[roles[role]] for role in TRIPLE]
    elif len(names) != 3:
        raise UsageError(
            f"{path} has {len(names)} columns: write head, relation and tail in every line, or "
            "name three by columns=[HEAD,RELATION,TAIL], as 1, 2, 3 without a header."
        )
    else:
        order = order or [*TRIPLE]
        triple_columns = [names[order.index(role)] for role in TRIPLE]
    if table.frame.empty:
        raise UsageError(
            f"{path} has a header alone: write at least one triple below it, or read the line as a "
            "triple by header=False."
        )
    form = "; ".join((header_text, *table.form))
    pairs = zip(TRIPLE, triple_columns, strict=True)
    line = f"{', '.join(f'{role} {quote_name(name)}' for role, name in pairs)} ({form})"
    ignored = [name for name in names if name not in triple_columns]
    if ignored:
        line += f"; not used: {', '.join(ignored)}"
    frame = table.frame[triple_columns].set_axis([*TRIPLE], axis=1)
    is_ordered = not columns and not (header and roles)
    return TripleFile(table.replace(frame=frame), line, header, is_ordered)


def triple_roles(names: Sequence[str]) -> dict[str, int]:
    """Positions of the columns head, relation and tail by their names; empty if one is missing.

    The ends may also be called as those of an edge are.
    """
    roles = {}
    plain = [plain_name(name) for name in names]
    for role, text in TRIPLE.items():
        usual = text.split()
        positions = [i for i, name in enumerate(plain) if name in usual]
        if positions:
            roles[role] = positions[0]
    ends = find_ends(names) if len({*names}) == len(names) else []
    if ends and _are_words(ends) and not {"head", "tail"} <= roles.keys():
        roles |= {"head": names.index(ends[0]), "tail": names.index(ends[1])}
    is_triple = len({*roles.values()}) == len(TRIPLE)
    return {role: roles[role] for role in TRIPLE} if is_triple else {}


def _names_columns(frame: pd.DataFrame, first: Sequence[str], roles: dict[str, int]) -> bool:
    """Whether a first line that can name the columns does so.

    It does if its relation is in no other line, or if its ends are words and in no other line.
    """
    below = frame.iloc[1:]
    if below.empty:
        return _are_words([first[position] for position in roles.values()])
    relation = roles["relation"]
    if not below.iloc[:, relation].eq(first[relation]).any():
        return True
    ends = [roles["head"], roles["tail"]]
    words = [first[end] for end in ends]
    return _are_words(words) and not below.iloc[:, ends].isin(words).any(axis=None)


def _are_words(names: Sequence[str]) -> bool:
    """Whether all names have three letters or more and no digits, which `e1` and `s` have not."""
    return all(len(name) > 2 and name.isalpha() for name in map(plain_name, names))


def has_unknown_header(triples: pd.DataFrame) -> bool:
    """Whether the first triple seems to name the columns, by words that are no usual names.

    None of them is in another triple, although all other relations have two triples or more, and
    few triples have two entities without another triple.
    """
    first = [*triples.iloc[0]]
    below = triples.iloc[1:]
    ends = below[["head", "tail"]]
    if len({*first}) < len(first) or pd.to_numeric(pd.Series(first), errors="coerce").notna().any():
        return False
    if below.isin(first).any(axis=None) or len(below) < 2:
        return False
    counts = pd.Series(ends.to_numpy(object).ravel()).value_counts()
    is_alone = ends.apply(lambda names: names.map(counts)).eq(1).all(axis=1)
    return bool(below["relation"].value_counts().min() > 1 and is_alone.mean() < RARE)


def order_of_columns(triples: pd.DataFrame) -> tuple[int, ...]:
    """Numbers of the columns of head, relation and tail if they are in an unusual order; or none.

    The ends are two neighbours with common values. The column beside them has fewer values than
    they have, and none of theirs.
    """
    values = [{*triples[column].unique()} for column in triples]
    for head, relation, tail in ((0, 2, 1), (1, 0, 2)):
        fewest = min(len(values[head]), len(values[tail]))
        common = len(values[head] & values[tail]) / max(3, fewest)
        is_rare = len(values[relation]) < fewest and 2 * len(values[relation]) <= len(triples)
        ends = values[head] | values[tail]
        if common >= SHARED and is_rare and not values[relation] & ends:
            return (head + 1, relation + 1, tail + 1)
    return ()


def _read_n_triples(path: Path) -> Table | None:
    """Triples from lines `<a> <b> <c> .`, without the brackets; None for other files."""
    check_file(path, "triples")
    rows = dict[int, list[str]]()
    text, _ = read_text(path)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = N_TRIPLE.fullmatch(line)
        if not match and not rows:
            return None
        if not match:
            raise UsageError(f"{path}, line {number}: {line[:60]!r} is not `<a> <b> <c> .`.")
        rows[number] = [re.sub(r"^<(.*)>$", r"\1", name) for name in match.groups()]
    if not rows and ending_of(path) != ".nt" and re.search(r"(?m)^[ \t]*#\S", text):
        return None  # names that start with #
    if not rows:
        raise UsageError(f"{path} is empty: it must have at least one triple.")
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*TRIPLE], dtype=str)
    return Table(path, frame)
