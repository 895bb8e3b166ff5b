"""Where products round their factors to 10 bits, what would cancel is as right as without.

What is pinned to full precision has the same digits; all else, which TF32 does round, changes what
a model says of a graph by less than 1 %.
"""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from composing import CONFIGS
from curvlab.config.folder import choices
from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.layers.lorentz import LorentzPrototypes
from curvlab.layers.lorentz_attention import LorentzSoftmaxAttention, PoincareLinear
from curvlab.layers.stereographic import StereographicLogits
from curvlab.manifolds import (
    Euclidean,
    Lorentz,
    PseudoHyperboloid,
    Stereographic,
    matrix_products,
)
from curvlab.models.idgl import half_squared_distances
from curvlab.models.triples.ball import MuRP, RotH
from curvlab.models.triples.flat import RotatE, TransE
from curvlab.tasks.pairs.loss import reconstruction_loss
from curvlab.tasks.pairs.tiles import PairTiles
from modes import tf32
from tiny_data import said

MODELS = choices(CONFIGS, "model")

LARGEST_CHANGE = 5e-5
"""Of a pinned quantity's derivative, whose other factors may be rounded."""


def near_each_other(*shape, centre=2.0, spread=0.02):
    """Vectors that are much farther from 0 than from each other."""
    generator = torch.Generator().manual_seed(0)
    return centre + spread * torch.randn(shape, generator=generator)


def learned_graph():
    x = near_each_other(20, 8).requires_grad_()
    return half_squared_distances(x), x


def reconstruction(space):
    """The loss of a small graph, whose derivative by the points is where it matters."""
    edge_index = SyntheticWeb(num_nodes=20, cycle_fraction=0.5, seed=0).load().edge_index
    vectors = near_each_other(20, 4, centre=1.0 if space.kappa is None else 0.6)
    x = (vectors if space.kappa is None else space.expmap0(vectors)).requires_grad_()
    return reconstruction_loss(x, space, PairTiles(edge_index, 20)), x


def prototypes():
    space = Lorentz(kappa=-1.0, learnable=True)
    layer = LorentzPrototypes(4, 3, space)
    layer.prototypes.data = space.expmap0(near_each_other(3, 4))
    x = space.expmap0(near_each_other(10, 4)).requires_grad_()
    return layer(x), x


def softmax_attention():
    space = Lorentz(kappa=-1.0, learnable=True)
    layer = LorentzSoftmaxAttention(4, 1, space)
    x = space.expmap0(near_each_other(10, 4, spread=0.3)).requires_grad_()
    return layer.weighted_sums(x[None], x[None], space.expmap0(near_each_other(1, 10, 4))), x


def poincare_linear():
    space = Lorentz(kappa=-1.0, learnable=True)
    layer = PoincareLinear(4, 6, space)
    x = space.expmap0(near_each_other(10, 4)).requires_grad_()
    with torch.no_grad():  # hyperplanes that pass by the points
        length = torch.linalg.vector_norm(layer.weight, dim=-1)
        slope = (layer.weight * x[0, 1:]).sum(-1) / length / x[0, 0]
        layer.offset.copy_(0.5 * slope.clamp(-0.99, 0.99).atanh())
    return layer.space_part(x), x


def hyperplanes():
    space = Stereographic(kappa=[-1.0, 0.5], components=2, learnable=True)
    layer = StereographicLogits(8, 3, space)
    nn.init.normal_(layer.normal)
    layer.offset.data = near_each_other(3, 8, centre=0.5)
    x = space.expmap0(near_each_other(10, 8, centre=0.5)).requires_grad_()
    return layer(x), x


def scores(kind):
    model = kind(num_entities=9, num_relations=2, dim=8).eval()
    model.entities.weight.data = near_each_other(9, 8, centre=0.6)
    for name, parameter in model.named_parameters():
        if any(word in name for word in ("relations", "translations", "rotations", "angles")):
            parameter.data.zero_()
    if kind is RotH:
        model.rotations.weight.data[:, ::2] = 1
    queries = Data(head=torch.arange(9), relation=torch.arange(9) % 2)
    return model.scores(queries), model.entities.weight


SPACES = {
    "flat": Euclidean,
    "stereographic": lambda: Stereographic(kappa=[-1.0, 0.5], components=2, learnable=True),
    "lorentz": lambda: Lorentz(kappa=-1.0, learnable=True),
    "pseudo": lambda: PseudoHyperboloid(time_dims=2, learnable=True),
}
PINNED = {
    "learned graph": learned_graph,
    "prototypes": prototypes,
    "softmax attention": softmax_attention,
    "poincare linear": poincare_linear,
    "hyperplanes": hyperplanes,
    **{f"loss, {name}": lambda make=make: reconstruction(make()) for name, make in SPACES.items()},
    **{kind.__name__: lambda kind=kind: scores(kind) for kind in (TransE, RotatE)},
}
DOUBLE = {kind.__name__: lambda kind=kind: scores(kind) for kind in (MuRP, RotH)}
"""Quantities that are computed in double precision."""


def change(found, expected):
    """Relative to the size of what is expected."""
    return float((found - expected).norm() / expected.norm())


def value_and_slope(quantity, autocast=False):
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        value, x = quantity()
    weights = torch.randn(value.shape, generator=torch.Generator().manual_seed(1))
    return value.detach(), torch.autograd.grad((weights * value).sum(), x)[0]


@pytest.mark.usefixtures("plain_kernels")  # those in C++ multiply no matrices of torch's
@pytest.mark.parametrize("quantity", PINNED.values(), ids=PINNED)
def test_what_cancels_is_pinned(quantity, monkeypatch):
    """And it has to be: without the pin these would be the changes."""
    expected = value_and_slope(quantity)
    with tf32():
        found = value_and_slope(quantity)
    assert torch.equal(found[0], expected[0])
    assert change(found[1], expected[1]) < LARGEST_CHANGE
    monkeypatch.setattr(matrix_products, "FULL", {"tf32", "bf16"})
    with tf32():
        unpinned = value_and_slope(quantity)
    assert max(map(change, unpinned, expected)) > 50 * LARGEST_CHANGE


@pytest.mark.usefixtures("plain_kernels")
@pytest.mark.parametrize("quantity", DOUBLE.values(), ids=DOUBLE)
def test_products_in_double_precision_need_no_pin(quantity, monkeypatch):
    expected = value_and_slope(quantity)
    monkeypatch.setattr(matrix_products, "FULL", {"tf32", "bf16"})
    with tf32():
        found = value_and_slope(quantity)
    assert torch.equal(found[0], expected[0])
    assert change(found[1], expected[1]) < LARGEST_CHANGE


@pytest.mark.parametrize("quantity", [*PINNED.values(), *DOUBLE.values()], ids=[*PINNED, *DOUBLE])
def test_autocast_does_not_halve_what_cancels(quantity):
    for found, expected in zip(
        value_and_slope(quantity, autocast=True), value_and_slope(quantity), strict=True
    ):
        assert found.dtype == torch.float32
        assert change(found, expected) < 0.01


@pytest.mark.sampled(6)
@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_no_model_cares(model, tmp_path):
    expected = said(model, tmp_path)
    with tf32():
        found = said(model, tmp_path)
    for ours, theirs in zip(found, expected, strict=True):
        assert theirs.isfinite().all()
        assert change(ours, theirs) < 0.01
