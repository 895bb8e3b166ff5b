"""Learned filters of nodes: their coefficients, stored; clusters of them; their responses."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.layers.polynomials import response
from curvlab.results.files import arriving

EIGENVALUES = np.linspace(0, 2, 201)
"""Of the normalised Laplacian, at which responses are drawn."""


SAME = 1e-4
"""Filters are one if their responses differ by no more than this part of the largest: rounding."""


@dataclass(frozen=True)
class NodeFilters:
    """A polynomial filter of each node.

    Attributes:
        coefficients: `[nodes, orders + 1]`, see `TokenMixer.node_filters`.
        basis: of the polynomials, see `curvlab.layers.polynomials`.
        nodes: Their numbers in the dataset, if they may be a part of its nodes.
    """

    coefficients: Tensor
    basis: str
    nodes: Tensor | None = None


@dataclass(frozen=True)
class FilterCluster:
    """Nodes with similar filters.

    Attributes:
        share: of all nodes.
        mean: The response `[eigenvalues]` of the mean coefficients.
        low: 10th percentile of the members' responses.
        high: 90th percentile.
    """

    share: float
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def save_filters(path: Path, filters: NodeFilters) -> None:
    """Write filters to a NumPy archive."""
    arrays = {
        "coefficients": filters.coefficients.cpu().numpy(),
        "basis": np.array(filters.basis),
    }
    if filters.nodes is not None:
        arrays["nodes"] = filters.nodes.cpu().numpy()
    with arriving(path) as partial, partial.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def load_filters(path: Path) -> NodeFilters:
    """Read what `save_filters` wrote.

    Raises:
        UsageError: There is no such file, or it is not of this kind.
    """
    if not path.exists():
        raise UsageError(
            f"{path} is missing: runs of polyattn_mono, polyattn_cheb, unifilter_mono and "
            "unifilter_cheb write it; the models with more layers make no filter."
        )
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            nodes = torch.from_numpy(file["nodes"]) if "nodes" in file else None
            return NodeFilters(torch.from_numpy(file["coefficients"]), str(file["basis"]), nodes)
    except Exception as error:  # a damaged archive can raise nearly anything
        raise UsageError(f"{path} holds no filters: run the model again to write it.") from error


def filter_clusters(filters: NodeFilters, count: int) -> list[FilterCluster]:
    """k-means of the responses, the largest cluster first; fewer where fewer filters differ.

    Responses, not coefficients, since the polynomials of a basis are not orthogonal: coefficients
    that are far from each other can be nearly the same filter.

    Args:
        filters: of the nodes.
        count: clusters, at least 1.

    Raises:
        UsageError: There are more clusters than nodes, or a coefficient is not finite.
    """
    coefficients = filters.coefficients.double()
    if not 1 <= count <= len(coefficients):
        raise UsageError(f"--clusters {count} must lie between 1 and {len(coefficients)} nodes")
    if not bool(torch.isfinite(coefficients).all()):
        raise UsageError("the filters are not finite: the run has diverged.")
    points = torch.from_numpy(EIGENVALUES)
    responses = response(filters.basis, coefficients, points).numpy()
    if np.ptp(responses, axis=0).max() <= SAME * np.abs(responses).max():
        count = 1
    means = KMeans(count, n_init=4, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters")  # a few filters for all
        members = means.fit_predict(responses)
    clusters = []
    for label in np.unique(members):
        own = responses[members == label]
        low, high = np.percentile(own, [10, 90], axis=0)
        clusters.append(FilterCluster(len(own) / len(responses), own.mean(0), low, high))
    return sorted(clusters, key=lambda cluster: -cluster.share)
