"""The geometry in 50-digit arithmetic, straight from the textbook formulas."""

from mpmath import mp, mpf

mp.dps = 50


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


def slope(function, kappa):
    """Derivative of function(kappa) by a central difference, good to 30 digits."""
    with mp.workdps(100):
        step = mpf(10) ** -40
        return (function(kappa + step) - function(kappa - step)) / (2 * step)
