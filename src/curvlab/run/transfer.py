"""Scores of a trained, inductive model on a graph that it has not seen."""

from functools import singledispatch
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.config.building import build
from curvlab.data.datasets.labelled import GIVEN
from curvlab.errors import UsageError
from curvlab.process import default_dtype
from curvlab.tasks.link_prediction import LinkPrediction
from curvlab.tasks.node_classification import PARTS, NodeClassification
from curvlab.tasks.task import Task

if TYPE_CHECKING:
    from curvlab.run.load import Run

Scores = dict[str, dict[str, float]]


@singledispatch
def scores_on(task: Task, run: "Run", graph: Data) -> Scores:  # noqa: ARG001
    """Metrics of parts of another graph; a task of another package registers its own function.

    Args:
        task: of the run.
        run: loaded.
        graph: `x`, `edge_index` and what the task scores.

    Raises:
        UsageError: the model is tied to its graph, or the graph lacks what is scored.
    """
    raise UsageError(
        f"task={run.config.task.name} has no score on another graph; node classification and link "
        "prediction have"
    )


@scores_on.register(NodeClassification)
@torch.no_grad()
def _of_nodes(task: NodeClassification, run: "Run", graph: Data) -> Scores:
    if graph.get("y") is None:
        raise UsageError("the graph's nodes have no labels: nothing to score")
    with default_dtype(run.config.trainer.precision):
        batch = run.prepared(graph)
        found = {}
        for part, mask in _parts(graph).items():
            nodes = mask.nonzero().squeeze(-1).to(run.device)
            logits = task.logits(batch, nodes)
            scores = task.labels.scores(logits, batch.y[nodes])
            found[part] = {name: float(score) for name, score in scores.items()}
    return found


def _parts(graph: Data) -> dict[str, Tensor]:
    """Masks of the parts that a graph comes with, without empty ones, or of all labelled nodes."""
    labelled = graph.get("labelled", torch.ones(len(graph.y), dtype=torch.bool))
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
