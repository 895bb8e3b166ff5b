"""Polynomial tokens: a node's features filtered by each polynomial of a basis."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils.sparse import index2ptr

from curvlab.data.transforms.graph import GraphTransform, NormalisedAdjacency
from curvlab.errors import UsageError
from curvlab.graph.polynomials import polynomials
from curvlab.graph.sparse_matrix import neighbour_sums
from curvlab.options import NonNegativeInt, PositiveInt

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class PolynomialTokens(GraphTransform):
    """The tokens `h_k = (g_k(A) X)_v` of each node v, for k = 0, ..., orders.

    `A = D^{-1/2} (A + I) D^{-1/2}` with self-loops and `D^{-1/2} A D^{-1/2}` without. With
    `project_first`, where the tokens of projected features take less memory than those of the
    features, the graph gets the sparse `normalised_adj` instead. Source: PolyFormer, Table 1, with
    the operators of its code.

    Args:
        basis: polynomials, mono (powers) or cheb (Chebyshev).
        orders: highest order.
        self_loops: add one to every node; PolyFormer's code does so for mono only.
        dtype: numbers that tokens are kept in.
        dim: width that the model projects the features to.
        project_first: let the model propagate projected features where that needs less memory.
        features: Attribute of the graph that holds X.
    """

    cacheable = True
    writes = ("tokens",)
    alternatives = ("normalised_adj",)

    basis: Literal["mono", "cheb"] = "mono"
    orders: NonNegativeInt = 10
    self_loops: bool = True
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    dim: PositiveInt = 64
    project_first: bool = False
    features: str = "x"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reads = (self.features, "edge_index")

    @property
    def cache_key(self) -> str:
        """Name and options, without those that only choose."""
        loops = "loops" if self.self_loops else "bare"
        return f"tokens-{self.basis}-{self.orders}-{loops}-{self.dtype}"

    def resolve(self, data: Data) -> GraphTransform:
        x = data[self.features]
        stored = x.shape[1] * self._storage_dtype(x).itemsize
        projected = 2 * self.dim * torch.get_default_dtype().itemsize  # with their gradient
        if self.project_first and projected < stored:
            return NormalisedAdjacency(self.self_loops)
        return self

    def for_batches(self) -> GraphTransform:
        """Tokens, which a batch has rows of: an adjacency would lack the batch's neighbours."""
        return replace(self, project_first=False)

    def forward(self, data: Data) -> Data:
        """Add `tokens [nodes, orders + 1, features]` of a graph that is simple and undirected."""
        x = data[self.features]
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        product, roots = _random_walk(data.edge_index, x, self.self_loops)
        tokens = torch.empty(len(x), self.orders + 1, x.shape[1], dtype=self._storage_dtype(x))
        for order, signal in enumerate(polynomials(self.basis, self.orders, x / roots, product)):
            torch.mul(signal, roots, out=tokens[:, order])
        tokens[:, 0] = x  # not rounded
        if bool(x.isfinite().all()):  # else the features are refused
            check_finite(tokens)
        data.tokens = tokens
        return data

    def _storage_dtype(self, x: Tensor) -> torch.dtype:
        return x.dtype if self.dtype == "float32" else DTYPES[self.dtype]


def _random_walk(
    edge_index: Tensor, x: Tensor, self_loops: bool
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """Products with `P = D^{-1} A` of a simple undirected graph, and `D^{1/2}` `[nodes, 1]`.

    Every polynomial of the normalised matrix is `D^{1/2} g(P) D^{-1/2}`: a product scales once.
    """
    source, target = edge_index.contiguous()  # which index2ptr takes for granted
    if bool((source[1:] < source[:-1]).any()):
        order = source.argsort(stable=True)
        source = source[order]
        target = target[order]
    offsets = index2ptr(source, len(x))
    degree = (offsets.diff() + self_loops).clamp(min=1).to(x.dtype).unsqueeze(1)
    index = torch.int32 if len(target) < 2**31 else torch.int64
    neighbours = target.to(index)
    offsets = offsets.to(index)
    share = 1 / degree

    def product(signal: Tensor) -> Tensor:
        total = neighbour_sums(signal, neighbours, offsets)
        if self_loops:
            total += signal
        return total.mul_(share)

    return product, degree.sqrt()


def check_finite(tokens: Tensor) -> None:
    """Refuse tokens that float16 does not hold."""
    if tokens.dtype == torch.float16 and not bool(tokens.isfinite().all()):
        raise UsageError(
            "float16 holds no number above 65,504, which some tokens exceed: use "
            "model.token_dtype=bfloat16 or float32, or scale the features."
        )
