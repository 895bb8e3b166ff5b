"""A user's own knowledge graph: a folder of files of triples."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.checksums import checksum
from curvlab.data.datasets.triples import MASKS, check_triples
from curvlab.data.files.triple_files import COLUMNS, read_triples
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError
from curvlab.options import Fraction, Incidental, Seed

log = logging.getLogger(__name__)

FILES = {"train": "train.txt", "val": "valid.txt", "test": "test.txt"}


@dataclass(eq=False)
class TripleFolder(Checked):
    """A folder with `train.txt`, `valid.txt` and `test.txt`, each of which may end in `.gz`.

    A line is head, relation and tail, separated by tabs. Entities and relations are numbered by
    first appearance over the three files. A triple that `train.txt` has more than once counts once.
    Where there is no `valid.txt`, a share of the training triples can be drawn for validation; only
    those are whose entities and relation are in others that stay.

    Args:
        path: of the folder.
        unseen: refuse or keep validation and test triples with an entity that no training triple
            has, whose embedding nothing trains.
        columns: order of head, relation and tail in a line.
        separator: between the columns.
        header: true: the first line of every file names the columns; false: it is a triple; null:
            refuse a first line that looks like a header.
        valid_share: share of train.txt's triples that are drawn for validation; null: there is a
            valid.txt.
        seed: of their draw, not of the run.

    Raises:
        UsageError: A value is something else.
    """

    path: Incidental[str | Path] = "data/kg"
    unseen: Literal["refuse", "keep"] = "refuse"
    columns: Sequence[str] = COLUMNS
    separator: Literal["tab", "comma", "semicolon", "space", "bar"] = "tab"
    header: bool | None = None
    valid_share: Fraction | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if sorted(self.columns) != sorted(COLUMNS):
            raise UsageError(
                f"columns={list(self.columns)} must be head, relation and tail in the order of the "
                "files"
            )
        self.folder = Path(self.path).expanduser()

    def download(self) -> list[Path]:
        """Return where the files are, two of them where validation triples are drawn.

        Raises:
            UsageError: One is not there, or has no use.
        """
        files = self.files()
        if self.valid_share is not None and "val" in files:
            raise UsageError(
                f"{files['val']} has the validation triples already: leave valid_share=None, or "
                "take the file away."
            )
        drawn_part = {"val"} if self.valid_share else set()
        missing = [FILES[part] for part in FILES.keys() - files.keys() - drawn_part]
        if missing:
            raise UsageError(
                f"{self.folder} lacks {' and '.join(sorted(missing))} "
                "(or .gz): path=FOLDER names a folder with train.txt, valid.txt and test.txt, one "
                "triple per line; valid_share=0.1 draws validation triples of train.txt."
            )
        return list(files.values())

    def files(self) -> dict[str, Path]:
        """The files that are there, by part."""
        places = {p: [self.folder / name, self.folder / f"{name}.gz"] for p, name in FILES.items()}
        there = {part: [path for path in both if path.is_file()] for part, both in places.items()}
        return {part: paths[0] for part, paths in there.items() if paths}

    @property
    def num_train(self) -> int:
        """Number of training triples.

        Raises:
            UsageError: See `load`.
        """
        return int((self._triples().part == "train").sum())

    def load(self) -> Data:
        """Return the graph.

        Raises:
            UsageError: A file is missing or malformed, its first line looks like a header, a
                relation is in no training triple, or an entity is not and `unseen` is `refuse`.
        """
        triples = self._triples()
        entities = pd.Index(pd.unique(triples[["head", "tail"]].to_numpy(object).ravel()))
        data = graph_of(triples, entities, list(triples.relation.unique()))
        check_triples(data)
        known = data.edge_index[:, data.train_mask].unique()
        unseen = ~torch.isin(data.edge_index, known)
        if unseen.any():
            found = (
                f"{int(unseen.any(dim=0).sum())} validation and test triples have one of "
                f"{len(entities) - len(known)} entities that no training triple has, for instance "
                f"{entities[int(data.edge_index[unseen].min())]!r}"
            )
            if self.unseen == "refuse":
                raise UsageError(
                    f"{found}: take them out of the files, or keep them with "
                    "dataset.source.unseen=keep (their embeddings are not trained)."
                )
            log.warning("%s: their embeddings are not trained", found)
        return data

    def _triples(self) -> pd.DataFrame:
        self.download()
        return self.read(self.valid_share)

    def read(self, valid_share: float | None = None) -> pd.DataFrame:
        """The triples of the files that are there, and their part."""
        files, form = self.files(), (tuple(self.columns), self.separator, self.header)
        content = checksum(list(files.values()))
        return _read(tuple(files.items()), content, *form, valid_share, self.seed)


@lru_cache(maxsize=1)
def _read(
    files: Iterable[tuple[str, Path]],
    content: str | None,  # noqa: ARG001 - another content is another entry
    columns: Sequence[str],
    separator: str,
    header: bool | None,
    valid_share: float | None,
    seed: int,
) -> pd.DataFrame:
    """Triples of files and their part, those of training each once."""
    parts = {part: read_triples(path, columns, separator, header) for part, path in files}
    if "train" in parts:
        every = parts["train"]
        parts["train"] = every.drop_duplicates(ignore_index=True)
        if len(every) > len(parts["train"]):
            repeated = len(every) - len(parts["train"])
            log.warning("%d training triples repeat another one: each counts once", repeated)
    if valid_share is not None:
        train = parts.pop("train")
        taken = draw_validation(train, valid_share, seed)
        parts = {"train": train[~taken], "val": train[taken], **parts}
    return pd.concat([frame.assign(part=part) for part, frame in parts.items()])


def graph_of(triples: pd.DataFrame, entities: pd.Index, relations: Sequence[str]) -> Data:
    """Number triples by names of entities and relations, with a mask for each part."""
    ends = [entities.get_indexer(pd.Index(triples[end])) for end in ("head", "tail")]
    kinds = pd.Index(relations).get_indexer(pd.Index(triples.relation))
    names = tuple(map(str, relations))
    return Data(
        edge_index=torch.from_numpy(np.stack(ends).astype(np.int64)),
        edge_type=torch.from_numpy(kinds.astype(np.int64)),
        num_nodes=len(entities),
        relation_names=list(names),
        vocabulary=Vocabulary(entities=tuple(entities), relations=names),
        **{mask: torch.tensor((triples.part == part).to_numpy()) for part, mask in MASKS.items()},
    )


def read_known_names(
    path: str | Path, entities: Sequence[str], relations: Sequence[str], **options: Any
) -> Data:
    """Read triples by the numbers that a trained model has for their names.

    Args:
        path: of the folder; of its files `train.txt` may be missing, and one of the others.
        entities: names by number.
        relations: likewise.
        **options: of `TripleFolder`, how lines are to be read.

    Returns:
        The triples, with a mask for each part, which may be empty.

    Raises:
        UsageError: there is nothing to score, a line is malformed, or a name is unknown.
    """
    source = TripleFolder(path, **options)
    if not {"val", "test"} & source.files().keys():
        raise UsageError(
            f"{path} has neither {FILES['test']} nor {FILES['val']} (or .gz): write the triples to "
            "score there, one per line"
        )
    triples = source.read()
    for column, known in zip(COLUMNS, (entities, relations, entities), strict=True):
        unknown = triples[column][~triples[column].isin(known)]
        if len(unknown):
            raise UsageError(
                f"{path} has the {column} {unknown.iloc[0]!r}, which the model was not trained on: "
                "take its triples out"
            )
    return graph_of(triples, pd.Index(entities), relations)


def draw_validation(triples: pd.DataFrame, share: float, seed: int) -> np.ndarray:
    """Training triples `[triples]` for validation, `round(share * triples)` or fewer.

    Only a triple whose entities and relation are in others that stay is taken, so that something is
    trained for each.

    Args:
        triples: All of them, each once.
        share: Of those to be taken.
        seed: Of the draw.

    Raises:
        UsageError: None can be taken.
    """
    wanted = max(1, round(share * len(triples)))
    ends = pd.factorize(triples[["head", "tail"]].to_numpy(object).ravel())[0].reshape(-1, 2)
    kinds = pd.factorize(triples.relation)[0]
    entities = np.bincount(np.concatenate([ends[:, 0], ends[ends[:, 0] != ends[:, 1], 1]]))
    relations = np.bincount(kinds)
    taken = np.zeros(len(triples), dtype=bool)
    for number in np.random.default_rng(seed).permutation(len(triples)):
        pair, kind = [*{*ends[number]}], kinds[number]
        if min(*entities[pair], relations[kind]) > 1:
            taken[number] = True
            entities[pair] -= 1
            relations[kind] -= 1
            wanted -= 1
        if not wanted:
            break
    if not taken.any():
        raise UsageError(
            "valid_share=FRACTION: no training triple can be spared, since each has an "
            "entity or a relation of its own: write a valid.txt."
        )
    if wanted:
        log.warning("%d validation triples less than wanted could be drawn", wanted)
    return taken
