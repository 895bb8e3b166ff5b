"""The geometry in 60-digit arithmetic, straight from the textbook formulas."""

from mpmath import mp, mpf

mp.dps = 60


def exact(values):
    """Nested lists of exact numbers from a tensor or a number."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    return [exact(v) for v in values] if isinstance(values, list) else mpf(values)


def dot(x, y):
    return mp.fsum(a * b for a, b in zip(x, y, strict=True))


def scale(r, x):
    return [r * a for a in x]


def _by_sign(circular, hyperbolic):
    """`f(sqrt|kappa| x) / sqrt|kappa|`, f circular or hyperbolic by the sign of kappa; x at 0."""

    def function(x, kappa):
        if kappa == 0:
            return x
        root = mp.sqrt(abs(kappa))
        return (circular if kappa > 0 else hyperbolic)(root * x) / root

    return function


tan_k, artan_k = _by_sign(mp.tan, mp.tanh), _by_sign(mp.atan, mp.atanh)
sin_k, arsin_k = _by_sign(mp.sin, mp.sinh), _by_sign(mp.asin, mp.asinh)


def mobius_add(x, y, kappa):
    xy, x2, y2 = dot(x, y), dot(x, x), dot(y, y)
    denominator = 1 - 2 * kappa * xy + kappa**2 * x2 * y2
    a, b = (1 - 2 * kappa * xy - kappa * y2) / denominator, (1 + kappa * x2) / denominator
    return [a * p + b * q for p, q in zip(x, y, strict=True)]


def along(function, x, kappa):
    """function(|x|) x / |x|."""
    norm = mp.sqrt(dot(x, x))
    return scale(function(norm, kappa) / norm, x) if norm else x


def expmap0(v, kappa):
    return along(tan_k, v, kappa)


def logmap0(x, kappa):
    return along(artan_k, x, kappa)


def logmap(x, y, kappa):
    w = mobius_add(scale(-1, x), y, kappa)
    return scale(1 + kappa * dot(x, x), logmap0(w, kappa))


def dist(x, y, kappa):
    w = mobius_add(scale(-1, x), y, kappa)
    return 2 * artan_k(mp.sqrt(dot(w, w)), kappa)


def lorentz_dist(x, y, kappa):
    """Distance of the hyperboloid points with space parts x and y."""
    time_x, time_y = (mp.sqrt(dot(s, s) - 1 / kappa) for s in (x, y))
    return mp.acosh(kappa * (dot(x, y) - time_x * time_y)) / mp.sqrt(-kappa)


def plus(x, y):
    return [a + b for a, b in zip(x, y, strict=True)]


def gyration(x, y, v, kappa):
    inner = mobius_add(x, mobius_add(y, v, kappa), kappa)
    return mobius_add(scale(-1, mobius_add(x, y, kappa)), inner, kappa)


def geodesic(t, x, y, kappa):
    step = mobius_add(scale(-1, x), y, kappa)
    return mobius_add(x, expmap0(scale(t, logmap0(step, kappa)), kappa), kappa)


def geodesic_unit(t, x, v, kappa):
    return mobius_add(x, expmap0(scale(t / (2 * mp.sqrt(dot(v, v))), v), kappa), kappa)


def dist2plane(x, p, a, kappa):
    z = mobius_add(scale(-1, p), x, kappa)
    sine = 2 * dot(z, a) / ((1 + kappa * dot(z, z)) * mp.sqrt(dot(a, a)))
    return arsin_k(sine, kappa)


def inversion(x):
    """In the sphere of radius sqrt 2 around (0, ..., 0, 1)."""
    pole = [mpf(0)] * (len(x) - 1) + [mpf(1)]
    away = plus(x, scale(-1, pole))
    return plus(pole, scale(2 / dot(away, away), away))


def to_half_space(x, kappa):
    *rest, last = inversion(scale(mp.sqrt(-kappa), x))
    return [*rest, -last]


def from_half_space(y, kappa):
    return scale(1 / mp.sqrt(-kappa), inversion([*y[:-1], -y[-1]]))


def to_sphere(x, kappa):
    root, norm = mp.sqrt(kappa), mp.sqrt(dot(x, x))
    angle = 2 * mp.atan(root * norm)
    return [mp.cos(angle) / root, *scale(mp.sin(angle) / (root * norm), x)]


def from_sphere(x, kappa):
    return scale(1 / (1 + mp.sqrt(kappa) * x[0]), x[1:])


def antipode(x, kappa):
    return from_sphere(scale(-1, to_sphere(x, kappa)), kappa)


def lorentz_transport(x, y, v, kappa):
    """v + <y, v> / (-1 / kappa - <x, y>) (x + y) of whole vectors, time first."""

    def inner(a, b):
        return dot(a[1:], b[1:]) - a[0] * b[0]

    factor = inner(y, v) / (-1 / kappa - inner(x, y))
    return plus(v, scale(factor, plus(x, y)))


def wrapped_normal(x, mean, scales, kappa):
    """Logarithm of the density."""
    v = scale(2 / (1 + kappa * dot(mean, mean)), logmap(mean, x, kappa))
    length = mp.sqrt(dot(v, v))
    flat = [
        -((a / b) ** 2) / 2 - mp.log(b * mp.sqrt(2 * mp.pi)) for a, b in zip(v, scales, strict=True)
    ]
    return mp.fsum(flat) - (len(v) - 1) * mp.log(sin_k(length, kappa) / length)


def relative_error(value, expected):
    """Of a number or of a vector, by its length."""
    value, expected = ([v] if not isinstance(v, list) else v for v in (exact(value), expected))
    off = [a - b for a, b in zip(value, expected, strict=True)]
    return float(mp.sqrt(dot(off, off) / dot(expected, expected)))


def slope(function, kappa):
    """Derivative of function(kappa) by a central difference, good to 30 digits."""
    with mp.workdps(100):
        step = mpf(10) ** -40
        return (function(kappa + step) - function(kappa - step)) / (2 * step)
