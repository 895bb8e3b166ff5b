"""DropEdge: which edges a step sees, and what a GCN makes of them."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from curvlab.models import GCN, DropEdge

OPTIONS = {"in_channels": 5, "dim": 4, "layers": 2, "skip_average": False}


def network(edge_dropout, seen=False, **options):
    """A network, with layers that keep what they get of the graph if it is to be seen."""
    torch.manual_seed(0)
    made = DropEdge(edge_dropout=edge_dropout, **{**OPTIONS, **options})
    if seen:
        made.layers = nn.ModuleList(Seen(4) for _ in made.layers)
        made.self_loops = False
    return made


class Seen(nn.Module):
    """A layer that keeps what it gets of the graph."""

    def __init__(self, out_channels):
        super().__init__()
        self.dim, self.graph = out_channels, None

    def forward(self, x, edge_index, weight=None):
        self.graph = edge_index, weight
        return x[:, :1].expand(-1, self.dim)


def kept(made, graph):
    """The dense matrix `[nodes, nodes]` of the edges that a layer keeps."""
    made(graph)
    edge_index, weight = made.layers[0].graph
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    matrix[edge_index[0], edge_index[1]] = 1.0 if weight is None else weight
    return matrix


def test_as_many_edges_are_left_out_as_it_says_each_alike(graph):
    made = network(0.3, seen=True)
    torch.manual_seed(1)
    draws = torch.stack([kept(made, graph) for _ in range(2000)])
    assert torch.equal(draws, draws.mT)  # both directions together
    source, target = graph.edge_index
    share = draws[:, source, target].mean(0)
    # Four standard deviations of the mean of 2,000 draws, for every edge.
    assert (share - 0.7).abs().max() < 4 * (0.3 * 0.7 / 2000) ** 0.5
    total = draws.sum((1, 2)) / 2
    edges = graph.num_edges / 2
    assert abs(total.mean() - 0.7 * edges) < 4 * (0.21 * edges / 2000) ** 0.5
    # Of independent edges the variances add.
    assert total.var().item() == pytest.approx(0.21 * edges, rel=0.15)


def test_a_step_draws_once_for_all_layers_and_the_next_anew(graph):
    made = network(0.5, seen=True)
    first = kept(made, graph)
    assert torch.equal(made.layers[0].graph[1], made.layers[1].graph[1])
    assert not torch.equal(kept(made, graph), first)


def test_evaluation_sees_the_whole_graph_after_any_training(graph):
    made = network(0.5)
    plain = GCN(**OPTIONS)
    plain.load_state_dict(made.state_dict())
    made(graph)
    made.eval()
    state = torch.get_rng_state()
    assert torch.equal(made(graph), plain.eval()(graph))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.usefixtures("float64")
def test_what_is_left_is_normalised_by_its_own_degrees(graph):
    """The GCN of the smaller graph, `D^-1/2 (A + I) D^-1/2` of its adjacency."""
    made = network(0.5, layers=1)
    graph.x = graph.x.double()
    torch.manual_seed(1)
    out = made(graph)
    torch.manual_seed(1)
    edge_index, weight = made._graph(graph)
    looped = torch.eye(12)
    looped[edge_index[0], edge_index[1]] = weight
    assert 12 < looped.sum() < 12 + graph.num_edges
    scale = looped.sum(1).rsqrt()
    layer = made.layers[0]
    expected = scale[:, None] * looped * scale @ graph.x @ layer.lin.weight.T + layer.bias
    torch.testing.assert_close(out, expected)


@pytest.mark.usefixtures("float64")
def test_nothing_is_left_out_at_probability_zero(graph):
    made = network(0.0)
    trained = made(graph)
    torch.testing.assert_close(trained, made.eval()(graph))


def test_another_graph_has_other_edges():
    made = network(0.5, seen=True)
    for nodes in (4, 6):
        ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
        edge_index = torch.cat([ring, ring.flip(0)], dim=1)
        matrix = kept(made, Data(x=torch.ones(nodes, 5), edge_index=edge_index))
        assert torch.equal(matrix, matrix.T)
