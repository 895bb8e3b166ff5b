"""Predictions of a trained model as tables with names, and its scores on other graphs."""

import difflib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix, to_undirected

from curvlab.config.building import build
from curvlab.data.datasets.labelled import GIVEN
from curvlab.data.datasets.triples import KnownTails
from curvlab.errors import UsageError
from curvlab.finite import Scores
from curvlab.metrics.ranking import rank_counts, ranks
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion
from curvlab.tasks.link_prediction import LinkPrediction
from curvlab.tasks.node_classification import PARTS, NodeClassification
from curvlab.tasks.reconstruction import Reconstruction
from curvlab.tasks.task import Task

if TYPE_CHECKING:
    from curvlab.run.load import Run

log = logging.getLogger(__name__)

ENTRIES = 2**22  # numbers held at a time while all pairs are scored
UNLABELLED = "unlabelled"  # the part of a node without a label

Query = tuple[str | None, str, str | None]
"""Head, relation and tail by name; None for the end to predict, neither for a triple to score."""


@dataclass(frozen=True)
class PredictionQuery:
    """The nodes, links or triples to predict."""

    k: int = 10  # answers per node or query
    nodes: Sequence[str] | None = None  # whose classes or links; None for all nodes
    queries: Sequence[Query] = ()  # of a knowledge graph
    known: bool | None = None  # list answers that the data have; None: of knowledge graphs
    unlabelled: bool = False  # only nodes without a label

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k={self.k}: ask for at least one answer")


@singledispatch
def predictions(task: Task, run: "Run", *_: Any) -> pd.DataFrame:  # noqa: ARG001 - dispatched on
    """The predictions of a run; a task of another package registers its own function."""
    raise UsageError(f"task={run.config.task.name} predicts nothing by itself: export embeddings")


@predictions.register(NodeClassification)
def _classes(
    task: NodeClassification, run: "Run", graph: Data | None, query: PredictionQuery
) -> pd.DataFrame:
    batch, ids = run.prepare(graph), run.ids(graph)
    nodes = batch.nodes.argsort() if "nodes" in batch else torch.arange(len(ids))
    chosen, names = _numbers(query.nodes, ids, "node"), class_names(task, run)
    frame = pd.DataFrame(index=range(int(batch.num_nodes or 0)))
    if batch.get("y") is not None:
        frame["label"], frame["part"] = _class_texts(batch.y, names), ""
        for part, mask in part_masks(batch).items():
            frame.loc[mask.cpu().numpy(), "part"] = part
        if "labelled" in batch:
            frame.loc[~batch.labelled.cpu().numpy()] = "", UNLABELLED
    frame = frame.iloc[nodes[chosen].numpy()]
    frame.insert(0, "node", [ids[i] for i in chosen])
    if query.unlabelled:
        frame = frame[frame["part"] == UNLABELLED] if "part" in frame else frame
        if frame.empty:
            raise UsageError("unlabelled=true, but each of these nodes has a label: drop it")
    rows = torch.tensor(frame.index.tolist(), device=run.device)
    found = task.probabilities(batch, rows).cpu()
    predicted = found.argmax(1) if task.labels.exclusive else found > 0.5
    frame.insert(1, "predicted", _class_texts(predicted, names))
    columns = {f"p_{name}": found[:, i].numpy() for i, name in enumerate(names)}
    return frame.assign(**columns).reset_index(drop=True)


def _class_texts(labels: Tensor, names: Sequence[str]) -> list[str]:
    """Names of classes `[nodes]`, or of all labels that `[nodes, labels]` has."""
    if labels.dim() == 1:
        return [names[i] for i in labels.long().tolist()]
    rows = labels.bool().tolist()
    return [" ".join(n for n, there in zip(names, row, strict=True) if there) for row in rows]


def class_names(task: NodeClassification, run: "Run") -> list[str]:
    """Names of the classes or labels, their numbers where there are none."""
    count = max(task.labels.logits, 2) if task.labels.exclusive else task.labels.logits
    names = run.vocabulary.classes
    return list(names) if names is not None else [str(i) for i in range(count)]


@predictions.register(LinkPrediction)
def _likely_links(
    task: LinkPrediction, run: "Run", graph: Data | None, query: PredictionQuery
) -> pd.DataFrame:
    points = run.embed(graph)

    def scores(rows: Tensor, columns: Tensor) -> Tensor:
        return task.decoder(points[rows].unsqueeze(1), points[columns].unsqueeze(0))

    links = _links(run, graph, query, scores, points.shape[1])
    probability = task.decoder.probability(torch.tensor(links["score"].to_numpy()))
    if probability is not None:
        links["probability"] = probability.numpy()
    return links


@predictions.register(Reconstruction)
def _near_nodes(
    _: Reconstruction, run: "Run", graph: Data | None, query: PredictionQuery
) -> pd.DataFrame:
    points = run.embed(graph).double()

    def scores(rows: Tensor, columns: Tensor) -> Tensor:
        return -run.space.pairwise_sqdist(points[rows], points[columns])

    links = _links(run, graph, query, scores, 1)
    links["distance"] = (-links.pop("score")).clip(lower=0) ** 0.5
    return links


@predictions.register(KnowledgeGraphCompletion)
def _completions(
    task: KnowledgeGraphCompletion, run: "Run", graph: Data | None, query: PredictionQuery
) -> pd.DataFrame:
    if graph is not None:
        run.check_own()
    if not query.queries:
        raise UsageError(
            "give pairs to complete: a head and a relation, or a relation and a tail, by name; or "
            "triples to score"
        )
    entities = run.ids()
    end, relation, answer = _number(task, run, query.queries, entities)
    known, rows = None, []
    with suppress(UsageError):  # the files are not here
        data = run.data.graph
        heads, tails = data.edge_index.cpu()
        known = KnownTails(heads, data.edge_type.cpu(), tails, len(data.relation_names))
    for at in torch.arange(len(end)).split(max(1, ENTRIES // len(entities))):
        batch = Data(head=end[at], relation=relation[at]).to(str(run.device))
        scores = task.encoder.scores(batch).float().cpu()
        there = torch.zeros(scores.shape, dtype=torch.bool)
        others = None if known is None else known.lookup(end[at], relation[at])
        if others is not None:
            there[others] = True
        place_of = ranks(rank_counts(scores, answer[at].clamp(min=0), others)[0], task.ties)
        ranked = scores if query.known is not False else scores.masked_fill(there, -torch.inf)
        best, places = ranked.topk(min(query.k, len(entities)), dim=1)
        shares = scores.softmax(1)
        for i, row in enumerate(at.tolist()):
            likeliest = places[i][best[i] != -torch.inf].tolist()
            listed: list[tuple[float, int]] = [*enumerate(likeliest, start=1)]
            if answer[row] >= 0:
                listed = [(float(place_of[i]), int(answer[row]))]
            head, name, tail = query.queries[row]
            for rank, place in listed:
                ends = head or entities[place], name, tail or entities[place]
                found = float(scores[i, place]), float(shares[i, place])
                is_known = None if known is None else bool(there[i, place])
                rows.append((*ends, rank, *found, is_known))
    columns = ["head", "relation", "tail", "rank", "score", "probability", "known"]
    return pd.DataFrame(rows, columns=columns)


def _number(
    task: KnowledgeGraphCompletion, run: "Run", queries: Sequence[Query], entities: list[str]
) -> tuple[Tensor, Tensor, Tensor]:
    """Ends, relations and tails `[queries]`, -1 for none; heads are the inverse's tails."""
    names = list(run.vocabulary.relations or ())
    both = task.inverse_relations
    forward = names[: len(names) // 2] if both else names
    for head, relation, tail in queries:
        if head is None and tail is None:
            raise UsageError(f"give the head or the tail that belongs to {relation!r}, or both")
        if head is None and not both:
            raise UsageError(
                "the run ranks tails alone, so that no heads can be asked for: train one with "
                "task.inverse_relations=true"
            )
    ends = [tail if head is None else head for head, _, tail in queries]
    end = torch.tensor(_numbers([str(name) for name in ends], entities, "entity"))
    relation_numbers = _numbers([relation for _, relation, _ in queries], forward, "relation")
    of_heads = torch.tensor([head is None for head, _, _ in queries])
    answer = torch.full((len(queries),), -1)
    given = [i for i, query in enumerate(queries) if None not in query]
    tails = _numbers([str(queries[i][2]) for i in given], entities, "entity")
    answer[given] = torch.tensor(tails, dtype=torch.long)
    return end, torch.tensor(relation_numbers) + of_heads * len(forward), answer


def _links(
    run: "Run",
    graph: Data | None,
    query: PredictionQuery,
    scores: Callable[[Tensor, Tensor], Tensor],
    width: int,
) -> pd.DataFrame:
    """The k pairs of each node with the highest scores, some rows at a time."""
    ids = run.ids(graph)
    chosen = torch.tensor(_numbers(query.nodes, ids, "node"))
    graph = run.data.graph if graph is None else graph
    held_out = [graph[f"{part}_edges"] for part in PARTS if f"{part}_edges" in graph]
    both_ways = to_undirected(torch.cat([graph.edge_index, *held_out], dim=1), num_nodes=len(ids))
    edges = to_scipy_sparse_matrix(both_ways, num_nodes=len(ids)).tocsr()
    columns, kept = torch.arange(len(ids)), []
    for rows in chosen.split(max(1, ENTRIES // (width * len(ids)))):
        known = torch.from_numpy(edges[rows.numpy()].toarray()) > 0
        left_out = rows[:, None] == columns
        if not query.known:
            left_out = left_out | known
        tile = scores(rows, columns).float().cpu().masked_fill(left_out, -torch.inf)
        best, places = tile.topk(min(query.k, len(ids)), dim=1)
        found = (rows[:, None].expand_as(places), places, best, known.gather(1, places))
        kept.append([each[best != -torch.inf] for each in found])  # NaN is for the caller to refuse
    node, neighbour, score, is_known = (torch.cat(parts) for parts in zip(*kept, strict=True))
    nodes, neighbours = ([ids[i] for i in end.tolist()] for end in (node, neighbour))
    table = pd.DataFrame({"node": nodes, "neighbour": neighbours})
    return table.assign(score=score.numpy(), known=is_known.numpy())


def _numbers(names: Sequence[str] | None, known: Sequence[str], what: str) -> list[int]:
    if names is None:
        return list(range(len(known)))
    positions = {name: i for i, name in enumerate(known)}
    for name in map(str, names):
        if name not in positions:
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"there is {known[0]!r}"
            raise UsageError(f"there is no {what} {name!r} in the run's data; {hint}")
    return [positions[str(name)] for name in names]


@singledispatch
def scores_on(task: Task, run: "Run", graph: Data) -> Scores:  # noqa: ARG001
    """Metrics of parts of another graph; a task of another package registers its own function."""
    raise UsageError(
        f"task={run.config.task.name} has no score on another graph; node classification, link "
        "prediction and reconstruction have"
    )


@scores_on.register(NodeClassification)
def _predict_nodes(task: NodeClassification, run: "Run", graph: Data) -> Scores:
    if graph.get("y") is None:
        raise UsageError("the graph's nodes have no labels: nothing to score")
    batch, found = run.prepare(graph), {}
    for part, mask in part_masks(graph).items():
        nodes = mask.nonzero().squeeze(-1).to(run.device)
        scores = task.labels.scores(task.logits(batch, nodes), batch.y[nodes])
        found[part] = {name: float(score) for name, score in scores.items()}
    return found


def part_masks(graph: Data) -> dict[str, Tensor]:
    """Masks of the nonempty parts of a graph's split; else `all` of the labelled nodes."""
    every = torch.ones(len(graph.y), dtype=torch.bool, device=graph.y.device)
    labelled = graph.get("labelled", every)
    masks: dict[str, Tensor] = {}
    for part, given in zip(PARTS, GIVEN, strict=True):
        mask = graph.get(f"{part}_mask", graph.get(given))
        if mask is not None:
            mask = (mask[:, 0] if mask.dim() == 2 else mask) & labelled
            masks |= {part: mask} if mask.any() else {}
    return masks or {"all": labelled}


@scores_on.register(LinkPrediction)
def _predict_links(task: LinkPrediction, run: "Run", graph: Data) -> Scores:
    split = build(run.config.task.split, "task.split")
    scores = task.scores(run.prepare(split(graph, run.config.seed)), "test")
    return {"test": {name: float(score) for name, score in scores.items()}}


@scores_on.register(Reconstruction)
def _predict_distances(task: Reconstruction, run: "Run", graph: Data) -> Scores:
    return {"test": {task.score: float(task.precision(run.prepare(graph)))}}
