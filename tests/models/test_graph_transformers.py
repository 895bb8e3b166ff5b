"""GraphTrans and GraphGPS: their parts, and the nodes that an embedding depends on."""

from functools import partial

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from curvlab.models.graphgps import GraphGPS
from curvlab.models.graphtrans import GraphTrans

NODES, FEATURES, DIM = 9, 5, 8

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture
def graph():
    torch.manual_seed(0)
    path = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]])  # and 7, 8 by themselves
    return Data(x=torch.randn(NODES, FEATURES), edge_index=torch.cat([path, path.flip(0)], 1))


def graphtrans(heads=2):
    torch.manual_seed(1)
    return GraphTrans(FEATURES, dim=DIM, heads=heads, ffn_dim=16).eval()


def graphgps(attention, heads=2, dropout=0.0):
    torch.manual_seed(1)
    return GraphGPS(FEATURES, DIM, 2, heads, attention, dropout).eval()


KINDS = {
    "graphtrans": graphtrans,
    "performer": partial(graphgps, "performer"),
    "multihead": partial(graphgps, "multihead"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_embedding_depends_on_all_nodes_and_on_its_neighbours_by_themselves(kind, graph):
    """Node 8 has no neighbours: it depends on node 0 by attention alone."""
    model = KINDS[kind]()
    graph.x.requires_grad_()
    (gradient,) = torch.autograd.grad(model(graph)[8].square().sum(), graph.x)
    assert (gradient.abs().sum(1) > 0).all()
    cut = Data(x=graph.x, edge_index=graph.edge_index[:, :0])
    assert (model(cut) - model(graph))[:7].abs().amax(1).min() > 1e-3


def test_graphtrans_is_pytorchs_encoder_behind_the_network(graph):
    model = graphtrans(heads=1)
    x = model.norm(model.graph_network(graph))
    for layer in model.layers:
        q, k, v = nn.functional.linear(
            x, layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias
        ).chunk(3, 1)
        mixed = (q @ k.T / DIM**0.5).softmax(1) @ v
        x = layer.norm1(x + layer.self_attn.out_proj(mixed))
        x = layer.norm2(x + layer.linear2(torch.relu(layer.linear1(x))))
    torch.testing.assert_close(model(graph), x)


def test_a_layer_of_graphgps_is_the_sum_of_its_parts(graph):
    model = graphgps("multihead", heads=1)
    x = torch.relu(model.input(graph.x))
    for layer in model.layers:
        local = layer.norm1(x + layer.conv(x, graph.edge_index))
        whole = layer.norm2(x + layer.attn(x[None], x[None], x[None])[0][0])
        x = layer.norm3((local + whole) + layer.mlp(local + whole))
    torch.testing.assert_close(model(graph), x)
