"""A user's knowledge graph: a folder of files of triples."""

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from curvlab.checked import CheckedFields
from curvlab.checksums import checksum
from curvlab.data.datasets.triples import COLUMNS, MASKS, check_triples, read_triples
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError
from curvlab.options import Fraction, Seed, UserFile

log = logging.getLogger(__name__)

FILES = {"train": "train.txt", "val": "valid.txt", "test": "test.txt"}


class TripleFolder(CheckedFields):
    """A folder with `train.txt`, `valid.txt` and `test.txt`, each may end in `.gz`.

    A line is head, relation and tail. Entities and relations are numbered by first appearance over
    the three files. A triple that `train.txt` has more than once counts once. Only triples whose
    entities and relation are in others that stay are drawn for validation.

    Args:
        path: of the folder.
        columns: order of head, relation and tail in a line.
        separator: between the columns.
        header: whether the first line of a file names the columns; null: refuse what looks so.
        valid_share: share of train.txt's triples that is drawn for validation; null: valid.txt.
        seed: of their draw, not of the run.
    """

    revision: ClassVar[int] = 2  # 2: other draws of validation triples
    file_names: ClassVar[tuple[str, ...]] = tuple(
        f"{name}{end}" for name in FILES.values() for end in ("", ".gz")
    )

    path: UserFile[str | Path] = "data/kg"
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
        return {
            part: self.folder / f"{name}{end}"
            for part, name in FILES.items()
            for end in (".gz", "")  # the plain one if there are both
            if (self.folder / f"{name}{end}").is_file()
        }

    @property
    def num_train(self) -> int:
        return int((self.read().part == "train").sum())

    def load(self) -> Data:
        data = numbered_graph(self.read())
        check_triples(data)
        entities = data.vocabulary.entities
        known = data.edge_index[:, data.train_mask].unique()
        unseen = ~torch.isin(data.edge_index, known)
        if unseen.any():
            log.warning(
                "%d validation and test triples have one of %d entities that no training triple "
                "has, for instance %r: their embeddings are not trained",
                int(unseen.any(dim=0).sum()),
                len(entities) - len(known),
                entities[int(data.edge_index[unseen].min())],
            )
        return data

    def read(self) -> pd.DataFrame:
        self.download()
        files, form = self.files(), (tuple(self.columns), self.separator, self.header)
        given = checksum([*files.values()]), form, self.valid_share, self.seed
        return _read(tuple(files.items()), *given)


@lru_cache(maxsize=1)
def _read(
    files: Sequence[tuple[str, Path]],
    content: str | None,  # noqa: ARG001 - another content is another entry
    form: tuple[Sequence[str], str, bool | None],
    valid_share: float | None,
    seed: int,
) -> pd.DataFrame:
    """Triples of files and their part, those of training each once."""
    parts = {part: read_triples(path, *form) for part, path in files}
    if "train" in parts:
        every = parts["train"]
        train = parts["train"] = every.drop_duplicates(ignore_index=True)
        if repeated := len(every) - len(train):
            log.warning("%d training triples repeat another one: each counts once", repeated)
        if valid_share is not None:
            taken = draw_validation(train, valid_share, seed)
            parts = {**parts, "train": train[~taken], "val": train[taken]}
    return pd.concat([parts[part].assign(part=part) for part in FILES if part in parts])


def numbered_graph(triples: pd.DataFrame) -> Data:
    """Number triples by first appearance, with a mask for each part."""
    ends = triples[["head", "tail"]].to_numpy(object)
    numbers, entities = pd.factorize(ends.ravel())
    kinds, relations = pd.factorize(triples["relation"])
    return Data(
        edge_index=torch.from_numpy(numbers.reshape(-1, 2).T.copy()),
        edge_type=torch.from_numpy(kinds),
        num_nodes=len(entities),
        relation_names=[*map(str, relations)],
        vocabulary=Vocabulary(entities=tuple(entities), relations=tuple(map(str, relations))),
        **{mask: torch.tensor((triples.part == part).to_numpy()) for part, mask in MASKS.items()},
    )


def draw_validation(triples: pd.DataFrame, share: float, seed: int) -> np.ndarray:
    """Training triples `[triples]` for validation, `round(share * triples)` or fewer."""
    wanted = max(1, round(share * len(triples)))
    order = np.random.default_rng(seed).permutation(len(triples))
    drawn = triples.iloc[order]
    ends = pd.Series(drawn[["head", "tail"]].to_numpy(object).ravel())
    first = ~np.column_stack(
        [ends.duplicated().to_numpy().reshape(-1, 2), drawn.relation.duplicated()]
    )
    chosen = order[~first.any(axis=1)][-wanted:]  # triples after the first of each of their names
    taken = np.isin(np.arange(len(triples)), chosen)
    if not taken.any():
        raise UsageError(
            "valid_share=FRACTION: no training triple can be spared, since each has an "
            "entity or a relation of its own: write a valid.txt."
        )
    if lacking := wanted - len(chosen):
        log.warning("%d validation triples less than wanted could be drawn", lacking)
    return taken
