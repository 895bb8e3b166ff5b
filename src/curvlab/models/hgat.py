"""HGAT: HGCN with the attention of its released code (Chami et al. 2019, arXiv:1910.12933)."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from curvlab.layers.sparse_graph import SparseMatrix
from curvlab.manifolds import PoincareBall, Stereographic
from curvlab.models.hgcn import HGCN
from curvlab.options import SpaceMaker


class HGAT(HGCN):
    r"""HGCN with weighted neighbours: `mean_N(sigmoid(a^T [u_i ; u_j] + b) u_j)`.

    `u` are the logarithms that HGCN takes the mean of; the weights do not add up to 1.

    Args:
        in_channels: number of input features.
        manifold: makes the space of a layer.
        **options: those of `CurvedGCN`.

    Source: HGCN's code with attention, which is what Hypformer's Table 2 calls HGAT.
    """

    def __init__(
        self,
        in_channels: int,
        manifold: SpaceMaker[Stereographic] = PoincareBall,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, manifold, **options)
        self.attentions = nn.ModuleList(nn.Linear(2 * self.dim, 1) for _ in range(self.depth))

    def aggregate(self, layer: int, adjacency: SparseMatrix, u: Tensor) -> Tensor:
        """The weighted mean; a score is a sum of two numbers, the target's and the source's."""
        target, source = adjacency.ends
        attention = self.attentions[layer]
        assert isinstance(attention, nn.Linear)
        of_target, of_source = F.linear(u, attention.weight.view(2, -1)).unbind(-1)
        scores = of_target.index_select(0, target) + of_source.index_select(0, source)
        scores = scores + attention.bias
        messages = scores.sigmoid().unsqueeze(-1) * u.index_select(0, source)
        sums = messages.new_zeros(u.shape).index_add(0, target, messages)
        return sums / adjacency.degrees.clamp(min=1).unsqueeze(-1)
