"""Scores of a trained model on a graph, or on triples, that it has not seen."""

import logging
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.config.building import build
from curvlab.data.datasets.labelled import GIVEN
from curvlab.data.datasets.triple_folder import read_known_names
from curvlab.data.datasets.triples import MASKS, triple_numbers
from curvlab.data.loaders.triple_batches import with_inverses
from curvlab.errors import UsageError
from curvlab.finite import Scores
from curvlab.process import default_dtype
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion
from curvlab.tasks.link_prediction import LinkPrediction
from curvlab.tasks.node_classification import PARTS, NodeClassification
from curvlab.tasks.reconstruction import Reconstruction
from curvlab.tasks.task import Task

if TYPE_CHECKING:
    from curvlab.run.load import Run

log = logging.getLogger(__name__)


@singledispatch
def scores_on(task: Task, run: "Run", graph: Data) -> Scores:  # noqa: ARG001
    """Metrics of parts of another graph; a task of another package registers its own function.

    Args:
        task: of the run.
        run: loaded.
        graph: `x`, `edge_index` and what the task scores; for knowledge graphs see `triples_in`.

    Raises:
        UsageError: the model is tied to its graph, or the graph lacks what is scored.
    """
    raise UsageError(
        f"task={run.config.task.name} has no score on another graph; node classification, link "
        "prediction, reconstruction and knowledge-graph completion have"
    )


@scores_on.register(NodeClassification)
@torch.no_grad()
def _of_nodes(task: NodeClassification, run: "Run", graph: Data) -> Scores:
    if graph.get("y") is None:
        raise UsageError("the graph's nodes have no labels: nothing to score")
    with default_dtype(run.config.trainer.precision):
        batch = run.prepared(graph)
        found = {}
        for part, mask in part_masks(graph).items():
            nodes = mask.nonzero().squeeze(-1).to(run.device)
            logits = task.logits(batch, nodes)
            scores = task.labels.scores(logits, batch.y[nodes])
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
@torch.no_grad()
def _of_links(task: LinkPrediction, run: "Run", graph: Data) -> Scores:
    with default_dtype(run.config.trainer.precision):
        split = build(run.config.task.split, "task.split")
        batch = run.prepared(split(graph, run.config.seed))
        scores = task.scores(batch, "test")
        return {"test": {name: float(score) for name, score in scores.items()}}


@scores_on.register(Reconstruction)
@torch.no_grad()
def _of_distances(task: Reconstruction, run: "Run", graph: Data) -> Scores:
    with default_dtype(run.config.trainer.precision):
        return {"test": {task.score: float(task.precision(run.prepared(graph)))}}


@scores_on.register(KnowledgeGraphCompletion)
@torch.no_grad()
def _of_triples(task: KnowledgeGraphCompletion, run: "Run", graph: Data) -> Scores:
    batch = graph.to(str(run.device))
    with default_dtype(run.config.trainer.precision):
        parts = [part for part in task.tested if batch[MASKS[part]].any()]
        found = {part: task.rank_part(batch, part) for part in parts}
    return {part: {k: float(v) for k, v in scores.items()} for part, scores in found.items()}


def triples_in(folder: str | Path, run: "Run") -> Data:
    """Triples of a folder by the numbers of a run's entities and relations, and the run's own.

    `valid.txt` and `test.txt`, of which one must be there, are the parts that are scored. The run's
    own triples and those of the folder's `train.txt` are known: filtered ranks leave them out.
    """
    own, names = run.data.graph.cpu(), run.ids()
    both = own.get("inverse_relations", False)
    relations = own.relation_names[: len(own.relation_names) // (2 if both else 1)]
    source = run.config.dataset.source
    options = {key: source[key] for key in ("columns", "separator", "header") if key in source}
    found = read_known_names(folder, names, relations, **options)
    numbers = [
        triple_numbers(
            of.edge_index[0, at], of.edge_type[at], of.edge_index[1, at], int(own.num_nodes or 0)
        )
        for of, at in ((found, ~found.train_mask), (own, own.train_mask))
    ]
    if repeated := int(torch.isin(*numbers).sum()):
        log.warning("%d triples to score are among those that the model was trained on", repeated)
    found = with_inverses(found) if both else found
    masks = {mask: torch.cat([torch.zeros_like(own[mask]), found[mask]]) for mask in MASKS.values()}
    return Data(
        edge_index=torch.cat([own.edge_index, found.edge_index], dim=1),
        edge_type=torch.cat([own.edge_type, found.edge_type]),
        num_nodes=own.num_nodes,
        relation_names=own.relation_names,
        inverse_relations=both,
        **masks,
    )
