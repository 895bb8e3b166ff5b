"""GraphTrans, GraphGPS and Graphormer: their parts, and the nodes an embedding depends on."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.shortest_paths import ShortestPaths
from curvlab.layers import row_blocks
from curvlab.models import GraphGPS, Graphormer
from curvlab.models.graph_transformers import SpatialAttention

NODES, FEATURES, DIM, LONGEST = 9, 5, 8, 4

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def graph():
    path = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]])  # and 7, 8 by themselves
    data = Data(x=torch.randn(NODES, FEATURES), edge_index=torch.cat([path, path.flip(0)], 1))
    return ShortestPaths(LONGEST)(data)


def test_a_layer_of_graphgps_is_the_sum_of_its_parts(graph):
    model = GraphGPS(FEATURES, DIM, 2, 1, "multihead", 0.0).eval()
    x = torch.relu(model.input(graph.x))
    for layer in model.layers:
        local = layer.norm1(x + layer.conv(x, graph.edge_index))
        whole = layer.norm2(x + layer.attn(x[None], x[None], x[None])[0][0])
        x = layer.norm3((local + whole) + layer.mlp(local + whole))
    torch.testing.assert_close(model(graph), x)


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_of_graphormer_is_its_formula(graph, heads):
    layer, x = SpatialAttention(DIM, heads, LONGEST + 2), torch.randn(NODES, DIM)
    q, k, v = (x @ w.T for w in layer.projection.weight.split(DIM))
    q, k, v = (a + b for a, b in zip((q, k, v), layer.projection.bias.split(DIM), strict=True))
    width, joined = DIM // heads, []
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = q[:, part] @ k[:, part].T / width**0.5 + layer.bias[head][graph.hops.long()]
        joined.append(scores.softmax(-1) @ v[:, part])
    torch.testing.assert_close(layer(x, graph.hops), layer.out(torch.cat(joined, 1)))


def test_blocks_of_graphormers_rows_change_nothing(graph, monkeypatch):
    made = Graphormer(FEATURES, LONGEST, 1, DIM, 2, 2, 16, 0.0)

    def found():
        out = made(graph)
        return out, torch.autograd.grad(out[:, 0].sum(), list(made.parameters()))

    whole = found()
    monkeypatch.setattr(row_blocks, "BLOCK_ENTRIES", 2 * 2 * NODES)
    torch.testing.assert_close(found(), whole)
