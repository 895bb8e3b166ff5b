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

NODE_FIELDS = ("classes", "nodes")  # fields of an embedding with a number for each node
NAME_FIELDS = ("ids", "class_names")  # fields of an embedding with texts


@dataclass(frozen=True)
class Embedding:
    """Points `[nodes, dim]`, the space they lie in, and the graph `edge_index [2, edges]`."""

    points: Tensor
    space: Euclidean | Stereographic
    edge_index: Tensor
    classes: Tensor | None = None
    nodes: Tensor | None = None  # nodes of the data set, if the points may be a part of them
    ids: Sequence[str] | None = None
    class_names: Sequence[str] | None = None


def save_embedding(path: Path, embedding: Embedding) -> None:
    """Write an embedding's fields, the points as `embeddings`, and the arrays of its space."""
    fields = (*NODE_FIELDS, *NAME_FIELDS, "edge_index")
    arrays = {name: getattr(embedding, name) for name in fields}
    arrays["embeddings"] = embedding.points
    save_arrays(path, {**arrays, **embedding.space.arrays()})


def load_embedding(path: Path) -> Embedding:
    """Read a file of `save_embedding`, or refuse a file of another kind."""
    origin = "the run has not finished, or it writes no embedding."
    arrays = load_arrays(path, "embedding", origin, {"embeddings", "edge_index"})
    fields = dict[str, Any]()
    for name in NAME_FIELDS:
        if name in arrays:
            fields[name] = arrays[name].tolist()
    for name in NODE_FIELDS:
        if name in arrays:
            fields[name] = torch.from_numpy(arrays[name])
    points = torch.from_numpy(arrays["embeddings"])
    edge_index = torch.from_numpy(arrays["edge_index"])
    space: Euclidean | Stereographic
    if "conformal_factor" in arrays:
        space = Euclidean(conformal_factor=float(arrays["conformal_factor"]))
    else:
        kappa = arrays["kappa"].reshape(-1).tolist()
        space = Stereographic(len(kappa), kappa, learnable=False)
    return Embedding(points, space, edge_index, **fields)


def picture(space: Manifold, points: Tensor) -> tuple[Tensor, Any]:
    """Map points `[nodes, dim]` of any space to a manifold that can be stored and drawn."""
    points_and_space = space.picture(points)
    if points_and_space is None:
        return space.logmap0(points), Euclidean(conformal_factor=1.0)
    return points_and_space


@torch.no_grad()
def tangent_coordinates(points: Tensor, space: Euclidean | Stereographic) -> Tensor:
    """Coordinates in the tangent space at the points' midpoint, `[nodes, dim]` (float64).

    `lambda_m log_m(x)` with m the midpoint of all points with equal weights. The basis is
    orthonormal, so that norms are distances from m, and components of different curvature have one
    scale. In flat space the result is the centred points, times the conformal factor.
    """
    points = points.double()
    midpoint = space.weighted_mean(points, lambda vectors: vectors.sum(-2, keepdim=True))
    tangent = space.logmap(midpoint.expand_as(points), points)
    factor = space.conformal_factor(midpoint).unsqueeze(-1)
    return space.merge(space.split(tangent) * factor)


def principal_components(coordinates: Tensor, count: int = 2) -> tuple[Tensor, list[float]]:
    """Principal components `[nodes, count]` and their shares of the variance.

    The largest entry of each direction is positive.
    """
    if min(coordinates.shape) < count:
        raise UsageError(
            f"{count} principal components need at least {count} nodes and dimensions; "
            f"the embedding is {coordinates.shape[0]} x {coordinates.shape[1]}."
        )
    centred = coordinates - coordinates.mean(dim=0)
    _, singular, directions = torch.linalg.svd(centred, full_matrices=False)
    directions = directions[:count]
    largest = directions.abs().argmax(dim=1, keepdim=True)
    signs = directions.gather(1, largest).sign()
    variance = singular.square()
    total = variance.sum().clamp(min=torch.finfo(variance.dtype).tiny)
    shares = variance[:count] / total
    return centred @ (directions * signs).T, shares.tolist()
