"""Four sums of two points of the hyperbolic plane, drawn: residual connections (LRN, Figure 1)."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from curvlab.analysis.style import INK, MUTED, NEGATIVE, POSITIVE
from curvlab.manifolds import lorentz
from curvlab.manifolds.lorentz_sums import STABLE

TITLES = {
    "parallel_transport": "parallel transport",
    "tangent_space": "tangent space",
    "space_addition": "space addition",
    "centroid": "LRN",
}
KAPPA = -1.0
TANGENTS = torch.tensor([[1.5, 0.2], [0.3, 1.1]])
"""Logarithms at the origin of the points that are added."""
OFFSETS = {"o": (-9, -9), "x": (8, -8), "y": (-10, 4), "x ⊕ y": (7, 5), "y ⊕ x": (-8, 10)}
"""Of the names from their points, in points of print."""


def additions_figure() -> Figure:
    """The sums of the same two points in the Poincaré disk, a panel an operator.

    Lines are geodesics: solid ones lead to the sum, dotted ones from the origin o to the points,
    which three of the four go through. Hollow is the sum in the other order, where it is another.
    """
    x, y = lorentz.expmap0(TANGENTS, KAPPA)
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axis, (operator, title) in zip(figure.subplots(1, 4), TITLES.items(), strict=True):
        _draw(axis, operator, x, y)
        far = float(lorentz.dist0(sums(operator, x, y)[0], KAPPA))
        axis.set_title(f"{title}\nd(o, x ⊕ y) = {far:.2f}", fontsize=10)
    return figure


def sums(operator: str, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """`x ⊕ y` and `y ⊕ x`, with weights 1."""
    add = STABLE[operator]
    return add(x, y, KAPPA, 1.0, 1.0), add(y, x, KAPPA, 1.0, 1.0)


def geodesic(x: Tensor, y: Tensor, points: int = 50) -> Tensor:
    """Points of the disk along the geodesic from x to y, `[points, 2]`."""
    steps = torch.linspace(0, 1, points).unsqueeze(1)
    return lorentz.to_stereographic(
        lorentz.expmap(x, steps * lorentz.logmap(x, y, KAPPA), KAPPA), KAPPA
    )


def _draw(axis: Axes, operator: str, x: Tensor, y: Tensor) -> None:
    o = lorentz.origin(2, KAPPA)
    total, other = sums(operator, x, y)
    points = {"o": o, "x": x, "y": y, "x ⊕ y": total}
    if operator == "centroid":
        lines = [(x, y)]
    elif operator == "parallel_transport":
        lines, points = [(x, total), (y, other)], {**points, "y ⊕ x": other}
    else:
        lines = [(o, total)]
    axis.add_patch(Circle((0, 0), 1 / math.sqrt(-KAPPA), facecolor="none", edgecolor=MUTED))
    if operator != "centroid":
        for end in (x, y):
            axis.plot(*geodesic(o, end).T, color=MUTED, linewidth=1, linestyle="dotted")
    for start, end in lines:
        axis.plot(*geodesic(start, end).T, color=NEGATIVE, linewidth=1.4)
    for name, point in points.items():
        left, up = lorentz.to_stereographic(point, KAPPA).tolist()
        color = POSITIVE if "⊕" in name else INK
        axis.plot(
            left, up, "o", color=color, markersize=5, mfc="white" if name == "y ⊕ x" else color
        )
        axis.annotate(
            name,
            (left, up),
            OFFSETS[name],
            textcoords="offset points",
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )
    axis.set_xlim(-0.3, 1.05)
    axis.set_ylim(-0.3, 1.05)
    axis.set_aspect("equal")
    axis.axis("off")
