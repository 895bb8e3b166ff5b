"""Attention in constant-curvature spaces: geoopt's midpoints, its definition, its limits."""

import pytest
import torch
from torch.nn import functional

from curvlab.layers import StereographicAttention
from curvlab.layers import stereographic as layers
from curvlab.layers.stereographic import linear_attention, midpoint_attention, positive_features
from curvlab.manifolds import Euclidean, Stereographic, stereographic
from curvlab.manifolds._geoopt import geoopt
from drawn import draw, filled

pytestmark = pytest.mark.usefixtures("float64")

# One head, three tokens: values are points, queries and keys tangent vectors at the values.
VALUE = [(0.1, 0.2), (-0.4, 0.3), (0.5, -0.5)]
QUERY = [(0.2, -0.1), (0.4, 0.3), (-0.5, 0.1)]
KEY = [(-0.3, 0.6), (0.1, -0.2), (0.7, 0.5)]
NOT_CURVED = [None, torch.zeros(3, dtype=torch.float64)]


def random_heads(kappas):
    """Queries, keys, and values that are points of the spaces, `[heads, tokens, dim]`."""
    query, key, v = draw(3, len(kappas), 7, 4, size=0.6)
    kappa = torch.tensor(kappas)
    return query, key, stereographic.expmap0(v, kappa[:, None]), kappa


def by_head(attention, *given):
    """Outputs `[heads, tokens, dim]` of a function of attention, of values of this shape."""
    *scores, value, kappa = given
    space = Euclidean(len(value)) if kappa is None else Stereographic(len(value), kappa.tolist())
    output = attention(*scores, value.movedim(0, 1).flatten(1), space)
    return space.split(output).movedim(1, 0)


def kernel_similarity(query, key):
    """`phi(q_i) . phi(k_j)` as a matrix, `[..., queries, keys]`."""
    return (functional.elu(query) + 1) @ (functional.elu(key) + 1).mT


@pytest.mark.parametrize("at_once", [2, 2**15])
@pytest.mark.parametrize("kappas", [(-1.0, 0.5, 0.0), (-4.0, 1e-7, -1e-7)])
def test_linear_time_form_equals_the_quadratic_one(kappas, at_once, monkeypatch):
    """Also where the tokens are taken in a few at a time."""
    monkeypatch.setattr(layers, "TOKENS_AT_ONCE", at_once)
    query, key, value, kappa = random_heads(kappas)
    quadratic = by_head(midpoint_attention, kernel_similarity(query, key), value, kappa)
    linear = by_head(linear_attention, query, key, value, kappa)
    torch.testing.assert_close(linear, quadratic, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kappa", [-1.0, 0.0, 1.0])
def test_queries_far_below_zero_keep_their_midpoints_and_gradients_in_single_precision(kappa):
    """There `elu(u) + 1` is `exp(u)`, whose digits the sum has lost: none are left at -17."""
    query, key, value, kappas = (t.double() for t in random_heads([kappa]))
    query = query - torch.linspace(0, 120, query.shape[1])[:, None]

    def reference(query, key, value):
        features = torch.where(query > 0, query + 1, query.exp())
        scores = features @ positive_features(key).mT
        return by_head(midpoint_attention, scores, value, kappas)

    wide = [t.requires_grad_() for t in (query.detach(), key, value)]
    narrow = [t.detach().float().requires_grad_() for t in wide]
    expected, found = reference(*wide), by_head(linear_attention, *narrow, kappas)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    for own, exact in zip(
        torch.autograd.grad(found.square().sum(), narrow),
        torch.autograd.grad(expected.square().sum(), wide),
        strict=True,
    ):
        torch.testing.assert_close(own.double(), exact, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kappa", [-1, -0.25, 0, 0.25, 1])
def test_rows_are_weighted_midpoints_of_the_values(kappa):
    """geoopt's midpoint; it picks the nearer antipode for kappa > 0."""
    value, *rest = (torch.tensor(rows).unsqueeze(0) for rows in (VALUE, QUERY, KEY))
    query, key = (stereographic.transport0_back(value, v, float(kappa)) for v in rest)
    weights = kernel_similarity(query, key)[0]
    result = by_head(linear_attention, query, key, value, torch.tensor([float(kappa)]))[0]
    for row, output in zip(weights, result, strict=True):
        expected = geoopt.manifolds.stereographic.math.weighted_midpoint(
            value[0], row, k=torch.tensor(float(kappa)), reducedim=[0]
        )
        torch.testing.assert_close(output, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("kappa", NOT_CURVED, ids=["flat", "kappa 0"])
def test_flat_attention_is_an_average_of_the_values(kappa):
    query, key, value, _ = random_heads((0.0, 0.0, 0.0))
    weights = kernel_similarity(query, key)
    weights = weights / weights.sum(-1, keepdim=True)
    expected = weights @ value
    torch.testing.assert_close(by_head(linear_attention, query, key, value, kappa), expected)
    scores = query @ key.mT
    assert (scores < 0).any()
    expected = scores @ value / scores.sum(-1, keepdim=True)
    torch.testing.assert_close(by_head(midpoint_attention, scores, value, kappa), expected)
    assert not torch.allclose(expected, scores.softmax(-1) @ value)


@pytest.mark.parametrize("kind", ["linear", "exact"])
@pytest.mark.parametrize("out_proj", [True, False])
def test_layer_follows_its_definition_head_by_head(kind, out_proj):
    """Equations 5 to 8: transport to the origin, similarity, midpoint; heads side by side."""
    kappas = (-1.0, 0.5, 0.0)
    space = Stereographic(3, kappas, learnable=True)
    layer = filled(StereographicAttention(6, 3, space, kind, out_proj))
    x = space.expmap0(draw(5, 6, size=0.5))
    query, key, value = (part(x).chunk(3, -1) for part in (layer.query, layer.key, layer.value))
    heads = []
    for q, k, v, kappa in zip(query, key, value, kappas, strict=True):
        q, k = (stereographic.transport0_back(v, t, kappa) for t in (q, k))
        scores = (
            4 * q @ k.T if kind == "exact" else (functional.elu(q) + 1) @ (functional.elu(k) + 1).T
        )
        heads.append(stereographic.midpoint(v, scores, kappa))
    expected = torch.cat(heads, dim=-1)
    if out_proj:
        expected = layer.out(expected)
    torch.testing.assert_close(layer(x), expected, atol=1e-10, rtol=1e-10)
