"""The graph networks against their formulas on a dense adjacency."""

from functools import partial

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import ChebConv, GATConv, GCNConv, SAGEConv, SGConv
from torch_geometric.utils import add_self_loops

from curvlab.layers.graph_convolutions import MeanSAGE
from curvlab.manifolds import Euclidean
from curvlab.models import GAT, GCN, MLP, SGC, SIGN, ChebNet, DropEdge, GraphSAGE
from graphs import symmetric

pytestmark = pytest.mark.usefixtures("float64")

KINDS = {"mlp": MLP, "gcn": GCN, "gat": GAT, "sage": GraphSAGE}
ALL_KINDS = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
CLASSES = {"logits": True, "classes": 3}


def network(kind, **options):
    torch.manual_seed(0)
    usual = {"dim": 4, "skip_average": True, **({"heads": 1} if kind is GAT else {})}
    made = kind(5, **{**usual, **options})
    for parameter in made.parameters():
        if not parameter.any():  # biases, which start at 0
            nn.init.normal_(parameter)
    return made


class PlainLinear(nn.Linear):
    """A layer that sees no edge."""

    def forward(self, x, _):
        return super().forward(x)


def options(**changed):
    return {"skip_average": False, "layers": 2, **changed}


def test_hidden_layers_are_activated_and_only_the_last_is_averaged(graph):
    made = network(GCN, layers=2, activation="tanh")
    first, second = made.layers
    hidden = torch.tanh(symmetric(graph) @ graph.x @ first.lin.weight.T + first.bias)
    alone = hidden @ second.lin.weight.T + second.bias
    last = symmetric(graph) @ hidden @ second.lin.weight.T + second.bias
    torch.testing.assert_close(made(graph), (alone + torch.tanh(last)) / 2)
    space = made.manifold_out  # |x - y|, not the flat limit 2 |x - y| of the curved models
    assert isinstance(space, Euclidean)
    assert space.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0])).item() == 5.0


def test_the_default_is_the_papers_layer(graph):
    made, layer = GCN(5, 4), GCNConv(5, 4)
    layer.load_state_dict(made.layers[0].state_dict())
    torch.testing.assert_close(made(graph), layer(graph.x, graph.edge_index))


@pytest.mark.parametrize("dim", [4, 8])
@pytest.mark.parametrize(
    ("kind", "layer", "given"),
    [
        (GCN, GCNConv, {}),
        (GAT, GATConv, {"heads": 1}),
        (GAT, GATConv, {"heads": 2}),
        (GraphSAGE, SAGEConv, {}),
        (SGC, SGConv, {"K": 2}),
        (MLP, PlainLinear, {}),
    ],
)
def test_the_average_with_the_graph_without_edges_is_that_of_pygs_layers(
    graph, kind, layer, given, dim
):
    """One edge of each node to itself, on graphs that have some and nodes without edges."""
    made = network(kind, dim=dim, **given)
    alone = layer(5, dim // given.get("heads", 1), **given)
    alone.load_state_dict(made.layers[0].state_dict())
    without = Data(x=graph.x, edge_index=graph.edge_index[:, (graph.edge_index != 3).all(0)])
    looped = torch.cat([torch.tensor([[0, 3], [0, 3]]), without.edge_index], dim=1)
    for seen in (graph, without, Data(x=graph.x, edge_index=looped)):
        expected = alone(seen.x, seen.edge_index[:, :0]) + alone(seen.x, seen.edge_index).relu()
        torch.testing.assert_close(made(seen), expected / 2)


@pytest.mark.parametrize("normalisation", ["batch", "layer"])
@pytest.mark.parametrize("last", [False, True])
def test_activated_layers_are_normalised(graph, normalisation, last):
    made = network(MLP, **options(normalisation=normalisation, last_activation=last))

    def normalised(x, norm):
        axis = 0 if normalisation == "batch" else 1
        scale = (x.var(axis, correction=0, keepdim=True) + 1e-5).sqrt()
        return (x - x.mean(axis, True)) / scale + norm.bias

    expected = made.layers[1](normalised(made.layers[0](graph.x), made.norms[0]).relu())
    if last:
        expected = normalised(expected, made.norms[1]).relu()
    torch.testing.assert_close(made(graph), expected)


def test_residual_and_input_layer_are_linear_maps(graph):
    made = network(GAT, **options(residual=True, input_layer=True, layers=1))
    (layer,), (around,) = made.layers, made.shortcuts
    x = graph.x @ made.input_layer.weight.T + made.input_layer.bias
    looped, _ = add_self_loops(graph.edge_index)
    torch.testing.assert_close(made(graph), layer(x, looped) + around(x))


@ALL_KINDS
def test_with_classes_the_last_layer_makes_the_logits(graph, kind):
    made = network(kind, **options(residual=True, **CLASSES))
    assert made.gives_logits
    assert made(graph).shape == (graph.num_nodes, made.dim_out) == (graph.num_nodes, 3)
    hidden = network(kind, skip_average=False, last_activation=True, **CLASSES)
    assert not hidden.gives_logits
    assert hidden(graph).shape == (graph.num_nodes, hidden.dim_out) == (graph.num_nodes, 4)


@pytest.mark.parametrize("last_heads", [None, 1])
def test_the_logits_of_several_heads_are_their_mean(graph, last_heads):
    made = network(GAT, **options(heads=4, last_heads=last_heads, **CLASSES))
    first, last = made.layers
    assert (first.concat, first.heads, first.out_channels) == (True, 4, 1)
    assert (last.heads, last.out_channels) == (last_heads or 4, 3)
    looped, _ = add_self_loops(graph.edge_index)
    apart = GATConv(4, 3, heads=last.heads, bias=False)
    apart.load_state_dict({k: v for k, v in last.state_dict().items() if k != "bias"})
    logits = apart(torch.relu(first(graph.x, looped)), graph.edge_index).unflatten(1, (-1, 3))
    torch.testing.assert_close(made(graph), logits.mean(1) + last.bias)


@pytest.mark.parametrize(
    ("kind", "layer", "graph_of"),
    [
        (MLP, nn.Linear, None),
        (GCN, GCNConv, "edge_index"),
        (partial(GAT, heads=1), GATConv, "edge_index"),
        (GraphSAGE, SAGEConv, "edge_index"),
        (partial(GraphSAGE, project_first=True), MeanSAGE, "edge_index"),
        (partial(SGC, K=2), partial(SGConv, K=2), "edge_index"),
        (ChebNet, partial(ChebConv, K=3), "edge_index"),
    ],
)
def test_each_network_is_its_layer_of_pyg_with_the_same_random_numbers(
    graph, kind, layer, graph_of
):
    results = []
    for make in (partial(layer, 5, 16), partial(kind, 5, skip_average=False)):
        torch.manual_seed(0)
        made = make()
        given = (graph.x, *([graph[graph_of]] if graph_of else []))
        out = made(graph) if hasattr(made, "dim_out") else made(*given)
        names = dict(made.named_parameters())
        gradients = torch.autograd.grad(out.square().sum(), list(names.values()))
        results.append((out, *gradients, torch.rand(1)))
    torch.testing.assert_close(*results, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("hops", [1, 3])
def test_sign_is_a_linear_map_of_powers_of_the_normalised_adjacency(hops, graph):
    model = SIGN(5, hops=hops, dim=4)
    nodes = graph.num_nodes
    adjacency = torch.eye(nodes)
    adjacency[graph.edge_index[1], graph.edge_index[0]] = 1
    scale = adjacency.sum(1).rsqrt()
    adjacency = scale[:, None] * adjacency * scale
    powers = [torch.linalg.matrix_power(adjacency, r) @ graph.x for r in range(hops + 1)]
    (linear,) = model.layers
    expected = torch.cat(powers, 1) @ linear.weight.T + linear.bias
    torch.testing.assert_close(model(graph), expected)
    torch.testing.assert_close(model(graph), expected)  # the mixtures are not mixed again


def test_sage_that_projects_first_is_sage(graph):
    first, plain = MeanSAGE(5, 4), SAGEConv(5, 4)
    with torch.no_grad():
        plain.lin_l.weight.copy_(first.lin.weight[:4])
        plain.lin_r.weight.copy_(first.lin.weight[4:])
        plain.lin_l.bias.copy_(first.bias.normal_())
    torch.testing.assert_close(first(graph.x, graph.edge_index), plain(graph.x, graph.edge_index))


def dropped(graph, probability):
    """A network, and which edges and loops a step keeps, `[nodes, nodes]`."""
    torch.manual_seed(0)
    made = DropEdge(5, probability, dim=4, layers=2, skip_average=False)

    def adjacency():
        (matrix,) = made.graph(graph)
        return (
            torch.sparse_coo_tensor(torch.stack(matrix.ends), matrix.rows[2] > 0).to_dense() * 1.0
        )

    return made, adjacency


def test_as_many_edges_are_left_out_as_it_says_each_alike(graph):
    _, adjacency = dropped(graph, 0.3)
    torch.manual_seed(1)
    draws = torch.stack([adjacency() for _ in range(2000)])
    assert torch.equal(draws, draws.mT)  # both directions together
    assert torch.equal(draws.diagonal(dim1=1, dim2=2), torch.ones(2000, 12))
    source, target = graph.edge_index
    share = draws[:, source, target].mean(0)
    # Four standard deviations of the mean of 2,000 draws, for every edge.
    assert (share - 0.7).abs().max() < 4 * (0.3 * 0.7 / 2000) ** 0.5
    total, edges = (draws.sum((1, 2)) - 12) / 2, graph.num_edges / 2
    # Of independent edges the variances add.
    assert total.var().item() == pytest.approx(0.21 * edges, rel=0.15)


def test_a_step_on_a_part_of_the_edges_is_gcn_on_the_smaller_graph(graph):
    made, adjacency = dropped(graph, 0.5)
    plain = GCN(5, dim=4, layers=2, skip_average=False)
    plain.load_state_dict(made.state_dict())
    torch.manual_seed(1)
    found = made(graph)
    torch.manual_seed(1)
    left = adjacency().fill_diagonal_(0).nonzero().T
    assert 0 < left.shape[1] < graph.num_edges
    torch.testing.assert_close(found, plain(Data(x=graph.x, edge_index=left)))
    made.eval()
    state = torch.get_rng_state()
    torch.testing.assert_close(made(graph), plain(graph))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", [GCN, GraphSAGE, GAT])
def test_features_are_dropped_unless_said_otherwise(graph, kind):
    given = {"layers": 1, "skip_average": False, "dropout": 0.9}
    still = network(kind, **given).eval()(graph)
    torch.testing.assert_close(network(kind, **given, input_dropout=False).train()(graph), still)
    assert not torch.allclose(network(kind, **given).train()(graph), still)
