"""Graph networks: a stack of layers of one kind, which GCN, GAT, GraphSAGE and their like share."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import ChebConv, GATConv, GCNConv, SGConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, remove_self_loops

from curvlab.data.transforms.features import StackedHops
from curvlab.data.transforms.graph import GraphTransform, SparseAdjacency
from curvlab.errors import UsageError
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.graph.sparse_matrix import SparseMatrix, inverse_roots, sparse_rows
from curvlab.layers.elementwise import BatchNorm, activation_function, dropout
from curvlab.layers.feature_linear import FeatureLinear
from curvlab.layers.graph_convolutions import MatrixGCN, MatrixSAGE, MatrixSGC, MeanSAGE
from curvlab.models.encoder import FlatEncoder, check_divides
from curvlab.options import Activation, Dropout, FromData, Passed, PositiveInt

Normalisation = Literal["none", "batch", "layer"]
NORMALISATIONS = {"none": nn.Identity, "batch": BatchNorm, "layer": nn.LayerNorm}


class NetworkOptions(TypedDict, total=False):
    """Options that all graph networks have, see `GraphNetwork`."""

    dim: int
    layers: int
    activation: Activation
    dropout: float
    skip_average: bool
    logits: bool
    classes: int | None
    normalisation: Normalisation
    residual: bool
    input_layer: bool
    last_activation: bool
    input_dropout: bool


class GraphNetwork(FlatEncoder):
    """A stack of layers of one kind: graph to Euclidean node embeddings.

    `x <- act(norm(layer(drop(x)) [+ W drop(x)]))`; the last layer has neither norm nor activation
    unless `last_activation` is set. With `skip_average` the embeddings are `(f(x, {}) + act(f(x,
    E))) / 2` for the last layer f without and with the edges, as in the code of Q-GCN (Xiong et al.
    2022), for reconstruction.

    Shapes: `batch.x [nodes, in_channels]`, `batch.edge_index [2, edges]`; returns
    `[nodes, dim_out]`.

    Args:
        activation: activation of the layers.
        dropout: dropout of every layer's input.
        skip_average: average the last layer without and with the graph (for reconstruction).
        logits: output logits of the last layer, averaged over its heads; ignored with
            `last_activation`.
        normalisation: normalisation of every activated layer.
        residual: add a linear map of every layer's input to its output.
        input_layer: map the features to `dim` before the first layer.
        last_activation: apply normalisation, activation and dropout to the last layer's output too.
        input_dropout: apply dropout to the features too.
        layer: factory of one layer from its widths, of several heads with `concat`; None:
            `own_layer`.
        heads: outputs of width `dim / heads` that a layer concatenates.
        last_heads: number of heads of the layer that outputs logits; None: `heads`.

    Attributes:
        own_layer: factory of a layer of the model.
        adjacency: form in which a layer gets the graph: `none`, `edge_index`, or a `SparseMatrix`
            (None for a graph without edges), `csr` of ones or `normalised` with self-loops.
        features: attribute of the graph that holds the features.

    Source: options as in Luo et al. 2024 ("Classic GNNs are strong baselines").
    """

    revision = 3  # 2: as `Encoder`; 3: skip_average is off by default
    own_layer: Callable[..., nn.Module]
    adjacency: Literal["none", "edge_index", "csr", "normalised"] = "edge_index"
    features = "x"

    def __init__(
        self,
        in_channels: int,
        dim: PositiveInt = 16,
        layers: PositiveInt = 1,
        activation: Activation = "relu",
        dropout: Dropout = 0.0,
        skip_average: bool = False,
        logits: bool = False,
        classes: FromData[PositiveInt | None] = None,
        normalisation: Normalisation = "none",
        residual: bool = False,
        input_layer: bool = False,
        last_activation: bool = False,
        input_dropout: bool = True,
        layer: Passed[Callable[..., nn.Module] | None] = None,
        heads: Passed[PositiveInt] = 1,
        last_heads: Passed[PositiveInt | None] = None,
    ) -> None:
        super().__init__()
        check_divides("heads", heads, dim)
        if skip_average and last_activation:
            raise UsageError(
                "skip_average and last_activation both change the last layer's output: set one of "
                "them to false"
            )
        self.gives_logits = bool(logits and classes and not last_activation)
        self.dim_out = classes if self.gives_logits and classes else dim
        inputs = [dim if input_layer else in_channels] + [dim] * (layers - 1)
        outputs = [dim] * (layers - 1) + [self.dim_out]
        layer = layer or type(self).own_layer
        stack = [layer(width, dim // heads) for width in inputs[:-1]]
        if self.gives_logits:
            options: dict[str, Any] = {"concat": False} if heads > 1 else {}
            options |= {} if last_heads is None else {"heads": last_heads}
            stack.append(layer(inputs[-1], self.dim_out, **options))
        else:
            stack.append(layer(inputs[-1], dim // heads))
        self.layers = nn.ModuleList(stack)
        first = dropout if input_dropout else 0.0
        self.dropouts = [dropout if input_layer else first] + [dropout] * (layers - 1)
        self.takes_features = not input_layer and _take_features(self.layers, first)
        self.input_layer = FeatureLinear(in_channels, dim, dropout=first) if input_layer else None
        self.shortcuts = nn.ModuleList()
        if residual:
            for width_in, width_out in zip(inputs, outputs, strict=True):
                self.shortcuts.append(nn.Linear(width_in, width_out))
        if residual and self.takes_features:
            self.shortcuts[0] = FeatureLinear(in_channels, outputs[0], dropout=first)
        activated = layers if last_activation else layers - 1
        self.norms = nn.ModuleList(NORMALISATIONS[normalisation](dim) for _ in range(activated))
        self.activation = activation_function(activation)
        self.dropout = dropout
        self.skip_average = skip_average
        self.last_activation = last_activation

    def forward(self, batch: Data) -> Tensor:
        x = SparseGraph.from_data(batch).features_of(self.features).tensor()
        graph = self.graph(batch)
        if self.input_layer is not None:
            x = self.input_layer(x)
        for i, norm in enumerate(self.norms):
            x = self.activation(norm(self._propagate(i, x, *graph)))
        if self.last_activation:
            return dropout(x, self.dropout, self.training)
        i = len(self.norms)
        mapped = []
        layer: Any = self.layers[i]
        if not self.skip_average:
            return self._propagate(i, x, *graph)
        drops = self.training and max(self.dropouts[i], getattr(layer, "dropout", 0.0)) > 0
        if drops or self.shortcuts or not isinstance(layer, nn.Linear | GCNConv | GATConv):
            last = self._propagate(i, x, *graph)
            unlinked = self._propagate(i, x, *self.graph(batch, linked=False))
            return (unlinked + self.activation(last)) / 2
        # Without edges the output is `W x + b`; the hook keeps the product `W x` of the pass.
        linear = layer if isinstance(layer, nn.Linear) else layer.lin
        with linear.register_forward_hook(lambda *call: mapped.append(call[2])):
            unlinked = last = self._propagate(i, x, *graph)
        if layer is not linear:
            heads = mapped[0].unflatten(-1, (-1, layer.out_channels))
            unlinked = heads.flatten(-2) if getattr(layer, "concat", True) else heads.mean(-2)
            unlinked = unlinked + layer.bias
        return (unlinked + self.activation(last)) / 2

    def graph(self, batch: Data, linked: bool = True) -> tuple[Any, ...]:
        """Further inputs of a layer, with the graph's edges (`linked`) or without any."""
        if self.adjacency == "none":
            return ()
        if self.adjacency == "edge_index":
            edges = batch.edge_index if linked else batch.edge_index[:, :0]
            return (edges,)
        if not linked:
            return (None,)
        graph = SparseGraph.from_data(batch)
        if self.adjacency == "csr":
            return (graph.matrix("adj_t"),)
        reads = ("edge_index", "edge_weight", "x")
        return (graph.derive("normalised", reads, _normalise_edges),)

    def _propagate(self, i: int, x: Tensor, *graph: Any) -> Tensor:
        """Apply one layer and its shortcut, after dropout of its input."""
        if i > 0 or not self.takes_features:
            x = dropout(x, self.dropouts[i], self.training)
        out = self.layers[i](x, *graph)
        return out + self.shortcuts[i](x) if self.shortcuts else out


def _take_features(layers: nn.ModuleList, dropout: float) -> bool:
    """Let the first layer's linear map, `lin`, take sparse features; return whether it has one."""
    first = layers[0]
    linear = first if isinstance(first, nn.Linear) else getattr(first, "lin", None)
    if linear is None or isinstance(first, SGConv):
        return False
    with torch.random.fork_rng(devices=[]):
        out_features, in_features = linear.weight.shape
        replacement = FeatureLinear(in_features, out_features, linear.bias is not None, dropout)
    replacement.load_state_dict(linear.state_dict())
    if first is linear:
        layers[0] = replacement
    else:
        first.lin = replacement
    return True


class MLP(GraphNetwork):
    """Multi-layer perceptron of each node's features.

    Paper: MLP: the multi-layer perceptron, which uses features and no edge.
    """

    own_layer = nn.Linear
    adjacency = "none"
    edgeless = True


class SIGN(MLP):
    """MLP of `[X, A X, ..., A^hops X]`, a node's features and their mixtures along the edges.

    The mixtures are computed once for a graph, by `curvlab.data.transforms.features.StackedHops`.

    Args:
        hops: Number of mixtures.

    Paper: SIGN: Scalable inception graph neural networks (Frasca et al. 2020, arXiv:2004.11198).

    The paper has several operators and a linear map of each block. Here the powers of one operator
    are concatenated.
    """

    features = "inputs"

    def __init__(
        self, in_channels: int, hops: PositiveInt = 2, **network: Unpack[NetworkOptions]
    ) -> None:
        super().__init__((hops + 1) * in_channels, **network)
        self.transforms = self.required_transforms({"hops": hops})

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        return (StackedHops(options["hops"]),)


class GCN(GraphNetwork):
    """Graph convolutional network, `D^-1/2 (A + I) D^-1/2 X W + b` in each layer.

    Paper: GCN: Semi-supervised classification with graph convolutional networks. Kipf and Welling
    2017, arXiv:1609.02907.

    Defaults: one layer and no dropout. The paper has two layers and dropout 0.5.
    """

    own_layer = MatrixGCN
    adjacency = "normalised"
    weighted = True


def _normalise_edges(batch: Data) -> SparseMatrix:
    nodes = len(batch.x)
    edges = batch.edge_index
    edge_weight = batch.get("edge_weight")
    (source, target), weights = gcn_norm(edges, edge_weight, nodes, dtype=batch.x.dtype)
    return SparseMatrix(sparse_rows(target, source, weights, (nodes, nodes)))


class DropEdge(GCN):
    """A GCN on a random part of the edges, drawn in each training step for all layers.

    Each undirected edge is left out with probability p, by a weight of 0 in both directions. The
    layers normalise by the remaining degrees.

    Args:
        edge_dropout: probability p that a step leaves out an undirected edge.

    Paper: DropEdge: towards deep graph convolutional networks on node classification. Rong et al.
    2020, arXiv:1907.10903.

    Defaults: one layer, as for `GCN`. The paper has 2 to 64.
    """

    weighted = False

    def __init__(
        self, in_channels: int, edge_dropout: Dropout = 0.3, **network: Unpack[NetworkOptions]
    ) -> None:
        super().__init__(in_channels, **network)
        self.edge_dropout = edge_dropout

    def graph(self, batch: Data, linked: bool = True) -> tuple[Any, ...]:
        (matrix,) = super().graph(batch, linked)
        if matrix is None or not self.training:
            return (matrix,)
        reads = ("edge_index", "x")
        pair, pairs = SparseGraph.from_data(batch).derive(
            "pairs", reads, lambda _: _number_pairs(matrix)
        )
        is_kept = torch.rand(pairs, device=pair.device) >= self.edge_dropout
        weights = F.pad(is_kept, (0, 1), value=True)[pair].to(matrix.rows[2].dtype)
        target, source = matrix.ends
        scale = inverse_roots(torch.zeros_like(batch.x[:, 0]).index_add(0, target, weights))
        return (matrix.with_values(scale[target] * weights * scale[source]),)


def _number_pairs(matrix: SparseMatrix) -> tuple[Tensor, int]:
    """Index of each entry's undirected edge, and the number of edges (the index of self-loops)."""
    target, source = matrix.ends
    ends = torch.minimum(source, target) * len(matrix.degrees) + torch.maximum(source, target)
    pairs, pair = torch.unique(ends[source != target], return_inverse=True)
    return torch.full_like(source, len(pairs)).masked_scatter(source != target, pair), len(pairs)


class GAT(GraphNetwork):
    """Graph attention network.

    Args:
        attention_dropout: dropout of the attention's weights.

    Paper: GAT: Graph attention networks (Velickovic et al. 2018, arXiv:1710.10903).

    Defaults: one layer of two heads, ReLU and no dropout. The paper has two layers, the first of
    eight heads and the last of one (`last_heads=1`), ELU, and dropout 0.6 of features and
    weights.
    """

    def __init__(
        self,
        in_channels: int,
        heads: PositiveInt = 2,
        last_heads: PositiveInt | None = None,
        attention_dropout: Dropout = 0.0,
        **network: Unpack[NetworkOptions],
    ) -> None:
        layer = partial(GATConv, heads=heads, dropout=attention_dropout, add_self_loops=False)
        super().__init__(in_channels, layer=layer, heads=heads, last_heads=last_heads, **network)

    def graph(self, batch: Data, linked: bool = True) -> tuple[Any, ...]:
        """Edges followed by all self-loops, which are added once instead of in every step."""

        def with_self_loops(data: Data) -> Tensor:
            edges, _ = remove_self_loops(data.edge_index)
            return add_self_loops(edges, num_nodes=len(data.x))[0]

        edges = SparseGraph.from_data(batch).derive(
            "self_loops", ("edge_index", "x"), with_self_loops
        )
        if not linked:
            first_loop = edges.shape[1] - len(batch.x)
            edges = edges[:, first_loop:]
        return (edges,)


class ChebNet(GraphNetwork):
    """Convolutions by Chebyshev polynomials of the Laplacian.

    Args:
        K: number of polynomials, one more than the highest order.

    Paper: ChebNet: Convolutional neural networks on graphs with fast localized spectral filtering.
    Defferrard et al. 2016, arXiv:1606.09375.

    Defaults: one layer, without the pooling of the paper's network.
    """

    weighted = True

    def __init__(
        self, in_channels: int, K: PositiveInt = 3, **network: Unpack[NetworkOptions]
    ) -> None:
        super().__init__(in_channels, layer=partial(ChebConv, K=K), **network)

    def graph(self, batch: Data, linked: bool = True) -> tuple[Any, ...]:
        edges = batch.edge_index
        weights = batch.get("edge_weight")
        if linked:
            return edges, weights
        return edges[:, :0], None


class GraphSAGE(GraphNetwork):
    """GraphSAGE with mean aggregation.

    Args:
        project_first: use `edge_index` instead of `adj_t`, and initialise both weights as one
            matrix (`MeanSAGE`).

    Paper: GraphSAGE: Inductive representation learning on large graphs. Hamilton et al. 2017,
    arXiv:1706.02216.

    Defaults: one layer over all neighbours. The paper has two and samples neighbours, as
    `batching=neighbours` does.
    """

    def __init__(
        self, in_channels: int, project_first: bool = False, **network: Unpack[NetworkOptions]
    ) -> None:
        layer = MeanSAGE if project_first else MatrixSAGE
        super().__init__(in_channels, layer=layer, **network)
        self.adjacency = "edge_index" if project_first else "csr"
        self.transforms = self.required_transforms({"project_first": project_first})

    @classmethod
    def required_transforms(cls, options: Mapping[str, Any]) -> Sequence[GraphTransform]:
        return () if options["project_first"] else (SparseAdjacency(),)


class SGC(GraphNetwork):
    """Simplified graph convolution, `(D^-1/2 (A + I) D^-1/2)^K X W + b` in each layer.

    Args:
        K: number of hops of a layer.
        cached: unused; earlier versions read this argument.

    Paper: SGC: Simplifying graph convolutional networks (Wu et al. 2019, arXiv:1902.07153).

    Defaults: one hop. The paper has `K=2`.
    """

    adjacency = "normalised"
    weighted = True

    def __init__(
        self,
        in_channels: int,
        K: PositiveInt = 1,
        cached: bool = False,  # noqa: ARG002
        **network: Unpack[NetworkOptions],
    ) -> None:
        super().__init__(in_channels, layer=partial(MatrixSGC, K=K), **network)
