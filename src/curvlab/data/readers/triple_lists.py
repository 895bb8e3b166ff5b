"""Lists of triples: which columns have the head, the relation and the tail."""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from curvlab.data.readers.column_names import plain_name, quote_name
from curvlab.data.readers.tables import Table, check_file, read_table
from curvlab.data.readers.texts import read_text
from curvlab.errors import UsageError

TRIPLE = {
    "head": "head h subject subj s source src from entity1 e1 node1 start",
    "relation": "relation r predicate pred p rel relationship type edge edgetype property label",
    "tail": "tail t object obj o target dst to entity2 e2 node2 end",
}
"""Names of the columns of triples, as `plain_name` writes them."""

N_TRIPLE = re.compile(
    r"\s*(<[^>]*>|_:\S+)\s+(<[^>]*>)\s+"
    r'(<[^>]*>|_:\S+|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?)\s*\.\s*(?:#.*)?'
)


def triple_table(
    path: Path,
    columns: Sequence[str | int] | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> tuple[Table, str]:
    """Read a list of triples.

    Args:
        path: The file.
        columns: The words head, relation and tail in the order of the file, or the names or
            numbers of these columns in the file.
        separator: Name of the separator; None: guess.
        header: Whether the first line names the columns; None: guess.

    Returns:
        A table with columns `head`, `relation` and `tail`, and a description of the file.
    """
    table = _read_n_triples(path)
    if table is not None:
        return table, "N-Triples"
    table = read_table(path, separator, plain=True)
    if table.frame.empty:
        raise UsageError(f"{path} is empty: it must have at least one triple.")
    columns = columns or ()
    order = [*map(str, columns)]
    has_names = bool(order) and sorted(order) != sorted(TRIPLE)
    first = [*table.frame.iloc[0].fillna("").str.strip()]
    roles = triple_roles(first)
    if header is None:
        header = has_names and {*order} <= {*first}
        if roles and not header:
            position = roles["relation"]
            relations = table.frame.iloc[1:, position]
            header = not bool(relations.eq(first[position]).any())
    header_text = "no header"
    if header:
        header_text = "header read"
        table = table.with_header()
    names = [*map(str, table.frame)]
    if has_names:
        triple_columns = table.names_of(columns)
        table.has(triple_columns, "columns")
        table.check()
    elif not order and header and roles:
        triple_columns = [names[roles[role]] for role in TRIPLE]
    elif len(names) != 3:
        raise UsageError(
            f"{path} has {len(names)} columns: write head, relation and tail in every line, or "
            "name three by columns=[HEAD,RELATION,TAIL], as 1, 2, 3 without a header."
        )
    else:
        order = order or [*TRIPLE]
        triple_columns = [names[order.index(role)] for role in TRIPLE]
    form = "; ".join((header_text, *table.form))
    line = f"{' - '.join(map(quote_name, triple_columns))} ({form})"
    ignored = [name for name in names if name not in triple_columns]
    if ignored:
        line += f"; not used: {', '.join(ignored)}"
    frame = table.frame[triple_columns].set_axis([*TRIPLE], axis=1)
    return table.replace(frame=frame), line


def triple_roles(names: Sequence[str]) -> dict[str, int]:
    """Positions of the columns head, relation and tail by their names; empty if one is missing."""
    roles = {}
    plain = [plain_name(name) for name in names]
    for role, text in TRIPLE.items():
        usual = text.split()
        positions = [i for i, name in enumerate(plain) if name in usual]
        if not positions:
            return {}
        roles[role] = positions[0]
    return roles


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
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*TRIPLE], dtype=str)
    return Table(path, frame)
