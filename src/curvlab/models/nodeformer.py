"""NodeFormer: A scalable graph structure learning transformer for node classification.

Wu et al. 2022, arXiv:2306.08385. Messages pass along all pairs of nodes. Positive random features
estimate the softmax kernel, so that sums over nodes are computed once. Gumbel noise on the keys
samples edges. The edges of the graph enter by a bias and by a term of the loss.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import add_self_loops, degree

from curvlab.data.transforms.graph import GraphTransform, complete
from curvlab.data.transforms.relations import NeighbourRelations
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.graph.sparse_matrix import SparseMatrix, as_matrix
from curvlab.layers.elementwise import dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.manifolds.kernels import upcast_half
from curvlab.models.encoder import FlatEncoder
from curvlab.options import Dropout, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

STABILISER = 1e-6


def orthogonal_directions(count: int, dim: int, template: Tensor) -> Tensor:
    """Gaussian vectors `[count, dim]` that are orthogonal within each block of `dim` of them.

    R of `A = Q R` has a positive diagonal. With other signs the mean is not 0, and estimates are
    biased.
    """
    blocks = torch.randn(-(-count // dim), dim, dim, device=template.device, dtype=template.dtype)
    q, r = torch.linalg.qr(blocks)
    signs = torch.sign(r.diagonal(dim1=1, dim2=2)).unsqueeze(-1)
    units = (signs * q.transpose(1, 2)).flatten(0, 1)[:count]
    lengths = torch.randn(count, dim, device=template.device, dtype=template.dtype).norm(dim=1)
    return lengths.unsqueeze(1) * units


def positive_features(x: Tensor, directions: Tensor, max_axes: tuple[int, ...]) -> Tensor:
    r"""Features whose products estimate `exp(<x, y> / sqrt(dim))` up to a factor for each row.

    `phi_m(x) = (exp(<w_m, x> / dim^(1/4) - |x|^2 / (2 sqrt(dim)) - max) + 1e-6) / sqrt(M)`.

    Shapes: `[..., nodes, dim]`, directions w `[M, dim]`; returns `[..., nodes, M]`.

    The maximum is over `max_axes`: the last axis for queries, whose factor cancels in each row, and
    the last two for keys, which must have a common factor.

    Source: NodeFormer (Wu et al. 2022), after Performer (Choromanski et al. 2021).
    """
    count, dim = directions.shape
    half_square = x.square().sum(-1, keepdim=True) / (2 * dim**0.5)
    exponent = (x @ directions.T) / dim**0.25 - half_square
    exponent = exponent - exponent.detach().amax(max_axes, keepdim=True)
    return (exponent.exp() + STABILISER) / count**0.5


def kernel_attention(q: Tensor, k: Tensor, v: Tensor, noise: Tensor | None = None) -> Tensor:
    r"""Attention `q [k^T v] / q [k^T 1]` of features; with noise, the mean over samples.

    The keys of sample s are `k_n exp(noise_ns)`.

    Shapes: q, k `[heads, nodes, M]`, v `[heads, nodes, dim]`, noise `[heads, nodes, samples]`;
    returns `[heads, nodes, dim]`.
    """
    if noise is None:
        return q @ (k.transpose(1, 2) @ v) / (q @ k.sum(1).unsqueeze(-1))
    # The largest noise of a sample cancels; subtracting it keeps the weights finite.
    weights = (noise - noise.amax(1, keepdim=True)).exp()
    normalisers = q @ (k.transpose(1, 2) @ weights)
    sums = _pairwise_products(k, weights).transpose(1, 2) @ v
    return _pairwise_products(q, 1 / (noise.shape[-1] * normalisers)) @ sums


def _pairwise_products(x: Tensor, y: Tensor) -> Tensor:
    """Products of the features of each node, `[heads, nodes, M]` by `[heads, nodes, samples]`."""
    return (x.unsqueeze(-1) * y.unsqueeze(-2)).flatten(2)


def edge_logarithms(q: Tensor, k: Tensor, edge_index: Tensor) -> Tensor:
    """Logarithms `[heads, edges]` of the weight that each edge's target gives its source.

    Shapes: features q, k `[heads, nodes, M]`, `[2, edges]`.
    """
    source, target = edge_index
    mass = (q @ k.sum(1).unsqueeze(-1)).squeeze(-1)
    pairs = (q.index_select(1, target) * k.index_select(1, source)).sum(-1)
    return pairs.log() - mass.index_select(1, target).log()


def relational_bias(v: Tensor, weights: Tensor, relations: Tensor | SparseMatrix) -> Tensor:
    """`sum_r weights_rh A_r v_h` for symmetric A_r; half precision is converted to float32.

    Shapes: `[nodes, heads, dim]`, `[orders, heads]`, A_r in blocks `[orders * nodes, nodes]`,
    sparse; returns `[nodes, heads, dim]`.
    """
    spread = (as_matrix(relations) @ v.flatten(1)).view(-1, *v.shape)
    with torch.autocast(v.device.type, enabled=False):
        return torch.einsum("rh,rnhd->nhd", upcast_half(weights), spread)


class KernelAttention(nn.Module):
    """One layer of NodeFormer: attention of all pairs plus the relational bias, then a linear map.

    Queries and keys are divided by `sqrt(tau)`. Each training step draws new directions of the
    features and adds Gumbel noise `g / tau` to the exponents of the keys; evaluation uses the
    initial directions and no noise. The bias adds `sigmoid(b_r) A_r v` for every relation and head.

    Shapes: nodes `[nodes, dim]`, relations as in `relational_bias`, `edge_index [2, edges]` with
    loops; returns `[nodes, dim]` and the edge term: the mean over edges and heads of
    `log(weight) / d`, with weights without noise and d the number of edges of the target (None
    without `edge_index`).
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        head_dim: int,
        random_features: int,
        samples: int,
        temperature: float,
        orders: int,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.samples = samples
        self.temperature = temperature
        self.queries = nn.Linear(dim, heads * head_dim)
        self.keys = nn.Linear(dim, heads * head_dim)
        self.values = nn.Linear(dim, heads * head_dim)
        self.mix = nn.Linear(heads * head_dim, dim)
        self.bias = nn.Parameter(torch.full((orders, heads), 0.1)) if orders else None
        directions = orthogonal_directions(random_features, head_dim, self.queries.weight.detach())
        self.directions: Tensor = nn.Buffer(directions)

    def forward(
        self, x: Tensor, relations: Tensor | SparseMatrix | None, edge_index: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        v = self.values(x).unflatten(-1, (self.heads, -1))
        directions = self.directions
        noise = None
        term = None
        if self.training:
            directions = orthogonal_directions(len(directions), directions.shape[1], directions)
        root = self.temperature**0.5
        q = self.queries(x).unflatten(-1, (self.heads, -1)).transpose(0, 1) / root
        k = self.keys(x).unflatten(-1, (self.heads, -1)).transpose(0, 1) / root
        q = positive_features(q, directions, max_axes=(-1,))
        k = positive_features(k, directions, max_axes=(-2, -1))
        if self.training:
            exponential = k.new_empty(*k.shape[:2], self.samples).exponential_()
            noise = -exponential.log() / self.temperature
        out = kernel_attention(q, k, v.transpose(0, 1), noise).transpose(0, 1)
        if self.bias is not None and relations is not None:
            out = out + relational_bias(v, self.bias.sigmoid(), relations)
        if edge_index is not None:
            degrees = degree(edge_index[1], len(x), q.dtype).index_select(0, edge_index[1])
            term = (edge_logarithms(q, k, edge_index) / degrees).mean()
        return self.mix(out.flatten(1)), term


class NodeFormer(FlatEncoder):
    r"""Graph to node embeddings by a few layers of `KernelAttention`.

    `x <- drop(elu(LN(W x + b)))`, then for each layer `x <- drop(LN(attention(x) + x))`.

    Args:
        head_dim: width of a head; null: `dim`.
        dropout: dropout of every layer's output.
        random_features: number of random features that estimate the softmax.
        gumbel_samples: number of noise samples in training, over which attention is averaged.
        temperature: temperature of softmax and noise.
        orders: number of orders of the relational bias (neighbours at most 1, 2, ... steps away); 0
            for no bias.
        edge_loss: weight of the loss term for the attention to the graph's edges.
        jumping_knowledge: concatenate the outputs of all layers, including the first map.

    Shapes: a batch with `x`, `edge_index` and `relations`; returns `[nodes, dim]`, with
    `jumping_knowledge` `[nodes, (layers + 1) dim]`.

    Source: NodeFormer (Wu et al. 2022) and its released code, with three differences: directions
    have mean 0; the maximum in the features is that of the whole exponent, so that long queries do
    not vanish next to the 1e-6; evaluation draws no random numbers.

    Default: no edge term in the loss. The paper adds one; `edge_loss` is its weight.
    """

    def __init__(
        self,
        in_channels: int,
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        heads: PositiveInt = 2,
        head_dim: PositiveInt | None = None,
        dropout: Dropout = 0.0,
        random_features: PositiveInt = 30,
        gumbel_samples: PositiveInt = 10,
        temperature: PositiveFloat = 0.25,
        orders: NonNegativeInt = 1,
        edge_loss: NonNegativeFloat = 0.0,
        jumping_knowledge: bool = False,
    ) -> None:
        super().__init__()
        self.features = FeatureLinear(in_channels, dim)
        self.feature_norm = nn.LayerNorm(dim)
        self.layers = nn.ModuleList(
            KernelAttention(
                dim, heads, head_dim or dim, random_features, gumbel_samples, temperature, orders
            )
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.dropout = dropout
        self.edge_loss = edge_loss
        self.orders = orders
        self.transforms = self.required_transforms({"orders": orders})
        self.jumping_knowledge = jumping_knowledge
        self.dim_out = (layers + 1) * dim if jumping_knowledge else dim

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        return (NeighbourRelations(options["orders"]),) if options["orders"] else ()

    def training_loss(
        self, batch: Data, loss: Callable[[Tensor], Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        """The task's loss minus the weighted edge term, if the graph has edges."""
        if not self.edge_loss or not batch.num_edges:
            return super().training_loss(batch, loss, nodes)
        complete(batch, self.transforms)
        edges, _ = add_self_loops(batch.edge_index, num_nodes=batch.num_nodes)
        embeddings, terms = self._pass(batch, edges)
        if nodes is not None:
            embeddings = embeddings.index_select(0, nodes)
        return loss(embeddings) - self.edge_loss * torch.stack(terms).mean()

    def forward(self, batch: Data) -> Tensor:
        return self._pass(batch, None)[0]

    def _pass(self, batch: Data, edges: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Embeddings, and the edge terms of the layers if `edges [2, edges]` is not None."""
        graph = SparseGraph.from_data(batch)
        relations = graph.matrix("relations") if self.orders else None
        x = F.elu(self.feature_norm(self.features(graph.features)))
        outputs: list[Tensor] = [dropout(x, self.dropout, self.training)]
        terms: list[Tensor] = []
        for attention, norm in zip(self.layers, self.norms, strict=True):
            mixed, term = attention(outputs[-1], relations, edges)
            x = norm(mixed + outputs[-1])
            outputs.append(dropout(x, self.dropout, self.training))
            if term is not None:
                terms.append(term)
        embeddings = torch.cat(outputs, -1) if self.jumping_knowledge else outputs[-1]
        return embeddings, terms
