"""SGFormer against its formulas and the forms with all pairs; on the hyperboloid, its merges."""

from functools import partial

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.layers.lorentz import OPERATORS
from curvlab.manifolds import Lorentz, lorentz
from curvlab.models import LRNSGFormer, SGFormer
from curvlab.models.sgformer import BranchSum, GCNBranch, simple_attention
from drawn import assert_finite
from graphs import symmetric

pytestmark = pytest.mark.usefixtures("float64")


def model(in_channels=5, graph_layers=2, graph_dropout=0.0, **options):

    def branch(features, dim):
        return GCNBranch(features, dim, graph_layers, graph_dropout)

    made = SGFormer(
        in_channels, **{"dim": 4, "graph_weight": 0.3, "graph_branch": branch, **options}
    )
    for parameter in made.parameters():
        if not parameter.any():  # biases, which start at 0
            torch.nn.init.normal_(parameter)
    return made


@pytest.fixture
def graph(graph):
    """The small graph with its normalised adjacency."""
    data = NormalisedAdjacency(self_loops=True)(graph)
    data.normalised_adj = data.normalised_adj.to(data.x.dtype)
    return data


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
    assert_finite(out, [q, k])


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


G = 0.8
BRANCHES = {"in_channels": 5, "dim": 6, "graph_weight": G}


def curved(operator, kappa=-1.0, weights="fixed"):
    torch.manual_seed(0)
    return LRNSGFormer(
        manifold=partial(Lorentz, kappa, False),
        residual=partial(BranchSum, operator=operator, weights=weights),
        **BRANCHES,
    )


def test_in_the_tangent_space_it_is_sgformer_lifted(graph):
    encoder = curved("tangent_space")
    torch.manual_seed(0)
    flat = SGFormer(residual=True, **BRANCHES)
    flat.load_state_dict(encoder.state_dict(), strict=False)
    torch.testing.assert_close(encoder(graph), lorentz.expmap0(flat(graph), -1.0))


def test_the_weights_stand_inside_the_centroid_and_the_sum_of_space_parts(graph):
    centroid, addition = curved("centroid"), curved("space_addition")
    branches = centroid.attend(graph), centroid.convolve(graph)
    z, g = (lorentz.expmap0(branch, -1.0) for branch in branches)
    expected = lorentz.centroid(torch.stack([z, g], 1), torch.tensor([1 - G, G]), -1.0)
    torch.testing.assert_close(centroid(graph), expected)
    expected = lorentz.from_space((1 - G) * z[:, 1:] + G * g[:, 1:], -1.0)
    torch.testing.assert_close(addition(graph), expected)


def test_a_learned_weight_starts_at_the_graphs(graph):
    fixed, learned = curved("centroid"), curved("centroid", weights="learned")
    torch.testing.assert_close(fixed(graph), learned(graph))
    count = [sum(p.numel() for p in encoder.parameters()) for encoder in (fixed, learned)]
    assert count[1] == count[0] + 1


def test_parallel_transport_boosts_the_graphs_branch_by_the_attentions(graph):
    encoder = curved("parallel_transport")
    x = lorentz.expmap0((1 - G) * encoder.attend(graph), -1.0)
    expected = G * encoder.convolve(graph).norm(dim=-1)
    torch.testing.assert_close(lorentz.dist(x, encoder(graph), -1.0), expected)


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("kappa", [-1e-2, -1.0, -100.0])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [10.0, 30.0, 1e18])
def test_features_of_any_size_have_finite_gradients(operator, kappa, size):
    encoder = curved(operator, kappa)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    out = encoder(Data(x=size * torch.randn(4, 5), edge_index=edges))
    assert_finite(lorentz.dist(out[1:], out[:-1], kappa), encoder.parameters())
    assert out.isfinite().all()
