"""What every model is to a task."""

from abc import abstractmethod

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.manifolds import Space


class Encoder(nn.Module):
    """Maps a prepared graph to points, one a node, of `manifold_out`."""

    @property
    @abstractmethod
    def manifold_out(self) -> Space:
        """The space that the embeddings lie in."""

    @abstractmethod
    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""

    def __call__(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim]`."""
        return super().__call__(batch)
