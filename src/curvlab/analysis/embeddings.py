"""Embeddings on a manifold: stored in a file, and flattened to look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.manifolds import EmbeddingSpace, Euclidean, Space, Stereographic
from curvlab.results.files import arriving

ROWS = ("classes", "nodes", "parts")
"""Fields of an embedding that are numbers of its nodes."""

NAMES = ("ids", "class_names")
"""Fields of an embedding that are texts."""


@dataclass(frozen=True)
class Embedding:
    """Points `[nodes, dim]`, the space they lie in, and the graph `edge_index [2, edges]`.

    `classes [nodes]` is there if a node has one, `nodes [nodes]`, their numbers in the dataset, if
    the points may be of a part of its nodes. `parts [nodes]` says what a node is for: 0 training, 1
    validation, 2 test, -1 nothing. `ids [nodes]` and `class_names` are there if the data set has
    them.
    """

    points: Tensor
    space: Space
    edge_index: Tensor
    classes: Tensor | None = None
    nodes: Tensor | None = None
    ids: Sequence[str] | None = None
    class_names: Sequence[str] | None = None
    parts: Tensor | None = None


@torch.no_grad()
def in_components(points: Tensor, space: EmbeddingSpace) -> tuple[Tensor, Space]:
    """Points of a space that splits into components, at the same distances where there is one.

    Those of the Lorentz model become their stereographic images, in float64. No such space is like
    the pseudo-hyperboloid: its points become their logarithms at the origin, at other distances.
    """
    return space.in_components(points)


def save_embedding(path: Path, embedding: Embedding) -> None:
    """Write an embedding's fields and the space as arrays, atomically; the points are `embeddings`.

    The space is `kappa [components]`, or for a flat one `conformal_factor`, its distance over
    `|x - y|`.
    """
    arrays = {
        "embeddings": embedding.points.detach().cpu().numpy(),
        "edge_index": embedding.edge_index.cpu().numpy(),
    }
    for name in ROWS:
        rows = getattr(embedding, name)
        if rows is not None:
            arrays[name] = rows.cpu().numpy()
    for name in NAMES:
        words = getattr(embedding, name)
        if words is not None:
            arrays[name] = np.array(words, dtype=np.str_)
    arrays |= {name: np.asarray(value) for name, value in embedding.space.arrays().items()}
    with arriving(path) as partial, partial.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def load_embedding(path: Path) -> Embedding:
    """Read what `save_embedding` wrote.

    Raises:
        UsageError: There is no such file, or it is not of this kind.
    """
    if not path.exists():
        raise UsageError(f"{path} is missing: the run has not finished, or it writes no embedding.")
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            names = {name: file[name].tolist() for name in NAMES if name in file.files}
            arrays = {n: torch.from_numpy(file[n]) for n in file.files if n not in names}
        points, edge_index = arrays["embeddings"], arrays["edge_index"]
        fields: dict[str, Any] = {name: arrays[name] for name in ROWS if name in arrays}
        fields |= names
        if "conformal_factor" in arrays:
            flat = Euclidean(conformal_factor=float(arrays["conformal_factor"]))
            return Embedding(points, flat, edge_index, **fields)
        kappa = arrays["kappa"].reshape(-1).tolist()
    except Exception as error:  # a damaged archive can raise nearly anything
        raise UsageError(f"{path} is not an embedding: run the model again to write it.") from error
    space = Stereographic(len(kappa), kappa, learnable=False)
    return Embedding(points, space, edge_index, **fields)


@torch.no_grad()
def tangent_coordinates(points: Tensor, space: Space) -> Tensor:
    """Points seen from their midpoint, with true distances from it, `[nodes, dim]` (float64).

    `lambda_m log_m(x)` with m the midpoint of all points with equal weights: coordinates in an
    orthonormal basis of the tangent space at m, so that components of different curvature
    are on one scale. In flat space the centred points, times the conformal factor.
    """
    points = points.double()
    middle = space.midpoint(points, points.new_ones(len(points)))
    tangent = space.logmap(middle.expand_as(points), points)
    return space.merge(space.split(tangent) * space.conformal_factor(middle).unsqueeze(-1))


@dataclass(frozen=True)
class Projection:
    """Principal components `[nodes, count]` and the fraction of the variance each explains."""

    coordinates: Tensor
    explained: list[float]


def principal_components(coordinates: Tensor, count: int = 2) -> Projection:
    """Project onto the directions of largest variance; each direction's largest entry is positive.

    Raises:
        UsageError: Coordinates are not finite, or have fewer than `count` dimensions or rows.
    """
    if min(coordinates.shape) < count:
        raise UsageError(
            f"{count} principal components need at least {count} nodes and dimensions; "
            f"the embedding is {coordinates.shape[0]} x {coordinates.shape[1]}."
        )
    if not torch.isfinite(coordinates).all():
        raise UsageError("the embedding is not finite: the run has diverged.")
    centred = coordinates - coordinates.mean(dim=0)
    _, singular, directions = torch.linalg.svd(centred, full_matrices=False)
    directions = directions[:count]
    leading = directions.gather(1, directions.abs().argmax(dim=1, keepdim=True))
    variance = singular.square()
    explained = variance[:count] / variance.sum().clamp(min=torch.finfo(variance.dtype).tiny)
    return Projection(centred @ (directions * leading.sign()).T, explained.tolist())
