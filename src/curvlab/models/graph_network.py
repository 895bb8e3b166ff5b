"""Graph networks: a stack of layers of one kind, which GCN, GAT, SAGE and their like share."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.utils import add_self_loops, remove_self_loops

from curvlab.data.transforms.graph import GraphTransform, SparseAdjacency
from curvlab.errors import UsageError
from curvlab.layers.activations import activation_function
from curvlab.layers.batch_norm import BatchNorm
from curvlab.layers.dropout import dropout
from curvlab.layers.features import FeatureLinear
from curvlab.layers.sparse_graph import SparseGraph
from curvlab.manifolds.kernels import working
from curvlab.models.encoder import FlatEncoder
from curvlab.models.widths import check_divides
from curvlab.options import Activation, Dropout, FromData, Passed, PositiveInt

NORMALISATIONS = {"none": nn.Identity, "batch": BatchNorm, "layer": nn.LayerNorm}


class GraphNetwork(FlatEncoder):
    """A stack of layers of one kind: graph to Euclidean node embeddings.

    `x <- act(norm(layer(drop(x)) [+ W drop(x)]))`; the last layer has neither norm nor activation
    unless `last_activation` is set. With `logits` its outputs are the logits, which makes the plain
    networks of the papers (Kipf and Welling's GCN and so on); a linear decoder after it would be a
    second linear map after the last, and costs six points on Citeseer.

    With `skip_average` the embeddings are the mean of the last layer's output on the graph without
    edges and its activated output, `(f(x, {}) + act(f(x, E))) / 2`: the "skip" of the code of Q-GCN
    (Xiong et al. 2022), without which reconstruction is several points worse.

    Shapes: `batch.x [nodes, in_channels]`, `batch.edge_index [2, edges]`; returns
    `[nodes, dim_out]`.

    Args:
        in_channels: number of input features.
        layer: makes one layer from its input and output widths; with several heads it takes
            `concat=False` for their mean.
        adjacency: what a layer gets of the graph: `none`, `edge_index`, or `csr`, a sparse matrix,
            for layers that aggregate before they project.
        dim: width of hidden layers and embeddings.
        layers: number of layers.
        activation: of the layers.
        dropout: of every layer's input.
        skip_average: average the last layer without and with the graph (for reconstruction).
        normalisation: of every activated layer.
        residual: add a linear map of every layer's input to its output.
        input_layer: map the features to `dim` before the first layer.
        last_activation: normalise, activate and drop out the last layer's output too, so that the
            decoder reads hidden features.
        input_dropout: drop out the features too.
        logits: the last layer makes the logits, over heads their mean; not with `last_activation`.
        classes: number of logits; None: there are none.
        heads: outputs of width `dim / heads` that a layer concatenates.
        last_heads: heads of the layer that makes the logits; None: as many as the others.

    Source: the options are those with which Luo et al. 2024 ("Classic GNNs are strong baselines")
    bring these networks level with graph transformers.
    """

    def __init__(
        self,
        in_channels: int,
        layer: Callable[..., nn.Module],
        adjacency: Literal["none", "edge_index", "csr"],
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        activation: Activation = "relu",
        dropout: Dropout = 0.0,
        skip_average: bool = True,
        normalisation: Literal["none", "batch", "layer"] = "none",
        residual: bool = False,
        input_layer: bool = False,
        last_activation: bool = False,
        input_dropout: bool = True,
        logits: bool = False,
        classes: FromData[PositiveInt | None] = None,
        heads: Passed[PositiveInt] = 1,
        last_heads: Passed[PositiveInt | None] = None,
    ) -> None:
        super().__init__()
        check_divides("heads", heads, dim)
        if skip_average and last_activation:
            raise UsageError(
                "skip_average and last_activation both say what becomes of the last layer's "
                "output: set one of them to false"
            )
        self.logits = classes if logits and not last_activation else None
        inputs = [dim if input_layer else in_channels] + [dim] * (layers - 1)
        outputs = [dim] * (layers - 1) + [self.logits or dim]
        made = [layer(width, dim // heads) for width in inputs[:-1]]
        if self.logits is None:
            made.append(layer(inputs[-1], dim // heads))
        else:
            options: dict[str, int] = {"concat": False} if heads > 1 else {}
            if last_heads is not None:
                options["heads"] = last_heads
            made.append(layer(inputs[-1], self.logits, **options))
        self.layers = nn.ModuleList(made)
        self.self_loops = adjacency == "edge_index" and _give_up_self_loops(self.layers)
        first = dropout if input_dropout else 0.0
        self.dropouts = [dropout if input_layer else first] + [dropout] * (layers - 1)
        self.takes_features = (
            not input_layer and adjacency != "csr" and _take_features(self.layers, first)
        )
        self.input_layer = FeatureLinear(in_channels, dim, dropout=first) if input_layer else None
        widths = zip(inputs, outputs, strict=True) if residual else ()
        self.shortcuts = nn.ModuleList(nn.Linear(*width) for width in widths)
        if residual and self.takes_features:
            self.shortcuts[0] = FeatureLinear(in_channels, outputs[0], dropout=first)
        activated = layers if last_activation else layers - 1
        self.norms = nn.ModuleList(NORMALISATIONS[normalisation](dim) for _ in range(activated))
        self.dim = outputs[-1]
        self.adjacency = adjacency
        self.activation = activation_function(activation)
        self.dropout = dropout
        self.skip_average = skip_average
        self.last_activation = last_activation

    @property
    def gives_logits(self) -> bool:
        """Whether the last layer's outputs are the logits."""
        return self.logits is not None

    def transforms(self) -> Sequence[GraphTransform]:
        """A matrix, for layers that take one."""
        return (SparseAdjacency(),) if self.adjacency == "csr" else ()

    def forward(self, batch: Data) -> Tensor:
        """Node embeddings `[nodes, dim_out]`."""
        graph, x = self._graph(batch), SparseGraph.of(batch).features.tensor()
        if self.input_layer is not None:
            x = self.input_layer(x)
        for i, norm in enumerate(self.norms):
            x = self.activation(norm(self._propagate(i, x, graph)))
        if self.last_activation:
            return dropout(x, self.dropout, self.training)
        if not self.skip_average:
            return self._propagate(len(self.norms), x, graph)
        last, alone = self._last(x, graph, batch)
        return (alone + self.activation(last)) / 2

    def _last(self, x: Tensor, graph: tuple[Tensor, ...], batch: Data) -> tuple[Tensor, Tensor]:
        """The last layer with the edges and without, where it is `W x + b` of GCN and GAT.

        `W x` is computed once, unless each of the two has dropout of its own.
        """
        i = len(self.norms)
        layer: Any = self.layers[i]
        drops = self.training and max(self.dropouts[i], getattr(layer, "dropout", 0.0)) > 0
        mapped: list[Tensor] = []
        if drops or self.shortcuts or not isinstance(layer, nn.Linear | GCNConv | GATConv):
            last = self._propagate(i, x, graph)
            return last, self._propagate(i, x, self._no_edges(batch, graph))
        if isinstance(layer, nn.Linear):
            last = self._propagate(i, x, graph)
            return last, last
        with layer.lin.register_forward_hook(lambda *call: mapped.append(call[2])):
            last = self._propagate(i, x, graph)
        heads = mapped[0].unflatten(-1, (-1, layer.out_channels))
        concat = getattr(layer, "concat", True)
        return last, (heads.flatten(-2) if concat else heads.mean(-2)) + layer.bias

    def _graph(self, batch: Data) -> tuple[Tensor, ...]:
        """What a layer gets after its input."""
        if self.adjacency == "none":
            return ()
        return (batch.adj_t,) if self.adjacency == "csr" else (self._edges(batch),)

    def _no_edges(self, batch: Data, graph: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What a layer gets of the same nodes without the edges between them."""
        if not graph:
            return ()
        edges = self._edges(batch)
        loops = len(batch.x) if self.self_loops else 0
        return (edges[:, edges.shape[1] - loops :],)

    def _edges(self, batch: Data) -> Tensor:
        """Edges `[2, edges]`, those of nodes to themselves last, if the layers need these.

        They are looked for when a graph is first seen, which makes a device wait.
        """
        if not self.self_loops:
            return batch.edge_index
        return SparseGraph.of(batch).derived("looped_edges", ("edge_index", "x"), _looped_edges)

    def _propagate(self, i: int, x: Tensor, graph: tuple[Tensor, ...]) -> Tensor:
        """One layer, and what is added to it, after dropout of its input."""
        if i > 0 or not self.takes_features:
            x = dropout(x, self.dropouts[i], self.training)
        if self.adjacency == "csr":
            # A processor's sparse products have no half precision.
            with torch.autocast(x.device.type, enabled=False):
                out = self.layers[i](working(x), *graph)
        else:
            out = self.layers[i](x, *graph)
        return out + self.shortcuts[i](x) if self.shortcuts else out


def _looped_edges(batch: Data) -> Tensor:
    return add_self_loops(remove_self_loops(batch.edge_index)[0], num_nodes=batch.num_nodes)[0]


def _give_up_self_loops(layers: nn.ModuleList) -> bool:
    """Let layers of PyTorch Geometric that add edges from nodes to themselves leave that out.

    Returns:
        Whether they did, and want these edges.
    """
    wanting = [layer for layer in layers if getattr(layer, "add_self_loops", False)]
    for layer in wanting:
        layer.add_self_loops = False  # type: ignore[assignment]
    return bool(wanting)


def _take_features(layers: nn.ModuleList, dropout: float) -> bool:
    """Let the first layer's linear map be one of features, where it acts on them as they come.

    Weights and random numbers stay what they are. Layers of PyTorch Geometric call this map `lin`.

    Returns:
        Whether it could; dropout of the features is then that map's.
    """
    first = layers[0]
    linear = first if isinstance(first, nn.Linear) else getattr(first, "lin", None)
    if linear is None:
        return False
    out_features, in_features = linear.weight.shape
    with torch.random.fork_rng(devices=[]):
        made = FeatureLinear(in_features, out_features, linear.bias is not None, dropout)
    made.load_state_dict(linear.state_dict())
    if first is linear:
        layers[0] = made
    else:
        first.lin = made
    return True
