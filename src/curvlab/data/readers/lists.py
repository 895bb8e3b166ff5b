"""Lists of edges and of triples: which line names the columns, and which columns they have."""

import re
from collections.abc import Iterable, Sequence
from itertools import combinations, permutations
from pathlib import Path
from textwrap import shorten

import numpy as np
import pandas as pd

from curvlab.data.readers.tables import Table, check_file, read_table
from curvlab.data.readers.texts import read_text, split_lines
from curvlab.errors import UsageError

ROLES = {
    "weight": ("weight", "weights", "w", "value", "strength"),
    "relation": ("relation", "predicate", "rel"),
    "id": ("id", "node", "nodeid"),
    "label": ("label", "class", "y", "category"),
    "split": ("split", "part", "subset"),
}
"""Names of columns, in any case, without blanks and signs."""

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
"""Words for the first end of an edge, and those for its second."""

TRIPLE = {
    "head": "head h subject subj s source src from entity1 e1 node1 start",
    "relation": "relation r predicate pred p rel relationship type edge edgetype property label",
    "tail": "tail t object obj o target dst to entity2 e2 node2 end",
}
"""Names of the columns of triples, in any case, without blanks and signs."""

N_TRIPLE = re.compile(
    r"\s*(<[^>]*>|_:\S+)\s+(<[^>]*>)\s+"
    r'(<[^>]*>|_:\S+|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?)\s*\.\s*(?:#.*)?'
)

UNNAMED = "Unnamed: 0"  # pandas's name of a first column without one
KEEP = "dataset.source.header=false takes it for an edge"

NUMBERING = ("column1", "unnamed0", "index", "row", "rownames", "no", "nr")
"""Names of a first column that numbers the rows, as `plain_name` has them."""

ARROWS = ("->", "<->", "<-", "--", "-->", "=>", "→", "—")
"""Signs between the two ends of an edge."""

MOST_KINDS = 10
"""Different texts of a third column that says of which kind an edge is."""

SHARED = 0.5
"""Share of one column's values that another one has, if both are ends of edges."""


def plain_name(name: str) -> str:
    """The name of a column without signs, blanks and capitals."""
    return re.sub(r"[\W_]", "", str(name)).casefold()


def named_columns(columns: Iterable[str], excluded_names: Sequence[str] = ()) -> dict[str, str]:
    """Columns by role, found by name; the first existing name of a role counts."""
    plain = {plain_name(name): name for name in reversed([*columns])}
    roles = {}
    for role, names in ROLES.items():
        candidates = [name for name in names if name in plain and name not in excluded_names]
        if candidates:
            roles[role] = plain[candidates[0]]
    return roles


def named_ends(columns: Sequence[str]) -> list[str]:
    """The first two columns whose names are those of an edge's two ends, such as from and to."""
    words = {}
    for name in columns:
        spaced = re.sub(r"([a-z])([A-Z0-9])|([A-Za-z])(\d)", r"\1\3 \2\4", str(name))
        words[name] = re.sub(r"[\W_]+", " ", spaced).casefold().split()
    for first, second in permutations(columns, 2):
        if _are_ends(words[first], words[second]):
            return [first, second]
    return []


def _are_ends(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two names differ in one word, which is that of an edge's first and second end."""
    if len(first) != len(second):
        return False
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    if len(pairs) != 1:
        return False
    ((word, counterpart),) = pairs
    return counterpart in ENDS.get(word, ())


def read_header(table: Table, header: bool | None, nodes: Table | None = None) -> tuple[Table, str]:
    """Take the first line of a list of edges for a header if it is one; say how it was read.

    It is a header if its words are those of two ends, if it has texts above numbers, or if its two
    names are in no other line.
    """
    if table.headed or table.frame.empty:  # by its format
        return table, ""
    first = [*table.frame.iloc[0].fillna("").str.strip()]
    names = _commented_header(table) if header is None else []
    if names:
        frame = table.frame.rename(columns=dict(zip(table.frame.columns, names, strict=False)))
        return table.replace(frame=frame, headed=True), "header in a comment"
    below = table.frame.iloc[1:]
    if header is None and _numbers_rows(first, below):
        header = True
    if header is None and _counts_edges(table.frame):
        counts = f"first line {' '.join(first)} has counts (guess: {KEEP})"
        return table.replace(frame=below), counts
    is_guess = False
    if header is None and len(first) > 1 and "" not in first[:2]:
        header, is_guess = _looks_like_header(table, first, below, nodes)
    if not header:
        return table, "no header"
    return table.with_header(), f"header read (guess: {KEEP})" if is_guess else "header read"


def _looks_like_header(
    table: Table, first: Sequence[str], below: pd.DataFrame, nodes: Table | None
) -> tuple[bool, bool]:
    """Whether the first line of a list of edges names its columns, and whether that is a guess."""
    ends = named_ends(first)
    if len({*first}) < len(first) and not ends:
        return False, False
    if ends and all(len(name) > 1 for name in ends):
        positions = [first.index(name) for name in ends]
        return not below.iloc[:, positions].isin(ends).any(axis=None), False
    if below.iloc[:, :2].isin(first[:2]).any(axis=None):
        return False, False
    if nodes is not None:
        return not any(nodes.texts(name).isin(first[:2]).any() for name in nodes.frame), False
    is_text = pd.to_numeric(pd.Series(first), errors="coerce").isna().to_numpy()
    top = Table(table.path, below.head(1000), form=table.form)
    numbers_below = np.array([top.parsed(c).notna().all() for c in top.frame]) & (len(below) > 0)
    is_name = is_text & numbers_below
    if bool(is_name[:2].all() or is_name[2:3].any()):
        return True, False
    is_guess = bool(is_text[:2].all()) and _pairs_are_rare(below)
    return is_guess, is_guess


def _numbers_rows(first: list[str], below: pd.DataFrame) -> bool:
    """Whether the first column has row numbers: pandas and R name every column except that one."""
    unnamed = first[0] in ("", UNNAMED) and "" not in first[1:]
    return unnamed and bool(below.iloc[:, 0].notna().all())


def _counts_edges(frame: pd.DataFrame) -> bool:
    """Whether the first line gives the numbers of nodes and edges of the lines below."""
    first = frame.iloc[0].dropna()
    below = frame.iloc[1:]
    if len(first) not in (2, 3) or not first.str.fullmatch(r"\d+").all() or len(below) < 2:
        return False
    nodes = len(pd.unique(below.iloc[:, :2].to_numpy(object).ravel()))
    return int(first.iloc[-1]) == len(below) and {*first.iloc[:-1].astype(int)} == {nodes}


def _pairs_are_rare(below: pd.DataFrame) -> bool:
    """Whether fewer than one edge in twenty joins two nodes that no other edge has."""
    ends = below.iloc[:, :2].astype("str")
    counts = pd.Series(ends.to_numpy(object).ravel()).value_counts()
    single = ends.apply(lambda names: names.map(counts)).eq(1).all(axis=1)
    return len(below) > 1 and float(single.mean()) < 0.05


def _commented_header(table: Table) -> list[str]:
    """Names in the last comment, if they name two ends and are as many as the columns."""
    for line in table.comments[-1:]:
        if not line.strip():
            continue
        separator = table.form[0].split()[1]
        for name in (separator, "tab", "comma", "space"):
            (fields,) = split_lines([line.strip()], name)
            names = [field.strip() for field in fields]
            if 1 < len(names) <= table.frame.shape[1] and named_ends(names):
                return names
    return []


def edge_columns(
    table: Table, ends: Sequence[str | int] | None, weighted: bool, header: str
) -> tuple[Table, str]:
    """A table of columns `source`, `target` and perhaps `weight`, and how it was read."""
    frame = table.frame
    guess = ""
    if frame.shape[1] < 2 or frame.empty:
        raise UsageError(
            f"{table.path} has no edges: write two ids in every line, as in a,b, or name another "
            "separator by separator=tab, semicolon, space or bar."
        )
    _refuse_matrix(table)
    frame = frame.loc[:, [not _is_arrow(frame[name]) for name in frame]]
    numbering = _row_numbers(table)
    if ends is not None:
        end_columns = table.names_of(ends)
        table.has(end_columns, "ends")
        if len({*end_columns}) != 2:
            table.faults.append(f"ends={end_columns} must name two columns of {table.path}")
        table.check()
    else:
        _refuse_blanks_in_names(table)
        end_columns = named_ends([*frame]) if table.headed else []
        if not end_columns:
            end_columns, guess = _shared_columns(frame.drop(columns=numbering))
    rest = [str(name) for name in frame if name not in end_columns]
    if "relation" in named_columns(rest):
        raise UsageError(
            f"{table.path} has a column of relations, as a knowledge graph has: use "
            "dataset=kg_folder dataset.source.path=FOLDER (train.txt, valid.txt, test.txt), or add "
            "dataset.source.test_share=0.1 dataset.source.valid_share=0.1, which draw their parts."
        )
    rest = [name for name in rest if name not in numbering]
    weight = _weight_columns(table, rest)
    source, target = map(_format_name, end_columns)
    form = "; ".join(filter(None, (header, *table.form)))
    line = f"edges: {source} - {target}{guess}"
    if form:
        line += f" ({form})"
    line += f"; weight: {_format_name(weight[0]) if weighted and weight else 'none'}"
    unused = [name for name in rest if not weighted or name not in weight]
    if unused:
        line += f"; not used: {shorten(', '.join(unused), 160, placeholder=' ...')}"
    if weight and not weighted:
        line += f" (dataset.source.weighted=true takes {_format_name(weight[0])} as weights)"
    frame = frame[[*end_columns, *weight]] if weighted else frame[end_columns]
    if weighted and not weight:
        table.faults.append(
            f"weighted=True, but {table.path} has no third column: write the weight there, or "
            "drop the option"
        )
    names = ["source", "target", "weight"][: frame.shape[1]]
    return table.replace(frame=frame.set_axis(names, axis=1)), line


def _weight_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """The column of weights among these, by its name, or else the first one of numbers."""
    by_name = named_columns(columns).get("weight")
    if by_name:
        return [by_name]
    for name in columns:
        if not table.blank(name).all() and not table.is_text(name):
            return [name]
    return []


def _refuse_blanks_in_names(table: Table) -> None:
    """Refuse a list of edges whose names seem to have blanks that nothing marks."""
    frame = table.frame
    columns = [str(name) for name in frame if re.fullmatch(r"column \d+", str(name))]
    if table.headed or not table.form[0].startswith("separator space"):
        return
    texts = [name for name in columns[2:4] if table.is_text(name)]
    of_text = any(table.is_text(name) for name in columns[:2])
    kinds = frame[columns[2]].nunique() if len(columns) == 3 else MOST_KINDS + 1
    if texts and of_text and kinds > MOST_KINDS:
        raise UsageError(
            f"{table.path} has {len(columns)} words in a line, as if names had blanks: write "
            "names with blanks in quotes, or with tabs or commas between them; ends=[1,2] takes "
            "the first two words."
        )


def _refuse_matrix(table: Table) -> None:
    """Refuse a matrix with a row and a column for each node."""
    values = table.frame.drop(columns=_row_names(table))
    size = len(values)
    if values.shape[1] != size or size < 4:
        return
    numbers = values.apply(pd.to_numeric, errors="coerce").to_numpy(float)
    if np.isin(numbers, (0, 1)).all() or np.array_equal(numbers, numbers.T):
        raise UsageError(
            f"{table.path} has {size} rows and {size} columns, as an adjacency matrix has: write "
            "one line per edge, by networkx.write_edgelist of networkx.from_numpy_array(matrix)"
        )


def _row_names(table: Table) -> list[str]:
    """The first column, if the header has no name for it."""
    first = [str(name) for name in table.frame.columns[:1]]
    return first if table.headed and first in (["column 1"], [UNNAMED]) else []


def _row_numbers(table: Table) -> list[str]:
    """The first column, if it numbers the rows and has no name or is called the index."""
    frame = table.frame
    if not table.headed or frame.shape[1] < 3 or plain_name(frame.columns[0]) not in NUMBERING:
        return []
    numbers = pd.to_numeric(frame.iloc[:, 0], errors="coerce").to_numpy(float)
    rows = np.arange(len(numbers))
    is_count = any(np.array_equal(numbers, rows + start) for start in (0, 1))
    return [str(frame.columns[0])] if is_count else _row_names(table)


def _is_arrow(column: "pd.Series[str]") -> bool:
    """Whether a column has a sign between two ends in every line, such as ->."""
    return bool(column.isin(ARROWS).all())


def _shared_columns(frame: pd.DataFrame) -> tuple[list[str], str]:
    """The first two columns, or if they share no value the two that share most of theirs."""
    first = [*map(str, frame.columns[:2])]
    values = {name: {*frame[name].dropna().astype("str")} for name in frame.columns[:12]}

    def share(pair: Sequence[str]) -> float:
        sizes = [len(values[name]) for name in pair]
        return len(values[pair[0]] & values[pair[1]]) / max(3, min(sizes))

    best = max(combinations(values, 2), key=share)
    if share(first) > 0 or share(best) < SHARED:
        return first, ""
    return [*best], f" (guess: dataset.source.ends={hydra_list(first)})"


def hydra_list(names: Sequence[str]) -> str:
    """Format a list of names for the command line."""
    return f"[{','.join(hydra_text(name) for name in names)}]"


def hydra_text(text: str) -> str:
    """Format a text for the command line, in quotes if necessary."""
    numbered = re.fullmatch(r"column (\d+)", text)
    if numbered:
        return numbered[1]
    if re.fullmatch(r"[A-Za-z_./~][\w./~+-]*", text, re.ASCII) and text.casefold() not in NO_TEXTS:
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


NO_TEXTS = ("null", "true", "false", "nan", "inf")


def _format_name(name: str) -> str:
    return name if re.fullmatch(r"column \d+", name) else repr(name)


def triple_table(
    path: Path,
    columns: Sequence[str | int] | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> tuple[Table, str]:
    """A table of columns `head`, `relation` and `tail`, and how it was read.

    `columns` are these three in the order of the file, or the file's columns for them.
    """
    table = _read_n_triples(path)
    if table is not None:
        return table, "N-Triples"
    table = read_table(path, separator, plain=True)
    if table.frame.empty:
        raise UsageError(f"{path} is empty: it must have at least one triple.")
    first = [*table.frame.iloc[0].fillna("").str.strip()]
    by_user = columns or ()
    order = [*map(str, by_user)]
    by_name = bool(order) and sorted(order) != sorted(TRIPLE)
    roles = triple_roles(first)
    if header is None:
        header = by_name and {*order} <= {*first}
        if roles and not header:
            place = roles["relation"]
            below = table.frame.iloc[1:, place]
            header = not bool(below.eq(first[place]).any())
    header_text = "header read" if header else "no header"
    table = table.with_header() if header else table
    names = [*map(str, table.frame)]
    if by_name:
        triple_columns = table.names_of(by_user)
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
        triple_columns = [names[(order or [*TRIPLE]).index(role)] for role in TRIPLE]
    unused = [name for name in names if name not in triple_columns]
    form = "; ".join((header_text, *table.form))
    line = f"{' - '.join(map(_format_name, triple_columns))} ({form})"
    if unused:
        line += f"; not used: {', '.join(unused)}"
    frame = table.frame[triple_columns].set_axis([*TRIPLE], axis=1)
    return table.replace(frame=frame), line


def triple_roles(names: Sequence[str]) -> dict[str, int]:
    """Positions of head, relation and tail among names of columns, or nothing."""
    roles = {}
    for role, usual in TRIPLE.items():
        places = [i for i, name in enumerate(names) if plain_name(name) in usual.split()]
        if not places:
            return {}
        roles[role] = places[0]
    return roles


def _read_n_triples(path: Path) -> Table | None:
    """Triples as `<a> <b> <c> .`, without the brackets; None for other files."""
    check_file(path, "triples")
    rows = dict[int, list[str]]()
    lines = read_text(path)[0].split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = N_TRIPLE.fullmatch(line)
        if not match and not rows:
            return None
        if not match:
            raise UsageError(f"{path}, line {number}: {line[:60]!r} is not `<a> <b> <c> .`.")
        rows[number] = [re.sub(r"^<(.*)>$", r"\1", name) for name in match.groups()]
    return Table(path, pd.DataFrame.from_dict(rows, orient="index", columns=[*TRIPLE], dtype=str))
