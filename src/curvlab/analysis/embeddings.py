"""Embeddings on a manifold: storage, and projections for pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from curvlab.analysis.arrays import load_arrays, save_arrays
from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Manifold, Stereographic

ROWS = ("classes", "nodes")  # fields of an embedding that are numbers of its nodes
NAMES = ("ids", "class_names")  # fields of an embedding that are texts


@dataclass(frozen=True)
class Embedding:
    """Points `[nodes, dim]`, the space they lie in, and the graph `edge_index [2, edges]`."""

    points: Tensor
    space: Euclidean | Stereographic
    edge_index: Tensor
    classes: Tensor | None = None
    nodes: Tensor | None = None  # numbers in the dataset, if the points may be of a part of it
    ids: Sequence[str] | None = None
    class_names: Sequence[str] | None = None


def save_embedding(path: Path, embedding: Embedding) -> None:
    """Write an embedding's fields, the points as `embeddings`, and the arrays of its space."""
    arrays = {name: getattr(embedding, name) for name in (*ROWS, *NAMES, "edge_index")}
    save_arrays(path, {**arrays, "embeddings": embedding.points, **embedding.space.arrays()})


def load_embedding(path: Path) -> Embedding:
    """Read what `save_embedding` wrote, or refuse a file of another kind."""
    origin = "the run has not finished, or it writes no embedding."
    arrays = load_arrays(path, "embedding", origin, {"embeddings", "edge_index"})
    fields: dict[str, Any] = {name: arrays[name].tolist() for name in NAMES if name in arrays}
    fields |= {name: torch.from_numpy(arrays[name]) for name in ROWS if name in arrays}
    points, edge_index = (torch.from_numpy(arrays[name]) for name in ("embeddings", "edge_index"))
    if "conformal_factor" in arrays:
        flat = Euclidean(conformal_factor=float(arrays["conformal_factor"]))
        return Embedding(points, flat, edge_index, **fields)
    kappa = arrays["kappa"].reshape(-1).tolist()
    space = Stereographic(len(kappa), kappa, learnable=False)
    return Embedding(points, space, edge_index, **fields)


def picture(space: Manifold, points: Tensor) -> tuple[Tensor, Any]:
    """Points `[nodes, dim]` of any space on a manifold that can be stored and drawn."""
    drawn = space.picture(points)
    if drawn is None:
        return space.logmap0(points), Euclidean(conformal_factor=1.0)
    return drawn


@torch.no_grad()
def tangent_coordinates(points: Tensor, space: Euclidean | Stereographic) -> Tensor:
    """Points seen from their midpoint, with true distances from it, `[nodes, dim]` (float64).

    `lambda_m log_m(x)` with m the midpoint of all points with equal weights: coordinates in an
    orthonormal basis of the tangent space at m, so that components of different curvature
    are on one scale. In flat space the centred points, times the conformal factor.
    """
    points = points.double()
    middle = space.weighted_mean(points, lambda vectors: vectors.sum(-2, keepdim=True))
    tangent = space.logmap(middle.expand_as(points), points)
    return space.merge(space.split(tangent) * space.conformal_factor(middle).unsqueeze(-1))


def principal_components(coordinates: Tensor, count: int = 2) -> tuple[Tensor, list[float]]:
    """Principal components `[nodes, count]`, largest entries positive; shares of the variance."""
    if min(coordinates.shape) < count:
        raise UsageError(
            f"{count} principal components need at least {count} nodes and dimensions; "
            f"the embedding is {coordinates.shape[0]} x {coordinates.shape[1]}."
        )
    centred = coordinates - coordinates.mean(dim=0)
    _, singular, directions = torch.linalg.svd(centred, full_matrices=False)
    directions = directions[:count]
    leading = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    variance = singular.square()
    explained = variance[:count] / variance.sum().clamp(min=torch.finfo(variance.dtype).tiny)
    return centred @ (directions * leading.sign()).T, explained.tolist()
