"""Text files of triples, read by pandas."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from curvlab.data.files.tables import ROLES, Table, read_table
from curvlab.errors import UsageError

COLUMNS = ("head", "relation", "tail")


def read_triples(
    path: Path,
    columns: Sequence[str] = COLUMNS,
    separator: str = "tab",
    header: bool | None = False,
) -> pd.DataFrame:
    r"""Read a text file in UTF-8, which may be compressed (`.gz`).

    Spaces around names do not count; nothing else of a name is changed, quotes are part of it.

    Args:
        path: The file.
        columns: the order of head, relation and tail.
        separator: one of `curvlab.data.files.tables.SEPARATORS`, of which a line has two.
        header: whether the first line names the columns; None: refuse one that looks like it.

    Returns:
        Texts in the columns head, relation and tail; the index numbers the lines.

    Raises:
        UsageError: The file is not such a text, or a line is not three names.
    """
    frame = read_table(path, separator, plain=True).frame
    if frame.shape[1] != 3:
        raise UsageError(
            f"{path} has {frame.shape[1]} columns: write {', '.join(columns)} in every line, "
            f"separated by {separator}s."
        )
    frame = frame.set_axis(list(columns), axis=1).fillna("")
    frame = frame.apply(lambda names: names.str.strip(" ")).iloc[int(header is True) :]
    table = Table(path, frame)
    for column in columns:
        table.refuse(frame[column].eq(""), column, "is no name: write one")
    table.check()
    named = {"subject", "object", *ROLES["source"], *ROLES["relation"], *ROLES["target"]}
    if header is None and {name.casefold() for name in frame.iloc[0]} <= named:
        raise UsageError(
            f"the first line of {path}, {' '.join(frame.iloc[0])!r}, looks like a header: skip the "
            "first line of every file by header=True, or take it for a triple by header=False."
        )
    return frame[list(COLUMNS)]
