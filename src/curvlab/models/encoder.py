"""What every model is to a task."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, complete
from curvlab.layers.spaces import OnSpaces
from curvlab.manifolds import EmbeddingSpace, Euclidean


class LastPass(list[Tensor]):
    """Tensors of a model's last forward pass, which copies of the model do not have."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class Encoder(OnSpaces, nn.Module):
    """Maps a prepared graph to points, one a node, of `manifold_out`.

    Attributes:
        tied: why a trained model works on its own graph alone; empty for one that is inductive.
        directed: whether it can use the direction of edges, which only `normalised_adj` has.
        unused_parameters: whether a step may leave parameters without a gradient; several processes
            then look for them in every step.
    """

    revision = 2  # 2: dropout of features and embeddings draws four entries from one number
    tied: str = ""
    directed = False
    unused_parameters = False

    @property
    @abstractmethod
    def manifold_out(self) -> EmbeddingSpace:
        """The space that the embeddings lie in."""

    @property
    @abstractmethod
    def dim_out(self) -> int:
        """Width of the embeddings: their coordinates, which a Lorentz point has one more of."""

    @property
    def gives_logits(self) -> bool:
        """Whether the embeddings are the logits of the classes, so that no decoder follows."""
        return False

    @property
    def linear_maps(self) -> int:
        """Of how many equal parts the embeddings are, of which a linear decoder maps each alone."""
        return 1

    @abstractmethod
    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim_out]`."""

    @property
    def node_wise(self) -> bool:
        """Whether nodes never see each other, so that `of_nodes` makes no more than it returns."""
        return False

    def of_nodes(self, batch: Data, nodes: Tensor) -> Tensor:
        """Embeddings `[some nodes, dim_out]` of nodes, indices `[some nodes]`."""
        return self(batch).index_select(0, nodes)

    def auxiliary_loss(self) -> Tensor | None:
        """What the last forward pass adds to the loss of a training step; None for nothing."""
        return None

    def later_embeddings(self) -> list[Tensor]:
        """Further embeddings of the last training pass, whose mean loss is added to its loss."""
        return []

    def transforms(self) -> Sequence[GraphTransform]:
        """What makes the attributes that `forward` reads beside `x` and `edge_index`."""
        return ()

    def __call__(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim_out]`; what the graph lacks is computed once and kept on it.

        Raises:
            UsageError: the graph has no features, or is too small, or too large, for a transform.
        """
        complete(batch, self.transforms())
        return super().__call__(batch)


class FlatEncoder(Encoder):
    """An encoder into flat space with the ordinary distance.

    Attributes:
        dim: width of the embeddings; an encoder sets it.
    """

    dim: int

    def __init__(self) -> None:
        super().__init__()
        self.space = Euclidean(conformal_factor=1.0)

    @property
    def manifold_out(self) -> Euclidean:
        """Flat space."""
        return self.space

    @property
    def dim_out(self) -> int:
        """Width of the embeddings."""
        return self.dim
