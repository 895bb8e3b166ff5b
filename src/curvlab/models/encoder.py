"""The base of all models."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Self, overload

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from curvlab.data.transforms.graph import GraphTransform, complete
from curvlab.errors import UsageError
from curvlab.graph.inputs import check_inputs, graph_of
from curvlab.layers.spaces import TakesManifold, manifold_class
from curvlab.manifolds import Euclidean, Manifold, Product


class Encoder(TakesManifold, nn.Module):
    """Maps a prepared graph to points of `manifold_out`, one per node.

    It is called with a graph, `model(data)`, or with tensors, `model(x, edge_index)`.

    The defaults are the formula of the class's paper in a small size: `dim`, `layers`, `heads` and
    `dropout` are not the paper's. The paper's settings are recipes (`configs/recipe`).

    Args:
        in_channels: Number of input features of a node.
        manifold: factory of the space.
        dim: width of the embeddings.
        layers: number of layers.
        heads: number of attention heads, a divisor of `dim`.
        classes: Number of classes, the width of the output with `logits`.
        num_classes: Number of classes, the width of the output.
        logits: output the logits; False: embeddings of width `dim`.

    Attributes:
        tasks: Tasks that the model supports; empty for all tasks on graphs.
        transductive_reason: Reason why a trained model works on its own graph only; empty if the
            model is inductive.
        weighted: Whether the model uses `edge_weight`; so does a model whose transforms use it.
        edgeless: Whether the model uses no edges, so that `model(x)` suffices.
        directed: Whether the model can use the direction of edges, which only `normalised_adj` has.
        whole_graph: Whether every step needs the whole graph.
        node_wise: Whether nodes do not interact, so that `forward_nodes` embeds only its nodes.
        takes_tokens: Whether the model reads only the polynomial tokens of the nodes.
        unused_parameters: Whether a step may leave parameters without a gradient.
        gives_logits: Whether the embeddings are the logits, so that no decoder follows.
        linear_maps: number of equal-width branches concatenated in the embedding.
        transforms: Transforms that compute the attributes that `forward` reads besides `x` and
            `edge_index`; if they depend on options, `required_transforms` returns them.
        dim_out: Number of coordinates of an embedding, time included. A constructor sets it.
        space: Space of the embeddings. A constructor sets it, or a property gives `manifold_out`.
    """

    revision = 2  # 2: dropout of features and embeddings draws four entries from one number
    tasks: tuple[str, ...] = ()
    transductive_reason = ""
    weighted = False
    edgeless = False
    directed = False
    whole_graph = False
    node_wise = False
    takes_tokens = False
    unused_parameters = False
    gives_logits = False
    linear_maps = 1
    transforms: Sequence[GraphTransform] = ()
    in_channels: int | None
    dim_out: int
    space: Manifold

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Keep the number of input features, for the check of inputs."""
        model = super().__new__(cls, *arguments, **options)
        try:
            bound = signature(cls.__init__).bind_partial(model, *arguments, **options).arguments
        except TypeError:  # the constructor reports it
            bound = {}
        vars(model)["in_channels"] = bound.get("in_channels")
        return model

    @property
    def manifold_out(self) -> Manifold:
        return self.space

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:  # noqa: ARG003
        """Transforms that a model with these options needs, known before the model is built.

        A run applies them once to its graph. In a library, `__call__` applies `transforms`, without
        the ones that divide the nodes into parts. Changing what a transform writes requires a new
        `revision` of the models that need it.

        Args:
            options: The constructor's options by name, defaults included.
        """
        return cls.transforms

    def statistics(self, batch: Data, points: Tensor | None = None) -> dict[str, Tensor]:  # noqa: ARG002
        """Scalars by name that describe a forward pass in evaluation mode, without another pass.

        Each scalar is a mean over the rows of one batch. The evaluation averages it over batches,
        weighted by their rows, and over processes. A model that several processes evaluate declares
        the names in `statistic_names`, so that a process without a batch knows them. The default
        statistics are the shares of points at limits of their coordinates (`at_rim`,
        `beyond_equator`; see `Manifold.shares`).

        Args:
            batch: The graph, or the queries, of the last pass.
            points: The embeddings of that pass; None if the caller has only scores.
        """
        return {} if points is None else self.manifold_out.shares(points)

    @abstractmethod
    def forward(self, batch: Data) -> Tensor:
        """Embeddings `[nodes, dim_out]`."""

    def forward_nodes(self, batch: Data, nodes: Tensor) -> Tensor:
        """Embeddings `[some nodes, dim_out]` of nodes, indices `[some nodes]`."""
        return self(batch).index_select(0, nodes)

    def training_loss(
        self, batch: Data, loss: Callable[[Tensor], Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        """Loss of a training step: the task's loss of the embeddings.

        A model with further terms, or with several embeddings, overrides this.

        Args:
            batch: The prepared graph.
            loss: The task's loss of embeddings, points of `manifold_out`.
            nodes: Nodes `[some nodes]` whose embeddings `loss` takes; None: all, in their order.
        """
        if nodes is None:
            return loss(self(batch))
        return loss(self.forward_nodes(batch, nodes))

    @overload
    def __call__(self, batch: Data, /) -> Tensor: ...

    @overload
    def __call__(
        self, x: Tensor, edge_index: Tensor | None = None, edge_weight: Tensor | None = None
    ) -> Tensor: ...

    def __call__(
        self,
        x: Data | Tensor,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Embeddings `[nodes, dim_out]` of a graph, or of its tensors.

        Missing attributes are computed once and kept on the `Data`; for tensors, as long as
        `edge_index` lives.

        Args:
            x: The graph, alone; or its features `[nodes, in_channels]`.
            edge_index: Edges `[2, edges]`, both directions of each.
            edge_weight: Weights `[edges]`, for models that use them.

        Raises:
            UsageError: the graph has no features, is too small, or too large, for a transform, or
                a tensor has another shape or type than the model takes.
        """
        batch = self._as_graph(x, edge_index, edge_weight)
        self.check(batch)
        complete(batch, self.transforms)
        return super().__call__(batch)

    def check(self, batch: Data) -> None:
        """Refuse a batch that the model cannot take, in one sentence."""
        weighted = self.weighted or any("edge_weight" in t.reads for t in self.transforms)
        weights = next(self.parameters(), None)
        check_inputs(type(self).__name__, batch, self.in_channels, weights, weighted)

    def _as_graph(self, x: Any, edge_index: Tensor | None, edge_weight: Tensor | None) -> Data:
        name = type(self).__name__
        if isinstance(x, Data):
            if edge_index is not None or edge_weight is not None:
                raise UsageError(
                    f"{name}: the graph has edges of its own: call it with the graph alone, or "
                    "with x, edge_index and edge_weight"
                )
            return x
        if not isinstance(x, Tensor):
            raise UsageError(
                f"{name} takes a graph (torch_geometric.data.Data) or tensors x and edge_index, "
                f"not {type(x).__name__}"
            )
        if edge_index is None and self.edgeless:
            edge_index = torch.empty(2, 0, dtype=torch.long, device=x.device)
        if not isinstance(edge_index, Tensor):
            raise UsageError(
                f"{name} needs edges next to x: call it with x [nodes, in_channels] and "
                f"edge_index [2, edges], not {type(edge_index).__name__}"
            )
        derived = tuple(transform.cache_key for transform in self.transforms)
        return graph_of(x, edge_index, edge_weight, derived)


class FlatEncoder(Encoder):
    """An encoder into flat space with the ordinary distance; its constructor sets `dim_out`."""

    def __init__(self) -> None:
        super().__init__()
        self.space = Euclidean(conformal_factor=1.0)


def check_divides(name: str, parts: int, dim: int) -> None:
    """Refuse a number of equal parts that does not divide `dim` coordinates."""
    if dim % parts:
        divisors = ", ".join(str(n) for n in range(1, dim + 1) if dim % n == 0)
        raise UsageError(f"{name}={parts} does not divide dim={dim}; {divisors} do")


def make_space(manifold: Callable[..., Manifold], name: str, components: int, dim: int) -> Manifold:
    """Make a space of a number of components for tangent vectors `[..., dim]`.

    A manifold without the option `components` becomes a product of copies. A product must have this
    number of components and this width.
    """
    kind = manifold_class(manifold)
    if not issubclass(kind, Manifold) or "components" in signature(kind).parameters:
        check_divides(name, components, dim)
        return manifold(components=components)
    space = manifold()
    if space.tangent_dim is None:
        check_divides(name, components, dim)
        if components == space.components:
            return space
        return Product(factors=[space, *(manifold() for _ in range(components - 1))])
    if (components, dim) != (space.components, space.tangent_dim):
        raise UsageError(
            f"{name}={components} and dim={dim} must be {space.components} and "
            f"{space.tangent_dim} on this {type(space).__name__}"
        )
    return space
