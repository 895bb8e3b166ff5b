"""Graphormer: its attention by parts, the nodes it attends to, and its embeddings of degrees."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.layers import row_blocks
from curvlab.models.graphormer import Graphormer, SpatialAttention

NODES, FEATURES, DIM, LONGEST = 9, 5, 8, 4

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def graph():
    torch.manual_seed(0)
    path = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]])  # and 7, 8 by themselves
    data = Data(x=torch.randn(NODES, FEATURES), edge_index=torch.cat([path, path.flip(0)], 1))
    return ShortestPaths(LONGEST)(data)


def model(heads=2, layers=2, largest_degree=1):
    torch.manual_seed(1)
    return Graphormer(FEATURES, LONGEST, largest_degree, DIM, layers, heads, 16, 0.0)


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_is_its_formula(graph, heads):
    torch.manual_seed(2)
    layer, x = SpatialAttention(DIM, heads, LONGEST + 2), torch.randn(NODES, DIM)
    q, k, v = (x @ w.T for w in layer.projection.weight.split(DIM))
    q, k, v = (a + b for a, b in zip((q, k, v), layer.projection.bias.split(DIM), strict=True))
    width, joined = DIM // heads, []
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = q[:, part] @ k[:, part].T / width**0.5 + layer.bias[head][graph.hops.long()]
        joined.append(scores.softmax(-1) @ v[:, part])
    torch.testing.assert_close(layer(x, graph.hops), layer.out(torch.cat(joined, 1)))


def test_blocks_of_rows_change_nothing(graph, monkeypatch):
    made = model()

    def found():
        out = made(graph)
        return out, torch.autograd.grad(out[:, 0].sum(), list(made.parameters()))

    whole = found()
    monkeypatch.setattr(row_blocks, "BLOCK_ENTRIES", 2 * 2 * NODES)
    torch.testing.assert_close(found(), whole)


def test_the_bias_decides_which_nodes_count(graph):
    """With all but the neighbours shut out, two layers reach two hops."""
    made = model()
    for attention in made.attentions:
        attention.bias.data[:, 2:] = -torch.inf
    graph.x.requires_grad_()
    reached = torch.autograd.grad(made(graph)[0, 0], graph.x)[0].abs().sum(1) > 0
    assert reached.tolist() == [True, True, True, *[False] * 6]
    alone = torch.autograd.grad(made(graph)[8, 0], graph.x)[0].abs().sum(1) > 0
    assert alone.tolist() == [*[False] * 8, True]


def test_degrees_are_told_apart_up_to_the_largest(graph):
    graph.x = torch.ones(NODES, FEATURES)
    graph.hops = torch.zeros(NODES, NODES, dtype=torch.uint8)
    ends, middle, alone = model()(graph)[[0, 3, 8]]
    torch.testing.assert_close(ends, middle)  # degrees 1 and 2 where the largest is 1
    assert not torch.allclose(ends, alone)
    ends, middle = model(largest_degree=2)(graph)[[0, 3]]
    assert not torch.allclose(ends, middle)


def test_layers_share_one_bias_for_each_distance():
    """Section 3.1.2 of arXiv:2106.05234: "shared across all layers"."""
    biases = [p for name, p in model(layers=3).named_parameters() if name.endswith(".bias")]
    assert sum(bias.shape == (2, LONGEST + 2) for bias in biases) == 1
