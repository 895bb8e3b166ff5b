"""SGFormer against its formulas and the forms with all pairs."""

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.models.sgformer import GCNBranch, SGFormer, simple_attention
from graphs import symmetric
from largest_tensor import LargestTensor

pytestmark = pytest.mark.usefixtures("float64")


def model(in_channels=5, graph_layers=2, graph_dropout=0.0, **options):
    torch.manual_seed(0)

    def branch(features, dim):
        return GCNBranch(features, dim, graph_layers, graph_dropout)

    made = SGFormer(
        in_channels, **{"dim": 4, "graph_weight": 0.3, "graph_branch": branch, **options}
    )
    for parameter in made.parameters():
        if not parameter.any():  # biases, which start at 0
            torch.nn.init.normal_(parameter)
    return made


def prepared(data):
    """The graph with its normalised adjacency."""
    data = NormalisedAdjacency(self_loops=True)(data)
    data.normalised_adj = data.normalised_adj.to(data.x.dtype)
    return data


@pytest.fixture
def graph(graph):
    """The small graph, prepared."""
    return prepared(graph)


EVERYTHING = {"layers": 2, "heads": 3, "value_map": True, "residual": True, "layer_norm": True}


def all_pairs(q, k, v):
    """The matrix of every head, `[nodes, nodes]`, times its values."""
    q, k = q / q.norm(), k / k.norm()
    nodes, heads = q.shape[:2]
    outputs = []
    for h in range(heads):
        weights = nodes * torch.eye(nodes) + q[:, h] @ k[:, h].T
        outputs.append(weights / (nodes + q[:, h] @ k[:, h].sum(0))[:, None] @ v[:, h])
    return torch.stack(outputs, 1)


def test_attention_is_that_of_all_pairs():
    q, k, v = torch.randn(3, 7, 3, 4)
    torch.testing.assert_close(simple_attention(q, k, v), all_pairs(q, k, v))
    shared = simple_attention(q, k, v[:, :1])
    torch.testing.assert_close(shared, all_pairs(q, k, v[:, :1].expand(-1, 3, -1)))


def test_attention_on_nothing_is_the_values_and_has_gradients():
    q, k = (torch.zeros(5, 2, 3, requires_grad=True) for _ in range(2))
    v = torch.randn(5, 2, 3)
    out = simple_attention(q, k, v)
    torch.testing.assert_close(out, v)
    out.sum().backward()
    assert q.grad.isfinite().all()
    assert k.grad.isfinite().all()


def attended(layer, x):
    """The mean over heads, which are as wide as the layer."""
    q, k = (part(x).view(12, layer.heads, 4) for part in (layer.queries, layer.keys))
    v = layer.values(x).view(12, -1, 4) if layer.values else x[:, None].expand(-1, layer.heads, -1)
    return all_pairs(q, k, v).mean(1)


def test_branches_are_their_formulas(graph):
    """Order of norms, residual connections and activations."""
    for options in ({}, EVERYTHING):
        made = model(**options).eval()
        one = made.transformer
        x = torch.relu(one.feature_norm(graph.x @ one.features.weight.T + one.features.bias))
        for attention, norm in zip(one.layers, one.norms, strict=True):
            mixed = attended(attention, x)
            x = norm((mixed + x) / 2) if options else mixed
        A, branch = symmetric(graph), made.graph_branch
        g = torch.relu(A @ graph.x @ branch.maps[0].weight.T + branch.biases[0])
        g = A @ g @ branch.maps[1].weight.T + branch.biases[1]
        torch.testing.assert_close(made(graph), 0.3 * g + 0.7 * x)


def test_memory_is_linear_in_the_nodes():
    nodes = 3000
    made = model(heads=2, layers=2)
    edges = torch.randint(nodes, (2, 4 * nodes))
    batch = prepared(Data(x=torch.randn(nodes, 5), edge_index=edges, num_nodes=nodes))
    with LargestTensor() as largest:
        made(batch).square().sum().backward()
    assert largest.elements <= 50 * nodes
