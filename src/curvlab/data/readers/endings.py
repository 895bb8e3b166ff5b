"""Which reader takes a path: by its ending, and by the files of a folder."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import shorten

from curvlab.errors import UsageError

READERS = {
    "pyg": (".pt", ".pth"),
    "networkx": (".graphml", ".gml", ".gexf", ".net", ".paj", ".adjlist"),
    "graph_folder": (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".el", ".dat", ".parquet"),
    "kg_folder": (".nt",),
}
"""Data sets that read a user's file, by its ending, `.gz` left out."""

PACKED = dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".zst"), "unpack it")

WAYS_OUT = PACKED | {
    ".mtx": "read it by scipy.io.mmread and write its row and col as the lines of edges.csv",
    ".json": "read it by networkx.node_link_graph and write it by networkx.write_graphml",
    ".xlsx": "save the sheet with the edges as CSV",
    ".xls": "save the sheet with the edges as CSV",
    ".npz": "features.npz of a folder has features; write the edges as edges.csv",
    ".npy": "features.npy of a folder has features; write the edges as edges.csv",
    ".mat": "read it by scipy.io.loadmat and write its edges as edges.csv",
    ".jsonl": "write one line per edge, such as a,b, as edges.csv",
    ".ods": "save the sheet with the edges as CSV",
    ".dot": "read it by networkx.nx_pydot.read_dot and write it by networkx.write_graphml",
    ".gv": "read it by networkx.nx_pydot.read_dot and write it by networkx.write_graphml",
    ".pkl": "write the graph by networkx.write_graphml, or a Data by torch.save as graph.pt",
    ".pickle": "write the graph by networkx.write_graphml, or a Data by torch.save as graph.pt",
}
"""What to do with files that no reader takes, by ending."""

TRIPLES = tuple(f"train.{end}" for end in ("txt", "tsv", "csv", "nt", "txt.gz", "tsv.gz", "csv.gz"))
"""Files that a folder of triples has one of."""

TRIPLE_OPTIONS = ("test_share", "valid_share", "columns", "remove_inverses")
"""Options of a table that only triples have."""


def ending_of(path: str | Path) -> str:
    """The ending of a file in lower case, without `.gz`."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def reader_name(path: str | Path, options: Iterable[str] = ()) -> str:
    """The data set that reads a path; empty if it does not exist and no reader has its ending.

    Args:
        path: Path of a folder or file.
        options: Names of the reader's options, of which some say that a table has triples.
    """
    place = Path(path).expanduser()
    ending = ending_of(path)
    if place.is_dir():
        has_triples = any((place / name).exists() for name in TRIPLES)
        has_edges = any(place.glob("edges.*"))
        return "kg_folder" if has_triples and not has_edges else "graph_folder"
    reader = next((name for name, endings in READERS.items() if ending in endings), "")
    is_refused = "://" in str(path) or ending in WAYS_OUT
    if reader in ("", "graph_folder") and place.is_file() and {*TRIPLE_OPTIONS} & {*options}:
        return "kg_folder"
    if reader:
        return reader
    return "graph_folder" if place.is_file() or is_refused else ""


def refuse_ending(path: str | Path) -> None:
    """Refuse an address and a file that no reader takes, with the way out."""
    if ":/" in str(path):
        raise UsageError(f"{path} is an address: download the file, and give its path.")
    way = WAYS_OUT.get(ending_of(path))
    if way:
        raise UsageError(f"{path} is not read as a graph: {way}.")


def say_unread(folder: Path, files: Iterable[Path], remedy: str) -> list[str]:
    """A line on the data files of a folder that are not among `files`; none if there are none.

    Args:
        folder: Folder of a graph.
        files: Files that are read.
        remedy: What names a file so that it is read.
    """
    endings = {ending for endings in READERS.values() for ending in endings} | {*WAYS_OUT}
    read = {path.resolve() for path in files}
    unread = [
        path.name
        for path in sorted(folder.iterdir())
        if path.is_file() and ending_of(path) in endings and path.resolve() not in read
    ]
    if not unread:
        return []
    return [f"not read: {shorten(', '.join(unread), 160, placeholder=' ...')} ({remedy})"]
