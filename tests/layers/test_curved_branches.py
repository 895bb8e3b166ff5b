"""CAT's branches: numbers of the specification, one token, many tokens, the limits of curvature."""

import math

import pytest
import torch
from torch.nn import functional as F

from curvlab.layers.curved_branches import (
    BranchRouter,
    EuclideanBranch,
    FeedForwardBranch,
    HyperbolicBranch,
    SphericalBranch,
    entropy,
    sphere_exp,
    sphere_log,
)
from curvlab.manifolds import stereographic as k_space
from curvlab.manifolds._geoopt import geoopt
from drawn import assert_finite

pytestmark = pytest.mark.usefixtures("float64")
DIM = 64
SHARED = {"dim": DIM, "ffn_ratio": 2, "activation": "relu"}


def euclidean():
    return EuclideanBranch(**SHARED)


def hyperbolic(**options):
    return HyperbolicBranch(**SHARED, **options)


def spherical(**options):
    return SphericalBranch(**SHARED, **options)


BRANCHES = [euclidean, hyperbolic, spherical]


def points():
    return torch.tensor([[0.3, -0.4], [-0.2, 0.5], [0.6, 0.1]])


def feed_forward():
    return FeedForwardBranch(**SHARED)


@pytest.mark.parametrize("make", [*BRANCHES, feed_forward])
def test_masked_attention_is_that_among_the_tokens_it_leaves(make):
    branch, x = make().eval(), torch.randn(1, 5, DIM)
    everyone = torch.ones(5, 5, dtype=torch.bool)
    torch.testing.assert_close(branch(x, everyone), branch(x))
    two_groups = torch.block_diag(torch.ones(2, 2), torch.ones(3, 3)).bool()
    apart = torch.cat([branch(x[:, :2]), branch(x[:, 2:])], 1)
    torch.testing.assert_close(branch(x, two_groups), apart)
    alone = torch.cat([branch(token) for token in x.split(1, 1)], 1)
    torch.testing.assert_close(branch(x, torch.eye(5).bool()), alone)


def test_the_midpoint_is_geoopts_and_commutes_with_the_isometries():
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]])
    found = k_space.midpoints(points(), weights, -1.0)
    expected = torch.tensor([0.17386496, -0.01344068])
    torch.testing.assert_close(found[0], expected, atol=1e-7, rtol=0)
    torch.testing.assert_close(found[1], points()[1])  # weights of one point give it back
    ball = geoopt.PoincareBall(c=1.0)
    torch.testing.assert_close(found[0], ball.weighted_midpoint(points(), weights[0]))
    a = torch.tensor([-0.4, 0.2])
    moved = k_space.midpoints(k_space.mobius_add(a, points(), -1.0), weights, -1.0)
    torch.testing.assert_close(moved, k_space.mobius_add(a, found, -1.0))


def printed_sum(weights, points):
    """CAT, Section 3.2: an ordinary sum of Moebius multiples, projected."""
    multiples = [k_space.mobius_scalar_mul(w, points, -1.0) for w in weights]
    return k_space.project(torch.stack([m.sum(0) for m in multiples]), -1.0)


def test_the_printed_sum_leaves_the_ball():
    """N copies of exp0(3 e) with weights 1/N: their plain sum is clipped but for N = 1."""
    found = printed_sum(torch.tensor([[0.5, 0.3, 0.2]]), points())[0]
    expected = torch.tensor([0.23280478, -0.02539295])
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=0)
    point = torch.zeros(1, DIM, dtype=torch.float32)
    point[0, 0] = 3
    for count, length in ((1, 3.0), (8, 3.10630305), (64, 3.10630305)):
        copies = k_space.expmap0_projected(point.expand(count, DIM), -1.0)
        weights = torch.full((1, count), 1 / count, dtype=torch.float32)
        printed = printed_sum(weights, copies)
        assert float(k_space.logmap0(printed, -1.0).norm()) == pytest.approx(length, abs=2e-4)
        # Out there the middle needs more digits than float32 has.
        middle = k_space.midpoints(copies.double(), weights.double(), -1.0)
        assert float(k_space.logmap0(middle, -1.0).norm()) == pytest.approx(3, abs=2e-4)


def test_the_sphere_of_the_specification():
    u = torch.tensor([[0.3, -0.4], [1.0, 2.0], [0.0, 0.0]], requires_grad=True)
    t = sphere_exp(u)
    expected = [
        [0.28765532, -0.38354043, 0.87758256],
        [0.35184491, 0.70368982, -0.61727288],
        [0.0, 0.0, 1.0],
    ]
    torch.testing.assert_close(t, torch.tensor(expected), atol=1e-7, rtol=0)
    weights = (t @ t.mT).softmax(-1)
    rows = [
        [0.4841269, 0.0875277, 0.4283453],
        [0.1310836, 0.7250400, 0.1438763],
        [0.4247174, 0.0952561, 0.4800266],
    ]
    torch.testing.assert_close(weights, torch.tensor(rows), atol=1e-6, rtol=0)
    summed = weights @ t
    norms = torch.tensor([0.82644040, 0.57693420, 0.81473238])
    torch.testing.assert_close(summed.norm(dim=-1), norms, atol=1e-7, rtol=0)
    logs = sphere_log(summed / summed.norm(dim=-1, keepdim=True))
    expected = [[0.20806441, -0.15182294], [1.02246412, 1.60602989], [0.19273183, -0.11867580]]
    torch.testing.assert_close(logs, torch.tensor(expected), atol=1e-7, rtol=0)
    logs.sum().backward()
    assert u.grad.isfinite().all()


def test_beyond_the_antipode_the_exponential_folds():
    direction = torch.tensor([0.6, 0.8])
    for norm, expected in (
        (3.0, [1.8, 2.4]),
        (3.5, [-1.66991118, -2.22654825]),
        (5.0, [-0.76991118, -1.02654825]),
        (7.0, [0.6 * (7 - 2 * math.pi), 0.8 * (7 - 2 * math.pi)]),
    ):
        found = sphere_log(sphere_exp(norm * direction))
        torch.testing.assert_close(found, torch.tensor(expected), atol=1e-7, rtol=0)


def test_one_token_makes_feed_forward_networks_of_the_branches():
    x = 0.5 * torch.randn(7, 1, DIM)  # farther out points of the ball are cut at its rim
    branch = hyperbolic()
    expected = branch.feed_forward(branch.output(branch.value(x)))
    torch.testing.assert_close(branch(x), expected)
    torch.testing.assert_close(_with(branch, hyperbolic(kappa=-0.5))(x), branch(x))
    branch, x = spherical(), 0.2 * x
    padded = F.pad(branch.project(x), (0, 1))
    torch.testing.assert_close(branch(x), branch.feed_forward(padded))
    branch = euclidean()
    h = branch.attention_norm(x + branch.attention(x, x, x)[0])
    torch.testing.assert_close(branch(x), branch.norm(h + branch.feed_forward(h)))


def _with(branch, other):
    """The other branch with the weights of the first."""
    other.load_state_dict(branch.state_dict() | {"curvature.raw": other.curvature.raw})
    return other


def test_what_is_left_out_for_one_token_is_what_attention_would_give():
    """Two equal tokens: attention's weights are halves, its sums the token itself."""
    x = torch.randn(5, 1, DIM)
    for make in BRANCHES:
        branch = make()
        twice = branch(x.expand(-1, 2, -1))
        torch.testing.assert_close(twice, branch(x).expand(-1, 2, -1))


def test_equal_tokens_beyond_the_equator_stay_where_they_are():
    """The centroid on the sphere is on their side of it."""
    branch, x = spherical(), torch.randn(4, 1, DIM)
    branch.project = torch.nn.Identity()
    x = 2.6 * F.normalize(x, dim=-1)
    torch.testing.assert_close(branch(x.expand(-1, 3, -1)), branch(x).expand(-1, 3, -1))


def test_one_token_gives_queries_and_keys_no_gradient():
    x = torch.randn(7, 1, DIM)
    branch = hyperbolic()
    branch(x).sum().backward()
    assert branch.query.weight.grad is None
    assert branch.value.weight.grad.abs().max() > 0
    branch = euclidean()
    (branch(x) * torch.randn(7, 1, DIM)).sum().backward()
    assert branch.attention.in_proj_weight.grad[: 2 * DIM].abs().max() == 0
    assert branch.attention.in_proj_weight.grad[2 * DIM :].abs().max() > 0


@pytest.mark.parametrize("make", BRANCHES)
def test_tokens_may_come_in_any_order_and_sequences_do_not_mix(make):
    branch, x = make(), torch.randn(2, 5, DIM)
    order = torch.randperm(5)
    torch.testing.assert_close(branch(x[:, order]), branch(x)[:, order])
    torch.testing.assert_close(branch(x[:1]), branch(x)[:1])


@pytest.mark.parametrize("make", BRANCHES)
def test_gradients_are_finite_for_equal_long_and_vanishing_tokens(make):
    for x in (torch.ones(1, 4, DIM), 1e4 * torch.randn(1, 4, DIM), torch.zeros(1, 4, DIM)):
        branch = make().float()
        leaf = x.float().requires_grad_()
        assert_finite(branch(leaf).square(), [leaf, *branch.parameters()])


def test_flat_limits_of_the_curved_branches():
    """Of a curvature near 0 the ball is flat: distances 2 |q_i - q_j|, midpoints means."""
    x, branch = torch.randn(1, 5, DIM), hyperbolic(kappa=-1e-9)
    query, value = branch.query(x), branch.value(x)
    mean = (-2 * torch.cdist(query, query)).softmax(-1) @ value
    expected = branch.feed_forward(branch.output(mean))
    torch.testing.assert_close(branch(x), expected, atol=1e-6, rtol=1e-5)
    branch = spherical(kappa=1e-9)  # cosines of short arcs are 1: the mean of all tokens
    mean = branch.project(x).mean(1, keepdim=True).expand_as(x)
    expected = branch.feed_forward(F.pad(mean, (0, 1)))
    torch.testing.assert_close(branch(x), expected, atol=1e-6, rtol=1e-5)


def test_router_and_entropy():
    x = 10 * torch.randn(4, 3, DIM)
    weights = BranchRouter(DIM, 3, "relu")(x)
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 3))
    assert (weights > 0).all()
    assert float(entropy(torch.tensor([0.7, 0.2, 0.1]))) == pytest.approx(0.80181855, abs=1e-8)
    assert float(entropy(torch.full((3,), 1 / 3))) == pytest.approx(math.log(3))
    assert float(entropy(torch.tensor([1.0, 0.0, 0.0]))) == 0


def test_a_residual_adds_the_input():
    x = torch.randn(2, 3, DIM)
    for make in (hyperbolic, spherical):
        branch = make()
        torch.testing.assert_close(_with(branch, make(residual=True))(x), x + branch(x))
