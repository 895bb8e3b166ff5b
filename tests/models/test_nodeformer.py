"""NodeFormer: the estimate of the softmax, the noise, the bias, the term of the edges."""

import pytest
import torch

from curvlab.data.transforms.relations import NeighbourRelations
from curvlab.models.nodeformer import (
    NodeFormer,
    kernel_attention,
    orthogonal_directions,
    positive_features,
)

pytestmark = pytest.mark.usefixtures("float64")


def model(in_channels=5, **options):
    defaults = {"dim": 4, "layers": 2, "heads": 3, "random_features": 10, "gumbel_samples": 3}
    return NodeFormer(in_channels, **{**defaults, "orders": 2, "edge_loss": 1.0, **options})


@pytest.fixture
def related(graph):
    """The small graph with its relations of two orders."""
    data = NeighbourRelations(2)(graph)
    data.relations = data.relations.to(data.x.dtype)
    return data


def features(q, k, count):
    directions = orthogonal_directions(count, q.shape[-1], q)
    return positive_features(q, directions, (-1,)), positive_features(k, directions, (-2, -1))


def test_directions_are_orthogonal_in_blocks_and_as_long_as_gaussian_ones():
    directions = orthogonal_directions(10, 4, torch.empty(0))
    units = directions / directions.norm(dim=1, keepdim=True)
    for block in units.split(4):
        torch.testing.assert_close(block @ block.T, torch.eye(len(block)))
    many = orthogonal_directions(40_000, 4, torch.empty(0))
    # Mean 0, covariance 1 and fourth moment 3 d of every coordinate of a Gaussian vector.
    torch.testing.assert_close(many.mean(0), torch.zeros(4), atol=0.02, rtol=0)
    torch.testing.assert_close(many.T @ many / 40_000, torch.eye(4), atol=0.04, rtol=0)
    assert many.pow(4).mean().item() == pytest.approx(3, abs=0.12)


def test_the_estimate_converges_to_the_softmax_at_the_rate_of_monte_carlo():
    """A hundred times the features, a tenth of the error; long keys would need many more."""
    q, k = 0.3 * torch.randn(2, 2, 9, 4)
    v = torch.randn(2, 9, 4)
    exact = torch.softmax(q @ k.transpose(1, 2) / 4**0.5, -1) @ v
    errors = []
    for count in (40, 4000):
        draws = torch.stack([kernel_attention(*features(q, k, count), v) for _ in range(40)])
        errors.append((draws - exact).square().mean().sqrt().item())
    assert errors[1] < 0.003
    assert 8 < errors[0] / errors[1] < 13


def test_noise_weighs_the_keys_of_every_sample():
    """Against the matrices of all pairs, one a sample."""
    q, k = torch.rand(2, 2, 7, 5)
    v, noise = torch.randn(2, 7, 3), 4 * torch.randn(2, 7, 6)
    samples = []
    for s in range(6):
        weights = q @ k.transpose(1, 2) * noise[:, None, :, s].exp()
        samples.append(weights / weights.sum(-1, keepdim=True) @ v)
    expected = torch.stack(samples).mean(0)
    torch.testing.assert_close(kernel_attention(q, k, v, noise), expected)
    torch.testing.assert_close(kernel_attention(q, k, v, noise + 7.0), expected)
    none = torch.zeros_like(noise)
    torch.testing.assert_close(kernel_attention(q, k, v, none), kernel_attention(q, k, v))


def test_a_layer_is_its_formula(related):
    layer = model().eval().layers[0]
    x = torch.randn(12, 4)
    q, k, v = (
        part(x).view(12, 3, 4).transpose(0, 1) for part in (layer.queries, layer.keys, layer.values)
    )
    phi = positive_features(2 * q, layer.directions, (-1,))  # 1 / sqrt(0.25)
    psi = positive_features(2 * k, layer.directions, (-2, -1))
    weights = phi @ psi.transpose(1, 2)
    expected = weights / weights.sum(-1, keepdim=True) @ v
    sigma = 1 / (1 + torch.tensor(-0.1).exp())
    for block in related.relations.to_dense().split(12):
        expected = expected + sigma * block @ v
    expected = layer.mix(expected.transpose(0, 1).flatten(1))
    out, term = layer(x, related.relations, None)
    torch.testing.assert_close(out, expected)
    assert term is None


def test_the_term_of_the_edges_is_the_mean_over_layers_edges_and_heads(related):
    """`-lambda mean(log(weight) / degree)` over edges and loops, from weights without noise."""
    made = model(layers=1, edge_loss=0.7)
    layer = made.layers[0]
    torch.manual_seed(3)
    found = made.training_loss(related, lambda embedded: 0 * embedded.sum())

    torch.manual_seed(3)
    x = torch.nn.functional.elu(made.feature_norm(made.features(related.x)))
    drawn = orthogonal_directions(10, 4, x)
    q, k = (2 * part(x).view(12, 3, 4).transpose(0, 1) for part in (layer.queries, layer.keys))
    phi, psi = positive_features(q, drawn, (-1,)), positive_features(k, drawn, (-2, -1))
    weights = phi @ psi.transpose(1, 2)
    weights = weights / weights.sum(-1, keepdim=True)
    looped = torch.eye(12)
    looped[related.edge_index[1], related.edge_index[0]] = 1
    terms = (weights.log() * looped / looped.sum(1, keepdim=True)).sum((1, 2)) / looped.sum()
    torch.testing.assert_close(found, -0.7 * terms.mean())
