"""Learned filters of nodes: storage of coefficients, clusters, responses."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from curvlab.analysis.arrays import load_arrays
from curvlab.errors import UsageError
from curvlab.layers.spectral_filters import response

FILE = "filters.npz"

EIGENVALUES = np.linspace(0, 2, 201)
"""Eigenvalues of the normalised Laplacian at which responses are drawn."""

SAME = 1e-4
"""Filters are one if their responses differ by no more than this part of the largest: rounding."""


@dataclass(frozen=True)
class FilterCluster:
    """The `share` of nodes with similar filters; mean, 10th and 90th percentile of responses."""

    share: float
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def load_filters(path: Path) -> dict[str, np.ndarray]:
    """Read a run's filters, or refuse a file of another kind.

    These are `coefficients [nodes, orders + 1]` of a polynomial `basis` and, where they may be of a
    part of the dataset, the numbers of its `nodes`.
    """
    models = "runs of polyattn_mono, polyattn_cheb, unifilter_mono and unifilter_cheb write it"
    origin = f"{models}; the models with more layers make no filter."
    return load_arrays(path, "filters", origin, {"coefficients", "basis"})


def filter_clusters(coefficients: np.ndarray, basis: str, count: int) -> list[FilterCluster]:
    """k-means of the responses, the largest cluster first; fewer where fewer filters differ."""
    from sklearn.cluster import KMeans

    if not 1 <= count <= len(coefficients):
        raise UsageError(f"--clusters {count} must lie between 1 and {len(coefficients)} nodes")
    polynomials = torch.from_numpy(coefficients).double()
    responses = response(basis, polynomials, torch.from_numpy(EIGENVALUES)).numpy()
    if np.ptp(responses, axis=0).max() <= SAME * np.abs(responses).max():
        count = 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters")  # a few filters for all
        members = KMeans(count, n_init=4, random_state=0).fit_predict(responses)
    clusters = []
    for label in np.unique(members):
        members_responses = responses[members == label]
        low, high = np.percentile(members_responses, [10, 90], axis=0)
        clusters.append(
            FilterCluster(
                len(members_responses) / len(responses), members_responses.mean(0), low, high
            )
        )
    return sorted(clusters, key=lambda cluster: -cluster.share)
