"""Formulas as papers print them, where they fail, beside those that hold (docs/errata.md)."""

import pytest
import torch

from curvlab.manifolds import lorentz
from curvlab.manifolds import stereographic as ball
from drawn import draw

pytestmark = pytest.mark.usefixtures("float64")
X, Y, V = (torch.tensor(v, dtype=torch.float64) for v in ((0.1, 0.2), (-0.3, 0.4), (0.5, -0.25)))


def hyperboloid(kappa, seed=0):
    return lorentz.from_space(draw(8, 3, seed=seed), kappa)


@pytest.mark.parametrize(("kappa", "cosine"), [(-0.7, torch.cosh), (0.7, torch.cos)])
def test_negative_curvature_is_the_hyperbolic_one(kappa, cosine):
    """FPS-T, Section 3.1, has it the other way: cos(c) = cos(a) cos(b) in right triangles."""
    a, b = torch.tensor([0.4, 0.0]), torch.tensor([0.0, 0.3])
    legs = [ball.dist0(p, kappa) for p in (a, b)]
    sides = [cosine(abs(kappa) ** 0.5 * d) for d in (ball.dist(a, b, kappa), *legs)]
    torch.testing.assert_close(sides[0], sides[1] * sides[2])


@pytest.mark.parametrize("kappa", [-0.7, 0.7])
def test_the_metric_is_the_square_of_the_conformal_factor(kappa):
    """FPS-T, Section 3.1, prints 4 / (1 + kappa |x|^2)."""
    step = 1e-6 * V
    found = (ball.dist(X, X + step, kappa) / step.norm()).square()
    factor = 2 / (1 + kappa * X @ X)
    assert found.item() == pytest.approx(factor.square().item(), rel=1e-5)
    assert found.item() != pytest.approx((2 * factor).item(), rel=1e-2)


def printed_expmap(x, v, kappa):
    """FPS-T, Table 2: with a factor sqrt|kappa| that tan_k has in it already."""
    root = abs(kappa) ** 0.5
    half = ball.conformal_factor(x, kappa) * v / 2
    return ball.mobius_add(x, ball.expmap0(root * half, kappa), kappa)


def printed_logmap(x, y, kappa):
    factor = abs(kappa) ** 0.5 * ball.conformal_factor(x, kappa) / 2
    return ball.logmap0(ball.mobius_add(-x, y, kappa), kappa) / factor


@pytest.mark.parametrize("kappa", [-4.0, -0.25, 0.25])
def test_the_printed_exponential_is_as_wrong_as_the_curvature_is_far_from_one(kappa):
    """They invert each other, but lengths are off by sqrt|kappa|; near 0 nothing moves."""
    length = ball.conformal_factor(X, kappa) * (0.5 * V).norm()
    found = ball.dist(X, printed_expmap(X, 0.5 * V, kappa), kappa)
    torch.testing.assert_close(found, abs(kappa) ** 0.5 * length)
    torch.testing.assert_close(ball.dist(X, ball.expmap(X, 0.5 * V, kappa), kappa), length)
    back = printed_logmap(X, printed_expmap(X, 0.5 * V, kappa), kappa)
    torch.testing.assert_close(back, 0.5 * V)
    assert (printed_expmap(X, V, 1e-12) - X).norm() < 1e-5
    assert printed_logmap(X, Y, 1e-12).norm() > 1e5
    torch.testing.assert_close(ball.expmap(X, V, 1e-12), X + V)


@pytest.mark.parametrize("kappa", [-0.5, -2.0])
def test_the_inner_product_has_the_metric_of_minus_one(kappa):
    """Hypformer, Section 3.1, prints diag(1/kappa, 1, ..., 1) beside -x_t y_t + x_s y_s."""
    x = hyperboloid(kappa)
    torch.testing.assert_close(lorentz.inner(x, x), torch.full((8,), 1 / kappa))
    printed = x[:, 0].square() / kappa + x[:, 1:].square().sum(1)
    assert (printed - 1 / kappa).abs().min() > 0.1


@pytest.mark.parametrize("kappa", [-0.5, -2.0])
def test_the_root_covers_the_ratio_and_the_constant(kappa):
    """Hypformer, Eq. 9, 13 and 18, from curvature -1: with the root over the ratio alone, points
    are on no hyperboloid. With its reach over all, they are the similar image of the lift."""
    f = hyperboloid(-1.0)[:, 1:]
    ratio = -1 / torch.tensor(kappa)
    space, square = ratio.sqrt() * f, f.square().sum(1, keepdim=True)
    right = torch.cat([(ratio * square - 1 / kappa).sqrt(), space], 1)
    torch.testing.assert_close(lorentz.inner(right, right), torch.full((8,), 1 / kappa))
    torch.testing.assert_close(right, ratio.sqrt() * lorentz.from_space(f, -1.0))
    printed = torch.cat([ratio.sqrt() * square - 1 / kappa, space], 1)
    assert (lorentz.inner(printed, printed) - 1 / kappa).abs().min() > 0.05


@pytest.mark.parametrize("kappa", [-0.5, -2.0])
def test_the_centroid_divides_by_the_norm_not_by_its_root(kappa):
    """Hypformer, Eq. 4 and 20: sqrt(|kappa| ||s||) with the norm ||s|| = sqrt|<s, s>|."""
    total = hyperboloid(kappa) + 2 * hyperboloid(kappa, seed=1)
    norm = lorentz.inner(total, total).abs().sqrt().unsqueeze(1)
    right, printed = total / (abs(kappa) ** 0.5 * norm), total / (abs(kappa) * norm).sqrt()
    torch.testing.assert_close(lorentz.inner(right, right), torch.full((8,), 1 / kappa))
    assert (lorentz.inner(printed, printed) - 1 / kappa).abs().min() > 0.05


def test_a_distance_has_the_time_parts_with_a_minus():
    """Hypformer, Eq. 8, prints kappa' (alpha_time + x y); arcosh needs at least 1."""
    kappa, x, y = -0.5, hyperboloid(-0.5), hyperboloid(-0.5, seed=1)
    time, space = x[:, 0] * y[:, 0], (x[:, 1:] * y[:, 1:]).sum(1)
    root = abs(kappa) ** 0.5
    torch.testing.assert_close((kappa * (space - time)).arccosh() / root, lorentz.dist(x, y, kappa))
    assert (kappa * (time + space)).arccosh().isnan().all()


def test_lorentzian_norms_of_sums_of_points_need_the_absolute_value():
    """LRN, Eq. 1, with the norm of Section 2, sqrt<v, v>; and its inner product of two points."""
    x, y = hyperboloid(-1.0), hyperboloid(-1.0, seed=1)
    assert lorentz.inner(x + y, x + y).sqrt().isnan().all()
    printed = x[:, 0] * y[:, 0] - (x[:, 1:] * y[:, 1:]).sum(1)  # Section 1, (iii)
    torch.testing.assert_close(printed, -lorentz.inner(x, y))
    assert (printed >= 1).all()


@pytest.mark.parametrize("kappa", [-0.5, -2.0])
def test_the_exponential_has_the_length_of_the_tangent_vector(kappa):
    """LRN, Eq. 8, prints sqrt(-K <x, y>), which is 0 for every y tangent at x."""
    x, z = hyperboloid(kappa), hyperboloid(kappa, seed=1)
    y = lorentz.logmap(x, z, kappa)
    assert lorentz.inner(x, y).abs().max() < 1e-12
    a = (-kappa * lorentz.inner(y, y)).sqrt().unsqueeze(1)
    torch.testing.assert_close(a.cosh() * x + a.sinh() / a * y, z)


@pytest.mark.parametrize("kappa", [-0.5, -2.0])
def test_the_transport_goes_from_the_first_point_to_the_second(kappa):
    """LRN, Appendix B, calls P_{x -> y} a map from the tangent space of y to that of x."""
    x, y = hyperboloid(kappa), hyperboloid(kappa, seed=1)
    v = lorentz.logmap(x, y, kappa)
    scale = lorentz.inner(y, v) / (-1 / kappa - lorentz.inner(x, y))
    moved = v + scale.unsqueeze(1) * (x + y)
    assert lorentz.inner(moved, y).abs().max() < 1e-9
    assert lorentz.inner(moved, x).abs().min() > 0.1


@pytest.mark.parametrize("kappa", [-0.5, -2.0])
def test_weights_with_which_the_centroid_points_where_parallel_transport_does(kappa):
    """LRN, Proposition 2.3, prints cosh(a) + c_v for w_x; and log_o(y) with a plus before o."""
    x, y = hyperboloid(kappa), hyperboloid(kappa, seed=1)
    root, o = (-kappa) ** 0.5, lorentz.origin(3, kappa).expand(8, -1)
    time = root * y[:, :1]
    c_u = time.arccosh() / (time.square() - 1).sqrt()
    u = c_u * (y - time * o)
    torch.testing.assert_close(u[:, 1:], lorentz.logmap0(y, kappa))
    assert (c_u * (y + time * o))[:, 0].abs().min() > 0.1  # not tangent at o
    c_v = (lorentz.inner(x, u) / (-1 / kappa - lorentz.inner(o, x))).unsqueeze(1)
    v = u + c_v * (x + o)
    a = root * lorentz.inner(v, v).sqrt().unsqueeze(1)
    z = a.cosh() * x + a.sinh() / a * v
    right, printed = a.cosh() + a.sinh() / a * c_v, a.cosh() + c_v
    for w_x, same in ((right, True), (printed, False)):
        m = (w_x * x + a.sinh() / a * c_u * y)[:, 1:]
        cosine = torch.cosine_similarity(m, z[:, 1:])
        assert bool((cosine > 1 - 1e-12).all()) == same
    assert (right > 0).all()


def test_the_tangent_weights_of_the_proof_are_not_real():
    """LRN, Proposition 2.3 (b), prints arcosh(-x_t s) / sqrt(K x_t^2 - 1)."""
    x = hyperboloid(-2.0)
    time = 2**0.5 * x[:, 0]
    assert (-time).arccosh().isnan().all()
    assert (-2.0 * x[:, 0].square() - 1).sqrt().isnan().all()
    c = (time.arccosh() / (time.square() - 1).sqrt()).unsqueeze(1)
    torch.testing.assert_close(c * x[:, 1:], lorentz.logmap0(x, -2.0))
