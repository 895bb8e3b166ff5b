"""Hyperbolic embeddings in the Poincare disk, as people expect to see them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from curvlab.analysis.embeddings import principal_components
from curvlab.analysis.figures import NodeLooks, draw_legends, draw_lines, draw_nodes
from curvlab.analysis.style import MUTED
from curvlab.manifolds import Space
from curvlab.manifolds import stereographic as k_space

MOST_DISKS = 4
MOST_EDGES = 5_000
"""Of more none are drawn: they would cover the disk."""

UNIT = -1.0


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
def disks_of(points: Tensor, space: Space) -> list[Disk]:
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
    kappas = space.kappa.double()
    curved = [i for i, kappa in enumerate(kappas.tolist()) if kappa < 0]
    return [_disk(blocks[:, i], float(kappas[i])) for i in curved[:MOST_DISKS]]


def _disk(x: Tensor, kappa: float) -> Disk:
    dim = x.shape[1]
    x = k_space.project((-kappa) ** 0.5 * x, UNIT)
    if dim == 1:
        x = torch.cat([x, torch.zeros_like(x)], 1)
    elif dim > 2:
        middle = k_space.midpoint(x, x.new_ones(len(x)), UNIT)
        tangent = k_space.logmap(middle.expand_as(x), x, UNIT)
        tangent = k_space.conformal_factor(middle, UNIT) * tangent  # as long as the distance
        directions = principal_components(tangent).coordinates
        x = k_space.project(k_space.expmap0(directions / 2, UNIT), UNIT)
    return Disk(x, kappa, dim)


def geodesics(x: Tensor, y: Tensor, points: int = 24) -> Tensor:
    """Points of the unit disk along geodesics, `[edges, points, 2]` from ends `[edges, 2]`."""
    steps = torch.linspace(0, 1, points, dtype=x.dtype).view(1, -1, 1)
    tangent = k_space.logmap(x, y, UNIT).unsqueeze(1)
    start = x.unsqueeze(1).expand(-1, points, -1)
    return k_space.expmap(start, steps * tangent, UNIT)


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
    columns = min(len(disks), 2)
    rows = -(-len(disks) // columns)
    figure = Figure(figsize=(1.4 + 5 * columns, 0.9 + 5 * rows), layout="constrained")
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(disks) :]:
        axis.set_axis_off()
    once = torch.from_numpy(edge_index[:, edge_index[0] < edge_index[1]])
    for i, (axis, disk) in enumerate(zip(axes, disks, strict=False)):
        axis.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=MUTED, linewidth=1))
        if once.shape[1] <= MOST_EDGES:
            draw_lines(axis, list(geodesics(disk.points[once[0]], disk.points[once[1]]).numpy()))
        drawn = draw_nodes(axis, disk.points.numpy(), looks)
        which = f"component {i + 1}: " if len(disks) > 1 else ""
        flattened = "" if disk.dim <= 2 else f", two principal of {disk.dim} dimensions"
        axis.set_title(f"{which}κ = {disk.kappa:.2f}{flattened}", fontsize=9, color=MUTED)
        axis.set_xlim(-1.03, 1.03)
        axis.set_ylim(-1.03, 1.03)
        axis.set_aspect("equal")
        axis.axis("off")
    draw_legends(figure, list(axes), drawn, looks)
    return figure
