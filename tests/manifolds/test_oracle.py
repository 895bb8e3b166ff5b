"""All functions against geoopt, and those that layers do not use against 60-digit arithmetic."""

import pytest
import torch
from torch.nn import functional

import manifold_reference as reference
from curvlab.errors import UsageError
from curvlab.manifolds import charts, distributions, lorentz, stereographic
from curvlab.manifolds._geoopt import geoopt
from curvlab.manifolds.distributions import WrappedNormal
from drawn import draw64
from manifold_reference import dot, exact, mp, mpf, relative_error, scale

MATRIX = draw64(4, 4, seed=7)
SCALES = torch.tensor([0.5, 0.7, 0.9, 1.1], dtype=torch.float64)


def matvec(x, kappa):
    v = reference.logmap0(x, kappa)
    return reference.expmap0([dot(row, v) for row in exact(MATRIX)], kappa)


def metric(x, u, v, kappa):
    return 4 * dot(u, v) / (1 + kappa * dot(x, x)) ** 2


def radial(function):
    return lambda x, kappa: reference.along(function, x, kappa)


def hyperboloid(s, kappa):
    return [mp.sqrt(dot(s, s) - 1 / kappa), *s]


def transport0(y, v, kappa):
    origin = hyperboloid([mpf(0)] * len(v), kappa)
    return reference.lorentz_transport(origin, hyperboloid(y[1:], kappa), [mpf(0), *v], kappa)


ANY, HYPERBOLIC, SPHERICAL = (
    (-100.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 100.0),
    (-100.0, -1.0),
    (1.0, 100.0),
)

# The function, the same in 60 digits, kinds of arguments (x, y, p: points; u, v: vectors; t: a
# number; H, S, L: points of the half-space, the sphere, the hyperboloid), curvatures.
TABLE = {
    "gyration": (stereographic.gyration, reference.gyration, "xyv", ANY),
    "mobius_sub": (
        stereographic.mobius_sub,
        lambda x, y, k: reference.mobius_add(x, scale(-1, y), k),
        "xy",
        ANY,
    ),
    "mobius_matvec": (
        lambda x, k: stereographic.mobius_matvec(MATRIX.to(x.dtype), x, k),
        matvec,
        "v",
        ANY,
    ),
    "mobius_fn_apply": (
        lambda x, k: stereographic.mobius_fn_apply(torch.tanh, x, k),
        lambda x, k: reference.expmap0([mp.tanh(c) for c in reference.logmap0(x, k)], k),
        "x",
        ANY,
    ),
    "inner": (stereographic.inner, metric, "xuv", ANY),
    "norm": (stereographic.norm, lambda x, v, k: mp.sqrt(metric(x, v, v, k)), "xv", ANY),
    "geodesic": (stereographic.geodesic, reference.geodesic, "txy", ANY),
    "geodesic_unit": (stereographic.geodesic_unit, reference.geodesic_unit, "txv", ANY),
    "dist2plane": (
        lambda *given: stereographic.dist2plane(*given, signed=True),
        reference.dist2plane,
        "xpv",
        ANY,
    ),
    "antipode": (stereographic.antipode, reference.antipode, "x", SPHERICAL),
    "to_klein": (
        charts.to_klein,
        radial(lambda r, k: reference.tan_k(2 * reference.artan_k(r, k), k)),
        "v",
        ANY,
    ),
    "from_klein": (
        charts.from_klein,
        radial(lambda r, k: reference.tan_k(reference.artan_k(r, k) / 2, k)),
        "x",
        ANY,
    ),
    "to_half_space": (charts.to_half_space, reference.to_half_space, "x", HYPERBOLIC),
    "from_half_space": (charts.from_half_space, reference.from_half_space, "H", HYPERBOLIC),
    "to_sphere": (charts.to_sphere, reference.to_sphere, "x", SPHERICAL),
    "from_sphere": (charts.from_sphere, reference.from_sphere, "S", SPHERICAL),
    "transport0": (lorentz.transport0, transport0, "Lv", HYPERBOLIC),
    "wrapped_normal": (
        lambda x, y, k: WrappedNormal(y, SCALES.to(y.dtype), k).log_prob(x),
        lambda x, y, k: reference.wrapped_normal(x, y, exact(SCALES), k),
        "xy",
        ANY,
    ),
}


def drawn(kind, kappa, dtype):
    """Arguments near the origin and far from it, in units of the curvature."""
    size = min(abs(kappa) or 1.0, 1e4) ** -0.5 if abs(kappa) > 1e-3 else 1.0
    if kind == "t":
        return torch.tensor([0.3, -0.5, 0.9, 1.4], dtype=dtype) * (1 if abs(kappa) <= 1 else 0.1)
    x = functional.normalize(draw64(4, 4, seed="xypuvHSL".index(kind)), dim=-1)
    radii = [1e-3, 0.3, 0.7, 0.98] if kind in "xypHSL" else [0.1, 0.2, 0.3, 0.4]
    x = x * size * torch.tensor(radii, dtype=torch.float64).roll("xyp".find(kind))[:, None]
    if kind in "HS":
        x = (charts.to_half_space if kind == "H" else charts.to_sphere)(x, kappa)
    return (lorentz.from_space(3 * x, kappa) if kind == "L" else x).to(dtype)


@pytest.mark.parametrize("name", TABLE)
def test_values_and_slopes_by_curvature_in_60_digits(name, dtype):
    function, expected, kinds, curvatures = TABLE[name]
    for kappa in curvatures:
        k = torch.tensor(kappa, dtype=dtype, requires_grad=True)
        for given in zip(*(drawn(kind, kappa, dtype) for kind in kinds), strict=True):
            value, digits = function(*given, k), [exact(g) for g in given]
            eps = torch.finfo(dtype).eps
            assert relative_error(value, expected(*digits, mpf(k.item()))) < 64 * eps, kappa
            (slope,) = torch.autograd.grad(value.sum(), k, allow_unused=True)

            def total(curvature, digits=digits):
                result = expected(*digits, curvature)
                return mp.fsum(result) if isinstance(result, list) else result

            steep = reference.slope(total, mpf(k.item()))
            found = 0.0 if slope is None else slope.item()
            assert abs(found - steep) < 1e-5 * (abs(steep) + abs(value.sum().item())), kappa


@pytest.mark.parametrize("kappa", [-100.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 100.0])
@pytest.mark.parametrize("radius", [0.5, 4.0])
def test_the_logarithms_at_the_frechet_mean_add_up_to_zero(kappa, radius):
    """In 60 digits; on a sphere the points lie in less than half of it."""
    unit = abs(kappa) ** -0.5 if abs(kappa) > 1e-3 else 1.0
    v = (0.3 if kappa > 1e-3 else radius / 4) * unit * draw64(6, 4)
    x, weights = stereographic.expmap0(v, kappa), torch.rand(6, dtype=torch.float64)
    mean = distributions.frechet_mean(x, weights, kappa)
    m, points, shares = exact(mean), exact(x), exact(weights / weights.sum())
    logs = [reference.logmap(m, p, mpf(kappa)) for p in points]
    total = [
        mp.fsum(w * c for w, c in zip(shares, column, strict=True))
        for column in zip(*logs, strict=True)
    ]
    assert mp.sqrt(metric(m, total, total, mpf(kappa))) < 1e-12 * unit
    squares = [metric(m, log, log, mpf(kappa)) for log in logs]
    variance = distributions.frechet_variance(x, weights, kappa)
    assert relative_error(variance, dot(shares, squares)) < 1e-12


@pytest.mark.parametrize("kappa", [-1.0, 0.0, 0.5])
def test_the_density_of_the_wrapped_normal_adds_up_to_one_and_its_samples_spread_alike(kappa):
    reach, steps = (0.999 if kappa < 0 else 8.0), 1000
    axis = ((torch.arange(steps, dtype=torch.float64) + 0.5) / steps * 2 - 1) * reach
    plane = torch.cartesian_prod(axis, axis)
    plane = plane[plane.norm(dim=1) < 1] if kappa < 0 else plane
    normal = WrappedNormal(torch.tensor([0.3, -0.2]).double(), torch.tensor([0.5, 0.8]), kappa)
    volume = stereographic.conformal_factor(plane, kappa).square() * (2 * reach / steps) ** 2
    assert (normal.log_prob(plane).exp() * volume).sum().item() == pytest.approx(1, abs=1e-5)
    points = normal.rsample((40_000,))
    spread = stereographic.sqdist(points, normal.mean, kappa).mean().item()
    assert spread == pytest.approx(0.5**2 + 0.8**2, rel=0.03)
    torch.testing.assert_close(
        torch.compile(normal.log_prob, fullgraph=True, backend="eager")(plane[:9]),
        normal.log_prob(plane[:9]),
    )


@pytest.mark.parametrize("kappa", [-2.0, -0.3, 0.3, 2.0])
def test_agrees_with_geoopt(kappa):
    s, theirs = stereographic, geoopt.manifolds.stereographic.math
    k = torch.tensor(kappa, dtype=torch.float64)
    x, y, v = draw64(20, 4, size=0.15), draw64(20, 4, size=0.15, seed=1), draw64(20, 4, seed=2)
    cases = [
        (s.mobius_add(x, y, kappa), theirs.mobius_add(x, y, k=k)),
        (s.dist(x, y, kappa), theirs.dist(x, y, k=k)),
        (s.expmap(x, v, kappa), theirs.expmap(x, v, k=k)),
        (s.logmap(x, y, kappa), theirs.logmap(x, y, k=k)),
        (s.expmap0(v, kappa), theirs.expmap0(v, k=k)),
        (s.logmap0(x, kappa), theirs.logmap0(x, k=k)),
        (s.transport(x, y, v, kappa), theirs.parallel_transport(x, y, v, k=k)),
        (s.conformal_factor(x, kappa), theirs.lambda_x(x, k=k)),
        (s.project(10 * v, kappa), theirs.project(10 * v, k=k)),
        (s.midpoint(x, torch.ones(20, dtype=x.dtype), kappa), theirs.weighted_midpoint(x, k=k)),
        (s.dist2plane(x, y / 2, v, kappa), theirs.dist2plane(x, y / 2, v, k=k)),
    ]
    if kappa < 0:
        other = geoopt.Lorentz(k=-1 / k)
        z, z_other = lorentz.expmap0(x, kappa), lorentz.expmap0(y, kappa)
        whole = functional.pad(v, (1, 0))
        u = other.proju(z, whole)
        cases += [
            (lorentz.inner(z, z_other), other.inner(None, z, z_other)),
            (lorentz.dist(z, z_other, kappa), other.dist(z, z_other)),
            (lorentz.dist0(z, kappa), other.dist0(z)),
            (lorentz.expmap(z, u, kappa), other.expmap(z, u)),
            (lorentz.logmap(z, z_other, kappa), other.logmap(z, z_other)),
            (lorentz.transport(z, z_other, u, kappa), other.transp(z, z_other, u)),
            (lorentz.origin(4, k), other.origin(5, dtype=torch.float64)),
            (lorentz.transport0(z, v, kappa), other.transp0(z, whole)),
            (charts.to_hyperboloid(x, kappa).roll(-1, -1), theirs.inv_sproj(x, k=k)),
        ]
    for ours, expected in cases:
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "kappa"), [("antipode", -1.0), ("to_sphere", 0.0), ("to_half_space", 1.0)]
)
def test_a_curvature_of_the_other_sign_is_refused(name, kappa):
    function = getattr(charts, name, None) or getattr(stereographic, name)
    with pytest.raises(UsageError, match=f"kappa={kappa:g}"):
        function(torch.zeros(3), kappa)
