"""The data module of knowledge graphs: batches of training triples, evaluation on all of them."""

from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.data.datasets.triples import MASKS, triple_numbers
from curvlab.data.loaders.batches import MiniBatchDataModule, pass_generator, step_parts
from curvlab.data.loaders.datamodule import load_source
from curvlab.data.vocabulary import Vocabulary, vocabulary_of
from curvlab.errors import UsageError
from curvlab.options import PositiveInt

Training = Literal["one_vs_all", "k_vs_all", "negative_sampling"]
Corruption = Literal["tail", "uniform", "bernoulli", "both"]


class TripleDataModule(MiniBatchDataModule):
    """Batches of training triples; those with the same head and relation form one query.

    A batch has `head` and `relation` `[queries]`, each pair once, and for its triples `query`
    `[triples]`, the position of their pair, and `tail`. With `shuffle="pairs"` the triples of a
    pair come one after another.

    Args:
        size: largest number of triples of a batch.
        shuffle: unit that a pass permutes: `triples`; `pairs` of head and relation (fewer scores a
            step); `sides`, triples that their inverses follow.
        inverse_relations: add the triple (t, r + relations, h) to every triple (h, r, t), in the
            same part, so that ranking tails ranks heads too.
        training: comparison that the task makes. For `k_vs_all` a batch has all training tails of
            its queries. For `negative_sampling` it has `corrupt_head` `[triples]`, the probability
            that a sample replaces the head, and `tail_rows` and `head_rows`, the positions of
            triples whose tail or head is predicted: an inverse relation predicts the head, and
            without inverse relations every triple predicts both.
        corruption: end that is replaced: `tail`; `uniform`, either; `bernoulli`, the head with
            probability tph / (tph + hpt), from the relation's tails per head and heads per tail
            (Wang et al. 2014); `both` replaces the two.
        filtered: a batch has `known`, numbers of all training triples (`triple_numbers`).
        subsampling: a batch has `weight` `[triples]`, n^(-1/2) of the number n of training triples
            with the same head and relation, or the same relation and tail (Sun et al. 2019).
    """

    size: PositiveInt = 512
    shuffle: Literal["triples", "pairs", "sides"] = "triples"
    inverse_relations: bool = False
    training: Training = "one_vs_all"
    corruption: Corruption = "uniform"
    filtered: bool = False
    subsampling: bool = False

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of entities, if the reader keeps them, and of relations."""
        entities = vocabulary_of(self.graph).entities
        return Vocabulary(entities=entities, relations=tuple(self.graph.relation_names))

    @property
    def num_relations(self) -> int:
        """Number of relations, inverse ones among them."""
        return len(self.graph.relation_names)

    @property
    def inputs(self) -> dict[str, int]:
        return {"num_entities": self.num_nodes, "num_relations": self.num_relations}

    @property
    def train_triples(self) -> Tensor:
        """Head, relation and tail of the training triples, `[3, triples]`."""
        head, tail = self.graph.edge_index[:, self.graph.train_mask]
        return torch.stack([head, self.graph.edge_type[self.graph.train_mask], tail])

    @property
    def steps_per_pass(self) -> int:
        return -(-int(self.graph.train_mask.sum()) // self.size)

    def prepare_batches(self) -> None:
        if self.shuffle == "sides" and not self.inverse_relations:
            raise UsageError(
                "batching.shuffle=sides needs inverse relations: set task.inverse_relations=true"
            )
        if self.shuffle == "sides" and self.size % 2:
            raise UsageError(f"batching.size={self.size} must be even for batching.shuffle=sides")
        _ = self._pairs

    def batch(self, nodes: Tensor) -> Data:
        """The batch of training triples of these positions `[triples]`."""
        pair, tail = self._pairs
        if self.training == "k_vs_all":
            nodes = torch.isin(pair, pair[nodes]).nonzero().squeeze(1)
        pairs, query = pair[nodes].unique(return_inverse=True)
        batch = Data(
            head=pairs // self.num_relations,
            relation=pairs % self.num_relations,
            query=query,
            tail=tail[nodes],
        )
        if self.training == "negative_sampling":
            batch.corrupt_head = self._head_share[batch.relation][query]
            batch.known = self._known if self.filtered else None
            batch.tail_rows, batch.head_rows = self._rows_of_sides(batch.relation[query])
        if self.subsampling:
            batch.weight = self._weights[nodes]
        return batch

    def _rows_of_sides(self, relation: Tensor) -> tuple[Tensor, Tensor]:
        """Positions of the triples whose tail is predicted, and of those whose head is."""
        if not self.inverse_relations:
            every = torch.arange(len(relation))
            return every, every
        inverse = relation >= self.num_relations // 2
        return (~inverse).nonzero().squeeze(1), inverse.nonzero().squeeze(1)

    @cached_property
    def _weights(self) -> Tensor:
        """Weights of the training triples; both counts start at 4, as in the authors' code."""
        head, relation, tail = self.train_triples
        counts = torch.zeros(len(head), dtype=torch.long)
        for end in (head, tail):
            pairs = end * self.num_relations + relation
            _, place, pair_counts = pairs.unique(return_inverse=True, return_counts=True)
            counts += pair_counts[place] + 3
        return counts.to(torch.get_default_dtype()).rsqrt()

    def rounds(self, number: int, batches: int) -> list[tuple[Tensor, ...]]:
        pair, _ = self._pairs
        generator = pass_generator(self.seed, number)
        steps = step_parts(len(pair), self.size, batches)
        items = len(pair) // 2 if self.shuffle == "sides" else len(pair)
        order = generator.permutation(items)
        if self.shuffle == "pairs":
            _, group = np.unique(pair.numpy(), return_inverse=True)
            rank_of_group = generator.permutation(group.max() + 1)
            order = order[np.argsort(rank_of_group[group[order]])]
        parts = torch.from_numpy(order).tensor_split(steps)
        if self.shuffle == "sides":  # the second half of the triples is the inverse of the first
            parts = tuple(torch.cat([part, part + len(order)]) for part in parts)
        return [parts[i : i + batches] for i in range(0, len(parts), batches)]

    @cached_property
    def _pairs(self) -> tuple[Tensor, Tensor]:
        """A number for head and relation of each training triple, and its tail."""
        head, relation, tail = self.train_triples
        return head * self.num_relations + relation, tail

    @cached_property
    def _head_share(self) -> Tensor:
        """Probability that a sample replaces the head, `[relations]`."""
        if self.corruption != "bernoulli":
            share = 0.5 if self.corruption == "uniform" else 0.0
            return torch.full((self.num_relations,), share)
        head, relation, tail = self.train_triples
        inverse_means = []
        for end in (head, tail):
            pairs = torch.stack([relation, end]).unique(dim=1)[0]
            inverse_means.append(1 / pairs.bincount(minlength=self.num_relations))
        per_head, per_tail = inverse_means  # both lack the factor of the relation's triples
        return per_head / (per_head + per_tail)

    @cached_property
    def _known(self) -> Tensor:
        """Numbers of the training triples, sorted."""
        head, relation, tail = self.train_triples
        return triple_numbers(head, relation, tail, self.num_nodes).sort().values

    def _prepare(self) -> Data:
        data = load_source(self.source)
        return add_inverses(data) if self.inverse_relations else data


def add_inverses(data: Data) -> Data:
    """A knowledge graph and the inverse of every triple: (t, r + relations, h) in the same part."""
    names = data.relation_names
    negatives = {}
    for part in MASKS:
        key = f"{part}_negatives"
        if key in data:
            negatives[key] = data[key]
    return Data(
        edge_index=torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1),
        edge_type=torch.cat([data.edge_type, data.edge_type + len(names)]),
        num_nodes=data.num_nodes,
        relation_names=[*names, *(f"{name} (inverse)" for name in names)],
        inverse_relations=True,
        vocabulary=vocabulary_of(data),
        **{mask: data[mask].repeat(2) for mask in MASKS.values()},
        **negatives,
    )
