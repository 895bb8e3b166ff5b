"""Graph transforms, computed once before training."""

import logging
from abc import ABC
from collections.abc import Iterable, Mapping
from copy import copy
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, cast

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import add_remaining_self_loops

from curvlab.checked import CheckedFields
from curvlab.data.files.cache import fingerprint, get_or_compute
from curvlab.data.files.cleaning import simple_edges
from curvlab.data.transforms.eigenvectors import smallest_eigenvectors
from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.graph.sparse_matrix import inverse_roots, sparse_rows
from curvlab.options import NonNegativeFloat, PositiveInt

MAX_IDENTITY_NODES = 20_000  # a dense float32 identity of this size takes 1.6 GB

log = logging.getLogger(__name__)


class GraphTransform(CheckedFields, BaseTransform, ABC):
    """A transform that adds tensors of torch's default type to a graph.

    Attributes:
        reads: attributes that it depends on.
        writes: attributes that it adds.
        cacheable: whether results are cached on disk; it is then a function of `reads`, `cache_key`
            and torch's default type alone. Others may draw from torch's global generator.
        of_pairs: whether its result is a dense matrix of nodes by nodes.
        revision: raised whenever the same graph gets other tensors than before, for the disk cache.
        transductive_reason: why a model trained with it works on its own graph alone, or empty.
        fitted: values taken from the first graph and applied to later ones.
        alternatives: attributes; one of them replaces what it writes.
    """

    cacheable = False
    of_pairs = False
    revision = 1
    transductive_reason = ""
    fitted = cast(Mapping[str, Tensor], MappingProxyType({}))
    reads = cast(tuple[str, ...], ())
    writes: ClassVar[tuple[str, ...]] = ()
    alternatives: ClassVar[tuple[str, ...]] = ()

    @property
    def cache_key(self) -> str:
        """Class and arguments, the same on every machine."""
        names = signature(type(self)).parameters
        values = [str(getattr(self, name)) for name in names]
        return "-".join([type(self).__name__, *values])

    def resolve(self, data: Data) -> "GraphTransform":  # noqa: ARG002
        """Return the transform to apply to a graph: this one by default."""
        return self

    def for_batches(self) -> "GraphTransform":
        """Return the transform of a graph that batches are cut from: this one by default."""
        return self


def apply_transform(transform: GraphTransform, data: Data, cache_dir: str | Path | None) -> Data:
    """Apply a transform, through the disk cache if it is cacheable and there is a folder."""
    transform = transform.resolve(data)
    if cache_dir is None or not transform.cacheable:
        return transform(data)

    def compute() -> dict[str, Tensor]:
        result = transform(data)
        return {name: result[name] for name in transform.writes}

    number = str(torch.get_default_dtype()).removeprefix("torch.")
    key = f"{transform.cache_key}-{number}-{fingerprint(data, transform.reads)[:32]}"
    data = data.clone()
    data.update(get_or_compute(cache_dir, key, compute, transform.revision))
    return data


@torch.compiler.disable
def complete(data: Data, transforms: Iterable[GraphTransform]) -> None:
    """Add to a graph, in place, what some transforms write and it lacks.

    Tensors of torch's default type get the type of `x`. An output is recomputed once what it reads
    has been edited; a given one is taken as it is.
    """
    if "edge_index" in data and not {"x", "tokens"}.intersection(data.keys()):
        raise UsageError(
            "the graph has no features: set data.x [nodes, in_channels], or apply "
            "curvlab.data.transforms.graph.IdentityFeatures to it"
        )
    graph = SparseGraph.from_data(data)
    for transform in transforms:
        present = [n for n in (*transform.writes, *transform.alternatives) if n in data]
        outdated = [name for name in present if graph.is_outdated(name)]
        if present and not outdated:
            continue
        for name in outdated:
            del data[name]
        transformed = transform(copy(data).cpu())
        for name in transform.writes:
            is_default = transformed[name].dtype == torch.get_default_dtype()
            data[name] = transformed[name].to(data.x.device, data.x.dtype if is_default else None)
        remember(data, transform)


def remember(data: Data, transform: GraphTransform) -> None:
    """Record what a transform has added to a graph, for `complete`."""
    if set(transform.reads).isdisjoint(transform.writes):
        SparseGraph.from_data(data).remember(transform.writes, transform.reads)


class IdentityFeatures(GraphTransform):
    """Dense one-hot node features plus noise, `x = I + U(-noise, noise)`, `[nodes, nodes]`.

    The noise is drawn from torch's global generator: seed it. Source: FPS-T, reconstruction.

    Args:
        noise: half-width of the uniform noise on every entry.
    """

    writes = ("x",)
    transductive_reason = "its features have a column for every node"

    noise: NonNegativeFloat = 0.02

    def forward(self, data: Data) -> Data:
        nodes = int(data.num_nodes or 0)
        if nodes > MAX_IDENTITY_NODES:
            raise UsageError(
                f"identity features for {nodes:,} nodes would be a dense matrix of "
                f"{4e-9 * nodes**2:.1f} GB: use a graph of at most {MAX_IDENTITY_NODES:,} nodes, "
                "or a dataset that has features."
            )
        x = (torch.rand(nodes, nodes) * 2 - 1).mul_(self.noise)
        x.diagonal().add_(1)
        data.x = x
        return data


class LaplacianEigenvectors(GraphTransform):
    """Eigenvectors of the normalised Laplacian with the k smallest eigenvalues.

    `L = I - D^{-1/2} A D^{-1/2}`, degrees clipped at 1, trivial eigenvector included, columns by
    ascending eigenvalue, each of unit norm, its largest entry positive. Each component is solved
    alone, so that eigenvalue 0 has the indicator-like basis; a node without neighbours has
    eigenvalue 1. Where an eigenvalue repeats within a component, see `largest_eigenpairs`: the
    basis is the same on every machine. Source: TokenGT's node identifiers, FPS-T Sec. 4.3.

    Args:
        k: number of eigenvectors; a graph of fewer nodes has columns of zeros after its own.
    """

    revision = 2  # 2: the basis where an eigenvalue repeats is the same on every machine
    cacheable = True
    reads = ("edge_index",)
    writes = ("eigenvectors",)
    transductive_reason = "it reads eigenvectors of its graph, which no other graph shares"

    k: PositiveInt = 32

    def forward(self, data: Data) -> Data:
        """Add `eigenvectors [nodes, k]`."""
        nodes = int(data.num_nodes or 0)
        if self.k > nodes:
            log.warning(
                "the graph has %d Laplacian eigenvectors: the other %d of k=%d columns are 0",
                *(nodes, self.k - nodes, self.k),
            )
        adjacency = normalised_adjacency_matrix(data.edge_index, nodes)
        vectors = smallest_eigenvectors(adjacency, self.k)
        data.eigenvectors = torch.from_numpy(vectors).to(torch.get_default_dtype())
        return data


class SparseAdjacency(GraphTransform):
    """The adjacency as a sparse matrix, for layers that aggregate by a matrix product.

    `adj_t[v, u] = 1` for every edge from u to v (rows are targets).

    Args:
        self_loops: add one to every node that has none.
    """

    reads = ("edge_index",)
    writes = ("adj_t",)

    self_loops: bool = False

    def forward(self, data: Data) -> Data:
        nodes = int(data.num_nodes or 0)
        edges = data.edge_index
        if self.self_loops:
            edges, _ = add_remaining_self_loops(edges, num_nodes=nodes)
        data.adj_t = sparse_rows(edges[1], edges[0], torch.ones(edges.shape[1]), (nodes, nodes))
        return data


class NormalisedAdjacency(GraphTransform):
    """The normalised adjacency as a sparse matrix, `D^{-1/2} A D^{-1/2}`, or `D^{-1} A`.

    `normalised_adj[v, u] = 1 / sqrt(deg(v) deg(u))` for every edge from u to v (rows are targets),
    with the number of incoming edges for degree, and 0 where a degree is 0. `edge_weight [edges]`
    multiplies entries and counts in degrees; a self-loop weighs 1. With `edge_forward [edges]` only
    edges for which it is true count, by `1 / deg(v)`. Source: GCN; without self-loops SGFormer's
    and Hypformer's code.

    Args:
        self_loops: add one to every node that has none first; degrees count it.
    """

    reads = ("edge_index", "edge_weight", "edge_forward")
    writes = ("normalised_adj",)

    self_loops: bool = True

    def forward(self, data: Data) -> Data:
        nodes = int(data.num_nodes or 0)
        edges = data.edge_index
        weight = data.get("edge_weight")
        if weight is not None:
            weight = weight.double()
        forward = data.get("edge_forward")
        if forward is not None:
            edges = edges[:, forward]
            if weight is not None:
                weight = weight[forward]
        if self.self_loops:
            edges, weight = add_remaining_self_loops(edges, weight, num_nodes=nodes)
        source, target = edges
        weights = normalised_weights(source, target, nodes, weight, directed=forward is not None)
        weights = weights.to(torch.get_default_dtype())
        data.normalised_adj = sparse_rows(target, source, weights, (nodes, nodes))
        return data


def normalised_weights(
    source: Tensor,
    target: Tensor,
    nodes: int,
    weight: Tensor | None = None,
    directed: bool = False,
) -> Tensor:
    """Entries `[edges]` of `D^{-1/2} A D^{-1/2}`, or of `D^{-1} A` if directed, in float64.

    D sums the weights of the edges to a node, ones by default.
    """
    degree = torch.bincount(target, weight, minlength=nodes)
    scale = inverse_roots(degree.double())
    weights = scale[target if directed else source] * scale[target]
    return weights if weight is None else weights * weight


def normalised_matrix(edges: Tensor, nodes: int) -> csr_array:
    """`D^{-1/2} A D^{-1/2}` of distinct edges `[2, edges]`, rows their targets, in float64."""
    source, target = edges.cpu()
    weights = normalised_weights(source, target, nodes)
    return csr_array((weights.numpy(), (target.numpy(), source.numpy())), shape=(nodes, nodes))


def normalised_adjacency_matrix(edge_index: Tensor, num_nodes: int) -> csr_array:
    """`D^{-1/2} A D^{-1/2}` of the simple undirected graph, in float64."""
    return normalised_matrix(simple_edges(edge_index, num_nodes), num_nodes)
