"""Hypformer against the worked example of its specification, its limits and its invariances."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch_geometric.data import Data

from curvlab.data.transforms.graph import NormalisedAdjacency
from curvlab.layers import (
    LorentzLinear,
    LorentzSoftmaxAttention,
    PoincareDistanceAttention,
    TangentDistanceAttention,
)
from curvlab.layers.graph_propagation import GraphConvolutionBranch
from curvlab.manifolds import Lorentz
from curvlab.models.hypformer import Hypformer
from drawn import assert_finite
from graphs import random_graph

pytestmark = pytest.mark.usefixtures("float64")

FEATURES = [(0.5, -1, 0.2), (1.5, 0.3, -0.7), (-0.4, 0.8, 1.1)]
PATH = [[0, 1, 1, 2], [1, 0, 2, 1]]
KAPPA_IN, KAPPA = -1.0, -0.5  # k from 1 to 2

MODEL = {"in_channels": 3, "dim": 4, "heads": 2, "graph_weight": 0.4}


def model(*, kappa=KAPPA, learnable=False, branch=None, **options):
    torch.manual_seed(0)
    return Hypformer(
        manifold=partial(Lorentz, kappa=kappa, learnable=learnable),
        graph_branch=partial(GraphConvolutionBranch, **{"weight": True, **(branch or {})}),
        **{**MODEL, **options},
    )


def graph(x=FEATURES, edges=PATH):
    x = torch.as_tensor(x, dtype=torch.get_default_dtype())
    data = NormalisedAdjacency(False)(Data(x=x, edge_index=torch.tensor(edges), num_nodes=len(x)))
    data.normalised_adj = data.normalised_adj.to(x.dtype)
    return data


def larger():
    """A random graph, some of whose nodes are alone, one without features."""
    data = random_graph(30, 40, 3, alone=3)
    data.x[4] = 0
    return graph(data.x, data.edge_index.tolist())


def wave(*shape):
    """A matrix of the worked example, filled row by row."""
    i = torch.arange(shape[0] * shape[1])
    return (0.3 * torch.sin(0.7 * i + 0.1)).reshape(shape)


def fill(made):
    """Give a model the weights of the worked example, each head's matrices filled by themselves,
    and return its two decoders as the one that reads both branches, `[nodes, 8] -> [nodes, 2]`."""
    dim, heads = made.dim_out // 2, MODEL["heads"]
    cosine = 0.05 * torch.cos(torch.arange(float(dim)))
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith("projection.weight"):
                parameter.copy_(wave(dim, 1 + dim).repeat(3 * heads, 1))
            elif name.endswith("projection.bias"):
                parameter.copy_(cosine[:dim].repeat(3 * heads))
            elif parameter.dim() == 2:
                parameter.copy_(wave(*parameter.shape))
            elif "input_map" not in name and "norms" not in name:
                parameter.copy_(cosine[: len(parameter)])
    alpha = made.graph_weight
    decoder = nn.Linear(2 * dim, 2)
    with torch.no_grad():
        decoder.weight.copy_(wave(2, dim).repeat(1, 2))
        decoder.bias.copy_(((1 - alpha) + alpha) * cosine[:2])
    return decoder


WORKED = {  # curvature mode, lift, layer norm and relu: logits
    ("rescale", "exp0", True): [
        (0.055258, 0.030994), (0.055922, 0.055972), (0.031548, 0.092118)
    ],
    ("recalibrate", "exp0_ref", True): [
        (0.054090, 0.032906), (0.055410, 0.056739), (0.031194, 0.092542)
    ],
}  # fmt: skip


@pytest.mark.parametrize("variant", WORKED)
def test_logits_of_the_worked_example(variant):
    mode, lift, extras = variant
    made = model(
        curvature_mode=mode, input_lift=lift, layer_norm=extras, input_activation=extras
    ).eval()
    decoder = fill(made)
    logits = decoder(made(graph()))
    torch.testing.assert_close(logits, torch.tensor(WORKED[variant]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_on_the_hyperboloid_it_is_the_midpoint_of_the_weighted_branches(alpha):
    """`sqrt(k) s / sqrt(|<s, s>|)`, `s = (1 - alpha) z + alpha g`."""
    made, data = model(fusion="midpoint", graph_weight=alpha, heads=1), larger()
    point = made.transformer(data.x)
    vector = made.graph_branch(data.x, data.normalised_adj)
    lifted = made.graph_lift(made.space.expmap0(vector))
    total = (1 - alpha) * point + alpha * lifted
    square = total[:, 1:].square().sum(1) - total[:, 0].square()
    expected = total * (1 / -made.space.kappa / square.abs()).sqrt()[:, None]
    torch.testing.assert_close(made(data), expected)
    assert made.manifold_out is made.space
    assert made.dim_out == 5


OPTIONS = {
    "plain": {},
    "maps": {"layer_norm": True, "input_activation": True},
    "recalibrated": {"curvature_mode": "recalibrate", "layers": 2},
    "recalibrated maps": {"curvature_mode": "recalibrate", "layers": 2, "layer_norm": True},
    "deep": {"layers": 3, "residual": False},
    "softmax": {"attention": LorentzSoftmaxAttention, "layers": 2},
    "distances": {"attention": TangentDistanceAttention, "layers": 2},
    "distances of HNN++": {"attention": PoincareDistanceAttention, "fusion": "midpoint"},
    "midpoint": {"fusion": "midpoint"},
}
VARIANTS = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


@pytest.mark.usefixtures("float32")
@VARIANTS
def test_gradients_are_finite_where_features_are_zero_or_all_negative(options):
    """And evaluation, twice, is training without dropout."""
    made, data = model(learnable=True, **options), larger()
    with torch.no_grad():  # queries and keys of some node are then all negative
        for part in made.modules():
            if isinstance(getattr(part, "projection", None), LorentzLinear):
                part.projection.bias.fill_(-1.0)
    out = made(data)
    assert_finite(out.square(), made.parameters())
    made.eval()
    assert torch.equal(made(data), out)
    assert torch.equal(made(data), out)


@pytest.mark.parametrize("fusion", ["tangent", "midpoint"])
def test_decoders_read_points_of_a_third_curvature(fusion):
    """Rescaled from the attention's, distances and logarithms times sqrt(kappa_2 / kappa_3)."""
    kappa_out, data = -0.2, larger()
    options = {"graph": False, "fusion": fusion}
    two, three = (model(kappa_out=k, **options).eval() for k in (None, kappa_out))
    assert float(three.manifold_out.kappa if fusion == "midpoint" else three.space.kappa) == -0.2
    factor = (KAPPA / kappa_out) ** 0.5
    torch.testing.assert_close(three(data), factor * two(data))
    same = model(kappa_out=KAPPA, fusion=fusion).eval()
    torch.testing.assert_close(same(data), model(fusion=fusion).eval()(data))


@pytest.mark.parametrize("mode", ["rescale", "recalibrate"])
def test_gradients_of_the_curvatures_are_central_differences(mode):
    made, data = model(learnable=True, curvature_mode=mode, fusion="midpoint"), larger()
    raws = {name: p.detach() for name, p in made.named_parameters() if "curvature" in name}
    assert len(raws) == 2

    def output(*values):  # of nodes with and without edges
        return functional_call(made, dict(zip(raws, values, strict=True)), (data,))[2::5]

    inputs = [raw.requires_grad_() for raw in raws.values()]
    assert torch.autograd.gradcheck(output, inputs)
    gradients = torch.autograd.grad(output(*inputs)[:, 1:].square().sum(), inputs)
    assert all(abs(gradient) > 1e-6 for gradient in gradients)


def test_parameters_are_those_of_the_released_code():
    """Of Cora: 1,834,769, of which these are made and not used.

    All layer norms and all norms and maps of the graph's branch, whatever it is told; the dead t, a
    scale and a bias in the layer; of two linear decoders, here one, the second's bias.
    """
    d, h, classes, graph_layers = 1433, 256, 7, 6
    branch = {"layers": graph_layers, "weight": False}
    made = model(in_channels=d, dim=h, heads=1, branch=branch)
    decoder = nn.Linear(made.dim_out, classes)
    count = sum(p.numel() for part in (made, decoder) for p in part.parameters())
    unused = 2 * h * 2 + 3 + 2 * h * (graph_layers + 1) + graph_layers * (h * h + h) + classes
    assert count + unused == 1_834_769
