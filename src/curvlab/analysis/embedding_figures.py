"""Embeddings as pictures: principal components, and hyperbolic components in the Poincare disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import BoundaryNorm, Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from curvlab.analysis.embeddings import principal_components
from curvlab.analysis.style import MUTED, color_bar, panels, styled
from curvlab.manifolds import Euclidean, Stereographic
from curvlab.manifolds import stereographic as k_space

NAMED_CLASSES = 20
MOST_DISKS = 4
MOST_EDGES = 5_000
"""Of more none are drawn: they would cover the disk."""

UNIT = -1.0
"""Curvature of the unit disk."""


@dataclass(frozen=True)
class NodeLooks:
    """How nodes are drawn.

    Attributes:
        values: what colours them, `[nodes]`, for instance their degree; values over a wide positive
            range are on a log scale.
        label: of the colour bar.
        categorical: whether values are classes 0, 1, ..., each with a colour of its own; -1 is
            grey.
        names: of the classes.
    """

    values: np.ndarray
    label: str
    categorical: bool = False
    names: Sequence[str] | None = None


@styled
def embedding_figure(
    points: np.ndarray,
    explained: Sequence[float],
    edge_index: np.ndarray,
    looks: NodeLooks,
    title: str,
    subtitle: str = "",
) -> Figure:
    """Scatter of two principal components, edges drawn lightly.

    Args:
        points: Principal components `[nodes, 2]`.
        explained: Fraction of the variance that each of the two explains.
        edge_index: Edges `[2, edges]`.
        looks: How nodes are drawn.
        title: Heading.
        subtitle: Second line, for instance the curvatures.
    """
    figure, (axis,) = panels(1, 7, 5.5, title)
    axis.set_title(subtitle, fontsize=9, color=MUTED)
    once = edge_index[0] < edge_index[1]
    drawn = _draw(axis, points, points[edge_index[:, once].T], looks)
    _color_bar(figure, [axis], drawn, looks)
    first, second = explained
    axis.set_xlabel(f"first principal component ({first:.0%} of variance)")
    axis.set_ylabel(f"second principal component ({second:.0%} of variance)")
    axis.set_aspect("equal", adjustable="datalim")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, colors=MUTED)
    return figure


@dataclass(frozen=True)
class Disk:
    """One hyperbolic component: points of the unit disk `[nodes, 2]`.

    Attributes:
        points: inside the unit circle.
        kappa: the curvature.
        dim: of the component; its points are drawn as they are if it is 2.
    """

    points: Tensor
    kappa: float
    dim: int


@torch.no_grad()
def disks_of(points: Tensor, space: Euclidean | Stereographic) -> list[Disk]:
    """The hyperbolic components of an embedding in the unit disk, the first four.

    Coordinates are times sqrt(-kappa). Of more than two dimensions the logarithms at the midpoint
    are projected onto their two principal components and mapped back by the exponential map, with
    the midpoint in the disk's centre.

    Args:
        points: `[nodes, dim]` of a space that splits into components.
        space: where they lie; those of the Lorentz model are their stereographic images.
    """
    if space.kappa is None:
        return []
    blocks = space.split(points.double())
    disks: list[Disk] = []
    for i, kappa in enumerate(space.kappa.double().tolist()):
        if kappa >= 0 or len(disks) == MOST_DISKS:
            continue
        dim = blocks.shape[-1]
        x = k_space.project((-kappa) ** 0.5 * blocks[:, i], UNIT)
        if dim == 1:
            x = torch.cat([x, torch.zeros_like(x)], 1)
        elif dim > 2:
            middle = k_space.midpoint(x, x.new_ones(len(x)), UNIT)
            tangent = k_space.logmap(middle.expand_as(x), x, UNIT)
            tangent = k_space.conformal_factor(middle, UNIT) * tangent  # as long as the distance
            directions = principal_components(tangent)[0]
            x = k_space.project(k_space.expmap0(directions / 2, UNIT), UNIT)
        disks.append(Disk(x, kappa, dim))
    return disks


def geodesics(x: Tensor, y: Tensor, points: int = 24) -> Tensor:
    """Points of the unit disk along geodesics, `[edges, points, 2]` from ends `[edges, 2]`."""
    steps = torch.linspace(0, 1, points, dtype=x.dtype).view(1, -1, 1)
    tangent = k_space.logmap(x, y, UNIT).unsqueeze(1)
    return k_space.expmap(x.unsqueeze(1).expand(-1, points, -1), steps * tangent, UNIT)


@styled
def disks_figure(
    disks: Sequence[Disk], edge_index: np.ndarray, looks: NodeLooks, title: str
) -> Figure:
    """Nodes in the Poincare disk, a panel a component, edges as geodesics.

    Args:
        disks: what `disks_of` returned.
        edge_index: edges `[2, edges]`; more than 5,000 are not drawn.
        looks: how nodes are drawn.
        title: heading.
    """
    figure, axes = panels(len(disks), 5.7, 5.2, title, columns=min(len(disks), 2))
    edges = torch.from_numpy(edge_index[:, edge_index[0] < edge_index[1]])
    edges = edges[:, : edges.shape[1] if edges.shape[1] <= MOST_EDGES else 0]
    for i, (axis, disk) in enumerate(zip(axes, disks, strict=True)):
        axis.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=MUTED, linewidth=1))
        lines = geodesics(disk.points[edges[0]], disk.points[edges[1]])
        drawn = _draw(axis, disk.points.numpy(), lines.numpy(), looks)
        which = f"component {i + 1}: " if len(disks) > 1 else ""
        flattened = "" if disk.dim <= 2 else f", two principal of {disk.dim} dimensions"
        title = f"{which}κ = {disk.kappa:.2f}{flattened}"
        axis.set_title(title, fontsize=9, color=MUTED, loc="center")
        axis.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal")
        axis.axis("off")
    _color_bar(figure, axes, drawn, looks)
    return figure


def _draw(axis: Axes, points: np.ndarray, lines: np.ndarray, looks: NodeLooks) -> PathCollection:
    """Draw nodes `[nodes, 2]` above edges `[edges, points, 2]`."""
    alpha = float(np.clip(800 / (len(lines) + 1), 0.01, 0.35))  # many lines add up to black
    options: dict[str, Any] = {"colors": MUTED, "linewidths": 0.4, "alpha": alpha, "zorder": 1}
    axis.add_collection(LineCollection(list(lines), **options))
    values = looks.values
    if looks.categorical:
        count = int(values.max()) + 1
        order = np.random.default_rng(0).permutation(len(values))  # no class on top
        palette: Colormap = colormaps["tab10" if count <= 10 else "tab20"].resampled(count)
        palette = palette.with_extremes(under="lightgrey")  # nodes without a class
        norm: Normalize = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    else:
        order = np.argsort(values, kind="stable")  # large values on top
        low, high = values.min(), max(values.max(), values.min() + 1)
        palette = colormaps["viridis"]
        norm = (LogNorm if low > 0 and values.max() > 20 * low else Normalize)(low, high)
    size = float(np.clip(30_000 / len(points), 4, 40))
    options = {"cmap": palette, "norm": norm, "linewidths": 0, "zorder": 2}
    drawn = axis.scatter(points[order, 0], points[order, 1], c=values[order], s=size, **options)
    axis.grid(visible=False)
    return drawn


def _color_bar(
    figure: Figure, axes: Sequence[Axes], drawn: PathCollection, looks: NodeLooks
) -> None:
    count = int(looks.values.max()) + 1
    ticks = np.arange(count) if looks.categorical else None
    bar = color_bar(figure, drawn, axes, looks.label, ticks=ticks)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if looks.categorical and looks.names is not None and count <= NAMED_CLASSES:
        bar.set_ticks(list(range(count)), labels=[name[:16] for name in looks.names[:count]])
