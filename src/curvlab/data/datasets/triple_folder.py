"""A user's own knowledge graph: a folder of files of triples."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch_geometric.data import Data

from curvlab.checked import Checked
from curvlab.data.datasets.triples import MASKS, check_triples
from curvlab.data.files.triple_files import (
    Triple,
    TripleFormat,
    check_headers,
    read_triples,
)
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError
from curvlab.options import Fraction, Incidental, Seed

log = logging.getLogger(__name__)

_COUNTS: dict[Any, int] = {}  # of training triples, which a configuration is resolved with often
FILES = {"train": "train.txt", "val": "valid.txt", "test": "test.txt"}


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

    def __init__(
        self,
        path: Incidental[str | Path] = "data/kg",
        unseen: Literal["refuse", "keep"] = "refuse",
        columns: Sequence[str] = ("head", "relation", "tail"),
        separator: Literal["tab", "comma", "semicolon", "space", "bar"] = "tab",
        header: bool | None = None,
        valid_share: Fraction | None = None,
        seed: Seed = 0,
    ) -> None:
        self.path = Path(path).expanduser()
        self.unseen = unseen
        self.kind = TripleFormat(tuple(columns), separator, header)
        self.valid_share = valid_share
        self.seed = seed

    def download(self) -> list[Path]:
        """Return where the files are, two of them where validation triples are drawn.

        Raises:
            UsageError: One is not there, is there twice, or has no use.
        """
        return list(self._files().values())

    @property
    def num_train(self) -> int:
        """Number of training triples, counted once as long as the files stay as they are.

        Raises:
            UsageError: See `load`.
        """
        stats = [path.stat() for path in self.download()]
        stamp = (self.path, tuple((stat.st_size, stat.st_mtime_ns) for stat in stats))
        key = (*stamp, self.kind, self.valid_share, self.seed)
        if key not in _COUNTS:
            _COUNTS[key] = len(self._divided(self._read(self._files()))["train"])
        return _COUNTS[key]

    def load(self) -> Data:
        """Return the graph.

        Raises:
            UsageError: A file is missing or malformed, its first line looks like a header, a
                relation is in no training triple, or an entity is not and `unseen` is `refuse`.
        """
        found = self._read(self._files())
        parts = self._divided(found)
        repeated = len(found["train"]) - len(dict.fromkeys(found["train"]))
        if repeated:
            log.warning("%d training triples repeat another one: each counts once", repeated)
        triples = [triple for part in parts.values() for triple in part]
        entities = dict.fromkeys(name for head, _, tail in triples for name in (head, tail))
        relations = dict.fromkeys(triple.relation for triple in triples)
        entity = {name: number for number, name in enumerate(entities)}
        relation = {name: number for number, name in enumerate(relations)}
        sizes = torch.tensor([len(part) for part in parts.values()])
        part_of = torch.arange(len(parts)).repeat_interleave(sizes)
        data = Data(
            edge_index=torch.tensor([[entity[h], entity[t]] for h, _, t in triples]).T.contiguous(),
            edge_type=torch.tensor([relation[r] for _, r, _ in triples]),
            num_nodes=len(entity),
            relation_names=list(relation),
            vocabulary=Vocabulary(entities=tuple(entity), relations=tuple(relation)),
            **{mask: part_of == i for i, mask in enumerate(MASKS.values())},
        )
        check_triples(data)
        if self.unseen == "refuse":
            self._check_entities(data, list(entity))
        return data

    def parts(self) -> dict[str, list[Triple]]:
        """The triples of each file that is there.

        Raises:
            UsageError: a line is malformed, or a first line looks like a header.
        """
        files = {part: self._file(name) for part, name in FILES.items()}
        return self._read({part: path for part, path in files.items() if path.is_file()})

    def _read(self, files: dict[str, Path]) -> dict[str, list[Triple]]:
        """The triples of each file."""
        found = {part: read_triples(path, self.kind) for part, path in files.items()}
        if self.kind.header is None:
            check_headers({files[part]: triples for part, triples in found.items()})
        return found

    def _divided(self, found: dict[str, list[Triple]]) -> dict[str, list[Triple]]:
        """Triples of training, each once, of validation and of test."""
        train = list(dict.fromkeys(found["train"]))
        if self.valid_share is None:
            return {"train": train, "val": found["val"], "test": found["test"]}
        train, val = drawn(train, self.valid_share, self.seed)
        return {"train": train, "val": val, "test": found["test"]}

    def _files(self) -> dict[str, Path]:
        """Where the file of each part is."""
        files = {part: self._file(name) for part, name in FILES.items()}
        if self.valid_share is not None and files["val"].is_file():
            raise UsageError(
                f"{files['val']} has the validation triples already: leave "
                "valid_share=None, or take the file away."
            )
        if self.valid_share is not None:
            del files["val"]
        for part, path in files.items():
            if not path.is_file():
                drawn_instead = ", or draw validation triples of train.txt by valid_share=0.1"
                raise UsageError(
                    f"{path} is missing: path=FOLDER names a folder with "
                    f"{', '.join(FILES.values())} (or .gz), a triple a line"
                    f"{drawn_instead if part == 'val' else ''}."
                )
        return files

    def _file(self, name: str) -> Path:
        plain, packed = self.path / name, self.path / f"{name}.gz"
        if plain.is_file() and packed.is_file():
            raise UsageError(f"{plain} is there with and without .gz: take one of them away.")
        return packed if packed.is_file() else plain

    def _check_entities(self, data: Data, names: list[str]) -> None:
        known = torch.zeros(len(names), dtype=torch.bool)
        known[data.edge_index[:, data.train_mask]] = True
        unseen = (~known[data.edge_index]).any(dim=0)
        if unseen.any():
            first = names[int((~known).nonzero()[0])]
            raise UsageError(
                f"{int(unseen.sum())} validation and test triples have one of "
                f"{int((~known).sum())} entities that no training triple has, for instance "
                f"{first!r}: take them out of the files, or keep them with "
                "unseen=keep (they can only be guessed)."
            )


def numbered_triples(
    path: str | Path,
    entities: Sequence[str],
    relations: Sequence[str],
    **options: Any,
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
    found = TripleFolder(path, **options).parts()
    if not {"val", "test"} & found.keys():
        raise UsageError(
            f"{path} has neither {FILES['test']} nor {FILES['val']} (or .gz): write the triples to "
            "score there, a triple a line"
        )
    triples = [triple for part in found.values() for triple in part]
    known = {"entity": entities, "relation": relations}
    number = {what: {name: i for i, name in enumerate(known[what])} for what in known}
    for head, relation, tail in triples:
        for what, name in (("entity", head), ("relation", relation), ("entity", tail)):
            if name not in number[what]:
                raise UsageError(
                    f"{path} has the {what} {name!r}, which the model was not trained on: take its "
                    "triples out"
                )
    part_of = [part for part, some in found.items() for _ in some]
    entity, kind = number["entity"], number["relation"]
    return Data(
        edge_index=torch.tensor([[entity[h], entity[t]] for h, _, t in triples]).T.contiguous(),
        edge_type=torch.tensor([kind[r] for _, r, _ in triples]),
        num_nodes=len(entities),
        relation_names=list(relations),
        **{mask: torch.tensor([at == part for at in part_of]) for part, mask in MASKS.items()},
    )


def drawn(triples: Sequence[Triple], share: float, seed: int) -> tuple[list[Triple], list[Triple]]:
    """Training triples that stay, and `round(share * triples)` others, fewer where they do not.

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
    entities = Counter(name for head, _, tail in triples for name in {head, tail})
    relations = Counter(triple.relation for triple in triples)
    taken: set[int] = set()
    for number in np.random.default_rng(seed).permutation(len(triples)).tolist():
        if len(taken) == wanted:
            break
        head, relation, tail = triples[number]
        if min(entities[head], entities[tail], relations[relation]) > 1:
            taken.add(number)
            entities.subtract({head, tail})
            relations[relation] -= 1
    if not taken:
        raise UsageError(
            "valid_share=FRACTION: no training triple can be spared, since each has an "
            "entity or a relation of its own: write a valid.txt."
        )
    if len(taken) < wanted:
        log.warning("only %d of %d validation triples could be drawn", len(taken), wanted)
    stay = [triple for number, triple in enumerate(triples) if number not in taken]
    return stay, [triples[number] for number in sorted(taken)]
