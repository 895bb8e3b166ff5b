"""A user's knowledge graph: a folder of files of triples."""

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from curvlab.checked import CheckedFields
from curvlab.checksums import checksum
from curvlab.data.datasets.own_graph import say_once
from curvlab.data.datasets.triples import MASKS, check_names, check_triples
from curvlab.data.readers.endings import refuse_ending, say_unread
from curvlab.data.readers.texts import Separator
from curvlab.data.readers.triple_lists import (
    has_unknown_header,
    order_of_columns,
    triple_table,
)
from curvlab.data.vocabulary import Vocabulary
from curvlab.errors import UsageError
from curvlab.options import Fraction, Seed, UserFile

log = logging.getLogger(__name__)

PARTS = {"train": "train", "val": "valid", "test": "test"}
ENDINGS = tuple(f"{end}{gz}" for gz in ("", ".gz") for end in (".txt", ".tsv", ".csv", ".nt"))


class TripleFolder(CheckedFields):
    """A folder with `train.txt`, `valid.txt` and `test.txt`, or one file of triples.

    Files may end in `.txt`, `.tsv`, `.csv` or `.nt` (N-Triples), each perhaps with `.gz`. A line is
    head, relation and tail. Separator and header are found and reported. Entities and relations are
    numbered by first appearance over the three files. A training triple that is there more than
    once counts once. Only triples whose entities and relation are in others that stay are drawn for
    validation and test.

    Args:
        path: path of the folder, or of one file.
        columns: three columns of head, relation and tail by name or from 1, or these words in the
            order of a line; null: by the header, else by which column has few values.
        separator: separator of the columns; null: the one that gives as many in every line.
        header: whether the first line of a file names the columns; null: by what it says.
        valid_share: share of the training triples that is drawn for validation; null: valid.txt.
        test_share: share of all triples that is drawn for the test; null: test.txt.
        seed: seed of these draws, not of the run.
        remove_inverses: keep one relation of those that are each other's inverse or copy, and
            remove validation and test triples whose inverse by the same relation is in training.
    """

    revision: ClassVar[int] = 4  # 4: more headers and the order head, tail, relation are found
    file_names: ClassVar[tuple[str, ...]] = tuple(
        f"{name}{end}" for name in PARTS.values() for end in ENDINGS
    )

    path: UserFile[str | Path] = "data/kg"
    columns: Sequence[str | int] | None = None
    separator: Separator | None = None
    header: bool | None = None
    valid_share: Fraction | None = None
    test_share: Fraction | None = None
    seed: Seed = 0
    remove_inverses: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns is not None and len({*self.columns}) != 3:
            raise UsageError(
                f"columns={list(self.columns)} must be head, relation and tail in the order of the "
                "files, or three names of columns"
            )
        self.folder = Path(self.path).expanduser()

    def download(self) -> list[Path]:
        refuse_ending(str(self.path))
        files = self.files()
        shares = {"val": self.valid_share, "test": self.test_share}
        for part, share in shares.items():
            if share is not None and part in files:
                raise UsageError(
                    f"{files[part]} has the triples already: leave "
                    f"{PARTS[part]}_share=None, or take the file away."
                )
        to_draw = {part for part, share in shares.items() if share is not None}
        lacking = [f"{PARTS[part]}.txt" for part in PARTS.keys() - files.keys() - to_draw]
        if lacking:
            raise UsageError(
                f"{self.folder} lacks {' and '.join(sorted(lacking))} "
                "(or .tsv, .csv, .nt, .gz): path=FOLDER names a folder with train.txt, valid.txt "
                "and test.txt, one triple per line; valid_share=0.1 and test_share=0.1 draw "
                "triples of train.txt, or of the one file that path names."
            )
        return list(files.values())

    def files(self) -> dict[str, Path]:
        if self.folder.is_file():
            return {"train": self.folder}
        files = dict[str, Path]()
        for part, name in PARTS.items():
            paths = [self.folder / f"{name}{end}" for end in ENDINGS]
            paths = [path for path in paths if path.is_file()]
            if len(paths) > 1 and paths[1].name != f"{paths[0].name}.gz":
                raise UsageError(
                    f"{self.folder} has {paths[0].name} and {paths[1].name}: take one of them away."
                )
            if paths:
                files[part] = paths[0]
        return files

    @property
    def num_train(self) -> int:
        return int((self.read().part == "train").sum())

    def load(self) -> Data:
        triples = self.read()
        say_once(self.report(triples), log.info)
        warn_of_inverses(triples)
        data = numbered_graph(triples)
        check_triples(data)
        entities = data.vocabulary.entities
        trained = data.edge_index[:, data.train_mask].unique()
        unseen = ~torch.isin(data.edge_index, trained)
        if unseen.any():
            log.warning(
                "%d validation and test triples have one of %d entities that no training triple "
                "has, for instance %r: their embeddings are not trained",
                int(unseen.any(dim=0).sum()),
                len(entities) - len(trained),
                entities[int(data.edge_index[unseen].min())],
            )
        return data

    def report(self, triples: pd.DataFrame) -> str:
        """Say how the files were read, and their sizes."""
        sizes = " / ".join(f"{int((triples.part == part).sum()):,}" for part in PARTS)
        entities = pd.unique(triples[["head", "tail"]].to_numpy(object).ravel())
        counts = f"{len(entities):,} entities, {triples.relation.nunique():,} relations"
        lines = [f"{self.folder}: {counts}, {sizes} triples"]
        lines.append(f"triples: {triples.attrs['said']}")
        if self.folder.is_dir():
            remedy = "triples are in train.txt, valid.txt and test.txt"
            lines += say_unread(self.folder, self.files().values(), remedy)
        return "\n  ".join(lines)

    def read(self) -> pd.DataFrame:
        self.download()
        files = self.files()
        columns = None if self.columns is None else tuple(self.columns)
        form = (columns, self.separator, self.header)
        shares = {"test": self.test_share, "val": self.valid_share}
        content = checksum([*files.values()])
        shares_of_parts = tuple(shares.items())
        return _read(
            tuple(files.items()), content, form, shares_of_parts, self.seed, self.remove_inverses
        )


@lru_cache(maxsize=1)
def _read(
    files: Sequence[tuple[str, Path]],
    content: str | None,  # noqa: ARG001 - another content is another entry
    form: tuple[Sequence[str | int] | None, str | None, bool | None],
    shares: Sequence[tuple[str, float | None]],
    seed: int,
    remove_inverses: bool,
) -> pd.DataFrame:
    """Triples of files and their part, those of training each once."""
    columns, separator, header = form
    tables = {part: triple_table(path, columns, separator, header) for part, path in files}
    order_text = ""
    found: tuple[int, ...] = ()
    if "train" in tables and all(file.ordered for file in tables.values()):
        found = order_of_columns(tables["train"].table.frame)
    if found:
        tables = {part: triple_table(path, found, separator, header) for part, path in files}
        order_text = " (guess: dataset.source.columns=[1,2,3])"
    parts = {part: check_names(file.table) for part, file in tables.items()}
    form_text = "; ".join(dict.fromkeys(file.line for file in tables.values())) + order_text
    if header is None and not any(file.headed for file in tables.values()):
        remedy = "dataset.source.header=false"
        if _begin_alike([*parts.values()]):
            parts = {part: triples.iloc[1:] for part, triples in parts.items()}
            form_text += f" (guess: each file's first line is a header, {remedy})"
        elif "train" in parts and has_unknown_header(parts["train"]):
            words = " ".join(parts["train"].iloc[0])
            parts["train"] = parts["train"].iloc[1:]
            form_text += f" (guess: the first line {words!r} is a header, {remedy})"
    if "train" in parts:
        every = parts["train"]
        train = parts["train"] = every.drop_duplicates(ignore_index=True)
        repeated = len(every) - len(train)
        if repeated:
            log.warning("%d training triples repeat another one: each counts once", repeated)
        if remove_inverses:
            redundant = redundant_relations(_joined(parts))
            log.warning("relations taken out: %s", ", ".join(map(repr, redundant)) or "none")
            for part, rows in parts.items():
                parts[part] = rows[~rows["relation"].isin(redundant)]
        total = len(parts["train"])
        for part, share in shares:
            if share is not None:
                train = parts["train"].reset_index(drop=True)
                is_drawn = draw_triples(train, round(share * total), f"{PARTS[part]}_share", seed)
                parts["train"] = train[~is_drawn]
                parts[part] = train[is_drawn]
    triples = _joined(parts)
    if remove_inverses:
        triples = triples[~trained_inverses(triples)["same"]]
        if {*triples.part} != {*parts}:
            raise UsageError("remove_inverses=True leaves a part without triples: drop it.")
    triples = triples.reset_index(drop=True)
    triples.attrs["said"] = form_text
    return triples


def _joined(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The triples of all parts, in the order of `PARTS`, with a column `part`."""
    return pd.concat([parts[part].assign(part=part) for part in PARTS if part in parts])


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


def _begin_alike(parts: Sequence[pd.DataFrame]) -> bool:
    """Whether all files have one first line, whose names are in no other line."""
    if len(parts) < 2:
        return False
    first = parts[0].iloc[0]
    for part in parts:
        if len(part) < 2 or not part.iloc[0].equals(first):
            return False
        if part.iloc[1:].isin({*first}).any(axis=None):
            return False
    return True


def draw_triples(triples: pd.DataFrame, count: int, option: str, seed: int) -> np.ndarray:
    """Training triples `[triples]` for another part, `count` or fewer."""
    count = max(1, count)
    order = np.random.default_rng(seed).permutation(len(triples))
    shuffled = triples.iloc[order]
    ends = pd.Series(shuffled[["head", "tail"]].to_numpy(object).ravel())
    ends_repeat = ends.duplicated().to_numpy().reshape(-1, 2).all(axis=1)
    can_be_spared = ends_repeat & shuffled.relation.duplicated().to_numpy()
    sample = order[can_be_spared][-count:]  # triples after the first of each of their names
    is_drawn = np.isin(np.arange(len(triples)), sample)
    if not is_drawn.any():
        raise UsageError(
            f"{option}=FRACTION: no training triple can be spared, since each has an "
            f"entity or a relation of its own: write a {option.removesuffix('_share')}.txt."
        )
    lacking = count - len(sample)
    if lacking:
        log.warning("%d triples less than wanted could be drawn for %s", lacking, option)
    return is_drawn


INVERSE = 0.8
"""Share of a relation's pairs that another one has, from which it is its inverse or its copy."""


def relation_pairs(triples: pd.DataFrame, inverse: bool = True) -> pd.DataFrame:
    """Pairs of relations, `relation` and `other`, of which `other` is the inverse, or the copy.

    That is, it has 80 % of the pairs of the first one, reversed, of training or of another part,
    and five times as many as chance would have.
    """
    ends = ["tail", "head"] if inverse else ["head", "tail"]
    all_triples = triples[["head", "tail", "relation"]].drop_duplicates()
    joined = triples.merge(all_triples.set_axis([*ends, "other"], axis=1), on=["head", "tail"])
    joined = joined[joined["relation"] != joined["other"]]
    shares = list[pd.DataFrame]()
    for parts in (tuple(PARTS), ("val", "test")):
        sizes = triples.loc[triples["part"].isin(parts), "relation"].value_counts()
        shared = joined[joined["part"].isin(parts)].groupby(["relation", "other"]).size()
        counts = shared.rename("shared").reset_index()
        shares.append(
            counts.assign(share=counts["shared"] / counts["relation"].map(sizes).astype(float))
        )
    pairs = pd.concat(shares)
    entities = triples[["head", "tail"]].stack().nunique()
    density = pairs["other"].map(all_triples["relation"].value_counts()).astype(float) / entities**2
    likely = (pairs["share"] >= INVERSE) & (pairs["share"] > 5 * density)
    pairs = pairs[likely].sort_values("share", ascending=False)
    return pairs.drop_duplicates(["relation", "other"], ignore_index=True)


def redundant_relations(triples: pd.DataFrame) -> list[str]:
    """Relations to take out, so that none is the inverse or the copy of another one that stays."""
    pairs = pd.concat([relation_pairs(triples, inverse) for inverse in (True, False)])
    partners: dict[str, set[str]] = {}
    for one, other in pairs[["relation", "other"]].itertuples(index=False):
        partners.setdefault(one, set()).add(other)
        partners.setdefault(other, set()).add(one)
    kept_names = set[str]()
    redundant = list[str]()
    for name in triples["relation"].value_counts().index:  # the largest stays
        if partners.get(name, set()) & kept_names:
            redundant.append(name)
        else:
            kept_names.add(name)
    return redundant


def trained_inverses(triples: pd.DataFrame) -> pd.DataFrame:
    """Whether training has the inverse of an evaluated triple: `other` relation, or `same`."""
    columns = ["head", "tail", "relation"]
    rows = triples.reset_index(drop=True).reset_index()
    train = rows.loc[rows["part"].eq("train"), columns].drop_duplicates()
    mirrored = train.set_axis(["tail", "head", "other"], axis=1)
    joined = rows[rows["part"].ne("train")].merge(mirrored, on=["head", "tail"])
    is_symmetric = joined["relation"] == joined["other"]
    is_symmetric &= joined["head"] != joined["tail"]
    pairs = relation_pairs(triples)[["relation", "other"]].assign(inverse=True)
    inverse = joined.merge(pairs, on=["relation", "other"])
    inverses = {"same": joined.loc[is_symmetric, "index"], "other": inverse["index"]}
    marks = {name: np.isin(np.arange(len(rows)), places) for name, places in inverses.items()}
    return pd.DataFrame(marks, index=triples.index)


def warn_of_inverses(triples: pd.DataFrame) -> None:
    """Warn of test triples whose inverse trains the model (Toutanova and Chen 2015)."""
    test = triples["part"].eq("test")
    marks = trained_inverses(triples)[test.to_numpy()]
    count = int(marks.any(axis=1).sum())
    if not count or marks.any(axis=1).mean() < 0.05:
        return
    pairs = relation_pairs(triples)
    examples = [
        f"{one!r} and {other!r}" for one, other in zip(pairs.relation, pairs.other, strict=True)
    ]
    relations = f"inverse relations such as {examples[0]}" if examples else "symmetric relations"
    log.warning(
        "%d of %d test triples are in training the other way round (%s), which makes them easy: "
        "dataset.source.remove_inverses=true takes such relations and triples out",
        count,
        int(test.sum()),
        relations,
    )
