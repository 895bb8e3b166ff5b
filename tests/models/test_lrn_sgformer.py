"""SGFormer on the hyperboloid: what the four merges are, against SGFormer's flat one."""

from functools import partial

import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.errors import UsageError
from curvlab.layers.lorentz import OPERATORS
from curvlab.manifolds import Lorentz, lorentz
from curvlab.models import LRNSGFormer, SGFormer
from curvlab.models.sgformer import BranchSum

G = 0.8
BRANCHES = {"in_channels": 4, "dim": 6, "graph_weight": G}


def model(operator, kappa=-1.0, weights="fixed"):
    torch.manual_seed(0)
    return LRNSGFormer(
        manifold=partial(Lorentz, kappa, False),
        residual=partial(BranchSum, operator=operator, weights=weights),
        **BRANCHES,
    )


@pytest.fixture
def data(float64):
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x = torch.linspace(-1, 1, 16).reshape(4, 4).sin()
    data = NormalisedAdjacency(True)(Data(x=x, edge_index=edges, num_nodes=4))
    data.normalised_adj = data.normalised_adj.double()
    return data


def branches(encoder, data):
    return encoder.attend(data), encoder.convolve(data)


def test_in_the_tangent_space_it_is_sgformer_lifted(data):
    encoder = model("tangent_space")
    torch.manual_seed(0)
    flat = SGFormer(residual=True, **BRANCHES)
    flat.load_state_dict(encoder.state_dict(), strict=False)
    torch.testing.assert_close(encoder(data), lorentz.expmap0(flat(data), -1.0))


def test_the_weights_stand_inside_the_centroid_and_the_sum_of_space_parts(data):
    centroid, addition = model("centroid"), model("space_addition")
    z, g = (lorentz.expmap0(branch, -1.0) for branch in branches(centroid, data))
    expected = lorentz.centroid(torch.stack([z, g], 1), torch.tensor([1 - G, G]), -1.0)
    torch.testing.assert_close(centroid(data), expected)
    expected = lorentz.from_space((1 - G) * z[:, 1:] + G * g[:, 1:], -1.0)
    torch.testing.assert_close(addition(data), expected)


def test_a_learned_weight_starts_at_the_graphs(data):
    fixed, learned = model("centroid"), model("centroid", weights="learned")
    torch.testing.assert_close(fixed(data), learned(data))
    count = [sum(p.numel() for p in encoder.parameters()) for encoder in (fixed, learned)]
    assert count[1] == count[0] + 1


def test_parallel_transport_boosts_the_graphs_branch_by_the_attentions(data):
    encoder = model("parallel_transport")
    z, g = branches(encoder, data)
    h = encoder(data)
    x = lorentz.expmap0((1 - G) * z, -1.0)
    torch.testing.assert_close(lorentz.dist(x, h, -1.0), G * g.norm(dim=-1))


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_branch_without_a_weight_is_refused(weight):
    with pytest.raises(UsageError, match=r"graph_weight=.* must be a number greater than 0"):
        LRNSGFormer(4, graph_weight=weight)


@pytest.mark.usefixtures("float32")
@pytest.mark.parametrize("kappa", [-1e-2, -1.0, -100.0])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [10.0, 30.0, 1e18])
def test_features_of_any_size_have_finite_gradients(operator, kappa, size):
    encoder = model(operator, kappa)
    x = size * torch.randn(4, 4)
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    out = encoder(NormalisedAdjacency()(Data(x=x, edge_index=edges, num_nodes=4)))
    lorentz.dist(out[1:], out[:-1], kappa).sum().backward()
    assert out.isfinite().all()
    assert all(p.grad.isfinite().all() for p in encoder.parameters() if p.grad is not None)
