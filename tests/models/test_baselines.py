"""The graph networks against their formulas on a dense adjacency."""

import functools

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch
from torch_geometric.nn import ChebConv, GATConv, GCNConv, SAGEConv, SGConv
from torch_geometric.utils import add_self_loops

from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean
from curvlab.models import GAT, GCN, MLP, SGC, SIGN, ChebNet, GraphNetwork, GraphSAGE, MeanSAGE
from graphs import dense_adjacency, symmetric

pytestmark = pytest.mark.usefixtures("float64")

KINDS = {  # layer, form of the graph, heads
    "mlp": (nn.Linear, "none", 1),
    "gcn": (GCNConv, "edge_index", 1),
    "gat": (GATConv, "edge_index", 1),
    "sage": (SAGEConv, "csr", 1),
    "sgc": (SGConv, "csr", 1),
}

CLASSES = {"logits": True, "classes": 3}


def network(layer, adjacency, **options):
    torch.manual_seed(0)
    defaults = {"in_channels": 5, "dim": 4}
    made = GraphNetwork(layer=layer, adjacency=adjacency, **{**defaults, **options})
    for parameter in made.parameters():
        if not parameter.any():  # biases, which start at 0
            nn.init.normal_(parameter)
    return made


def test_hidden_layers_are_activated_and_only_the_last_is_averaged(graph):
    made = network(GCNConv, "edge_index", layers=2, activation="tanh")
    first, second = made.layers
    hidden = torch.tanh(symmetric(graph) @ graph.x @ first.lin.weight.T + first.bias)
    alone = hidden @ second.lin.weight.T + second.bias
    last = symmetric(graph) @ hidden @ second.lin.weight.T + second.bias
    torch.testing.assert_close(made(graph), (alone + torch.tanh(last)) / 2)


def test_mlp_averages_its_output_with_its_activation(graph):
    made = network(nn.Linear, "none")
    linear = made.layers[0](graph.x)
    torch.testing.assert_close(made(graph), (linear + linear.relu()) / 2)
    graph.edge_index = graph.edge_index[:, :2]
    torch.testing.assert_close(made(graph), (linear + linear.relu()) / 2)


@pytest.mark.parametrize("layer", [SAGEConv, SGConv])
@pytest.mark.parametrize("layers", [1, 2])
def test_sparse_matrix_and_edge_list_give_the_same(graph, layer, layers):
    by_matrix, by_list = (network(layer, kind, layers=layers) for kind in ("csr", "edge_index"))
    by_list.load_state_dict(by_matrix.state_dict())
    torch.testing.assert_close(by_matrix(graph), by_list(graph))


def test_sage_is_the_mean_of_the_neighbours_and_the_node(graph):
    made = network(SAGEConv, "csr")
    layer = made.layers[0]
    adjacency = dense_adjacency(graph)
    alone = layer.lin_l.bias + graph.x @ layer.lin_r.weight.T
    mean = adjacency @ graph.x / adjacency.sum(1, keepdim=True)
    last = alone + mean @ layer.lin_l.weight.T
    torch.testing.assert_close(made(graph), (alone + last.relu()) / 2)


def test_sgc_is_the_normalised_adjacency_times_features(graph):
    made = network(SGConv, "csr")
    layer = made.layers[0]
    alone = layer.lin(graph.x)
    last = layer.lin(symmetric(graph) @ graph.x)
    torch.testing.assert_close(made(graph), (alone + last.relu()) / 2)


@pytest.mark.parametrize("kind", ["mlp", "gcn", "gat"])
@pytest.mark.parametrize("concat", [True, False])
def test_without_dropout_the_average_takes_one_linear_map(graph, kind, concat):
    """As two passes, which networks in training with dropout have."""
    layer, adjacency, _ = KINDS[kind]
    if kind == "gat":
        layer = functools.partial(GATConv, heads=2, concat=concat)
    made = network(layer, adjacency, dim=4, heads=2 if kind == "gat" and concat else 1, dropout=0.3)
    made.eval()
    (last,) = made.layers
    once, calls = made(graph), []
    (last if kind == "mlp" else last.lin).register_forward_hook(lambda *_: calls.append(1))
    made(graph)
    assert len(calls) == 1
    given = made._graph(graph)
    twice = made._propagate(0, graph.x, made._no_edges(graph, given))
    expected = (twice + made._propagate(0, graph.x, given).relu()) / 2
    torch.testing.assert_close(once, expected, atol=1e-14, rtol=0)


def test_distance_of_the_embeddings_is_the_plain_one(graph):
    """|x - y|, not the flat limit 2 |x - y| of the curved models."""
    space = network(GCNConv, "edge_index").manifold_out
    assert isinstance(space, Euclidean)
    assert space.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0])).item() == 5.0


def options(**changed):
    return {"skip_average": False, "layers": 2, **changed}


@pytest.mark.parametrize("normalisation", ["batch", "layer"])
@pytest.mark.parametrize("last", [False, True])
def test_activated_layers_are_normalised(graph, normalisation, last):
    made = network(nn.Linear, "none", **options(normalisation=normalisation, last_activation=last))

    def normalised(x, norm):
        axis = 0 if normalisation == "batch" else 1
        scale = (x.var(axis, correction=0, keepdim=True) + 1e-5).sqrt()
        return (x - x.mean(axis, True)) / scale + norm.bias

    expected = made.layers[1](normalised(made.layers[0](graph.x), made.norms[0]).relu())
    if last:
        expected = normalised(expected, made.norms[1]).relu()
    torch.testing.assert_close(made(graph), expected)
    assert len(made.norms) == 1 + last


def test_residual_adds_a_linear_map_of_every_layers_input(graph):
    made = network(GCNConv, "edge_index", **options(residual=True))
    (first, second), (around, around_second) = made.layers, made.shortcuts
    looped, _ = add_self_loops(graph.edge_index)
    hidden = (first(graph.x, looped) + around(graph.x)).relu()
    expected = second(hidden, looped) + around_second(hidden)
    torch.testing.assert_close(made(graph), expected)


def test_input_layer_maps_features_before_the_first_layer(graph):
    made = network(SAGEConv, "csr", **options(input_layer=True, layers=1))
    assert made.layers[0].in_channels == 4
    x = graph.x @ made.input_layer.weight.T + made.input_layer.bias
    torch.testing.assert_close(made(graph), made.layers[0](x, graph.adj_t))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalisation", ["none", "batch", "layer"])
def test_every_option_at_once_trains(graph, kind, normalisation):
    layer, adjacency, heads = KINDS[kind]
    everything = options(
        normalisation=normalisation, residual=True, input_layer=True, last_activation=True
    )
    made = network(layer, adjacency, heads=heads, dropout=0.5, **everything)
    made(graph).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in made.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "gat"])
def test_dropout_of_features_is_drawn_once(graph, kind):
    """With the features zeroed at rate 1/2 and twice as large, a network without attention,
    which is linear, is unbiased."""
    layer, adjacency, _ = KINDS[kind]
    made = network(layer, adjacency, dropout=0.5, layers=1, skip_average=False)
    torch.manual_seed(0)
    copies = Batch.from_data_list([graph] * 100)
    mean = torch.stack([made(copies) for _ in range(30)]).view(3000, 12, 4).mean(0)
    made.eval()
    torch.testing.assert_close(mean, made(graph), atol=0.12, rtol=0)


def test_sage_that_projects_first_is_sage(graph):
    first, plain = MeanSAGE(5, 4), SAGEConv(5, 4)
    with torch.no_grad():
        plain.lin_l.weight.copy_(first.lin.weight[:4])
        plain.lin_r.weight.copy_(first.lin.weight[4:])
        plain.lin_l.bias.copy_(first.bias.normal_())
    torch.testing.assert_close(first(graph.x, graph.edge_index), plain(graph.x, graph.edge_index))


def test_a_first_layer_on_features_keeps_weights_and_random_numbers():
    torch.manual_seed(0)
    plain = [nn.Linear(5, 4), nn.Linear(4, 4)]
    made = network(nn.Linear, "none", layers=2)
    for layer, expected in zip(made.layers, plain, strict=True):
        assert torch.equal(layer.weight, expected.weight)


@pytest.mark.parametrize("kind", KINDS)
def test_with_classes_the_last_layer_makes_the_logits(graph, kind):
    layer, adjacency, _ = KINDS[kind]
    made = network(layer, adjacency, layers=2, skip_average=False, residual=True, **CLASSES)
    assert made.gives_logits
    assert made.dim_out == 3
    assert made(graph).shape == (graph.num_nodes, 3)
    hidden = network(
        layer, adjacency, skip_average=False, last_activation=True, residual=True, **CLASSES
    )
    assert not hidden.gives_logits
    assert hidden.dim_out == 4
    assert hidden(graph).shape == (graph.num_nodes, 4)


def test_gcn_of_two_layers_is_kipf_and_wellings(graph):
    """`A relu(A X W_0 + b_0) W_1 + b_1`, nothing after it."""
    made = network(GCNConv, "edge_index", layers=2, skip_average=False, **CLASSES)
    first, second = made.layers
    propagation = symmetric(graph)
    hidden = (propagation @ graph.x @ first.lin.weight.T + first.bias).relu()
    expected = propagation @ hidden @ second.lin.weight.T + second.bias
    torch.testing.assert_close(made(graph), expected)
    assert sum(p.numel() for p in made.parameters()) == 5 * 4 + 4 + 4 * 3 + 3


def test_the_logits_of_several_heads_are_their_mean(graph):
    def layer(in_channels, out_channels, concat=True):
        return GATConv(in_channels, out_channels, heads=2, concat=concat)

    made = network(layer, "edge_index", skip_average=False, heads=2, **CLASSES)
    (last,) = made.layers
    apart = GATConv(5, 3, heads=2, bias=False)
    apart.load_state_dict({k: v for k, v in last.state_dict().items() if k != "bias"})
    both = apart(graph.x, graph.edge_index).unflatten(1, (2, 3))
    torch.testing.assert_close(made(graph), both.mean(1) + last.bias)


def test_the_layer_of_the_logits_has_heads_of_its_own(graph):
    layer = functools.partial(GATConv, heads=4)
    options = {"layers": 2, "heads": 4, "skip_average": False, **CLASSES}
    made = network(layer, "edge_index", **options, last_heads=1)
    first, last = made.layers
    assert first.concat
    assert (first.heads, first.out_channels) == (4, 1)
    assert (last.heads, last.out_channels) == (1, 3)
    looped, _ = add_self_loops(graph.edge_index)
    torch.testing.assert_close(made(graph), last(torch.relu(first(graph.x, looped)), looped))


@pytest.mark.parametrize("layer", [GCNConv, GATConv])
@pytest.mark.parametrize("skip_average", [True, False])
def test_edges_of_nodes_to_themselves_are_those_of_the_layer(graph, layer, skip_average):
    """One for each node, on graphs that have some and nodes without edges, whichever is seen."""
    made = network(layer, "edge_index", skip_average=skip_average)
    alone = layer(5, 4)
    alone.load_state_dict(made.layers[0].state_dict())
    without = graph.clone()
    without.edge_index = graph.edge_index[:, (graph.edge_index != 3).all(0)]
    some = without.clone()
    some.edge_index = torch.cat([torch.tensor([[0, 3], [0, 3]]), without.edge_index], dim=1)
    for seen in (graph, without, some, graph):
        expected = alone(seen.x, seen.edge_index)
        if skip_average:
            expected = (alone(seen.x, seen.edge_index[:, :0]) + expected.relu()) / 2
        assert torch.equal(made(seen), expected)


@pytest.mark.parametrize("kind", ["gcn", "sage", "gat"])
def test_features_are_dropped_unless_said_otherwise(graph, kind):
    layer, adjacency, _ = KINDS[kind]
    options = {"layers": 1, "skip_average": False, "dropout": 0.9}
    dropping = network(layer, adjacency, **options)
    keeping = network(layer, adjacency, **options, input_dropout=False)
    still = network(layer, adjacency, **options).eval()(graph)
    torch.testing.assert_close(keeping.train()(graph), still)
    assert not torch.allclose(dropping.train()(graph), still)
    deep = network(layer, adjacency, **{**options, "layers": 2}, input_dropout=False)
    assert not torch.allclose(deep.train()(graph), deep.eval()(graph))


@pytest.mark.parametrize(
    ("kind", "layer", "adjacency"),
    [
        (MLP, nn.Linear, "none"),
        (GCN, GCNConv, "edge_index"),
        (functools.partial(GAT, heads=1), GATConv, "edge_index"),
        (GraphSAGE, SAGEConv, "csr"),
        (functools.partial(GraphSAGE, project_first=True), MeanSAGE, "edge_index"),
        (functools.partial(SGC, K=2), functools.partial(SGConv, K=2), "csr"),
        (ChebNet, functools.partial(ChebConv, K=3), "edge_index"),
        (SIGN, nn.Linear, "none"),
    ],
)
def test_each_network_has_its_layer(graph, kind, layer, adjacency):
    results = []
    for network in (functools.partial(GraphNetwork, layer=layer, adjacency=adjacency), kind):
        torch.manual_seed(0)
        made = network(in_channels=5)
        out = made(graph)
        gradients = torch.autograd.grad(out.square().sum(), made.parameters())
        results.append((out, *gradients, torch.rand(1)))
    torch.testing.assert_close(*results, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("kind", [GraphSAGE, SGC, functools.partial(SGC, K=2)])
@pytest.mark.parametrize(("in_channels", "width"), [(5, 4), (3, 3)])
def test_the_narrower_of_features_and_projections_is_propagated(graph, kind, in_channels, width):
    made = kind(in_channels=in_channels, dim=4, skip_average=False)
    seen = []
    made.layers[0].register_propagate_forward_pre_hook(lambda _, call: seen.append(call[2]["x"]))
    graph.x = graph.x[:, :in_channels]
    made(graph)
    assert {(x[0] if isinstance(x, tuple) else x).shape[1] for x in seen} == {width}


def test_gat_divides_its_width_among_its_heads(graph):
    made = GAT(5, dim=4, layers=2, attention_dropout=0.3, skip_average=False, **CLASSES)
    first, last = made.layers
    assert (first.heads, first.out_channels, first.dropout) == (2, 2, 0.3)
    assert (last.heads, last.out_channels, last.concat) == (2, 3, False)
    assert made(graph).shape == (12, 3)


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(UsageError, match="set one of them to false"):
        network(nn.Linear, "none", last_activation=True)
