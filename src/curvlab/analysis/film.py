"""A film of an embedding while its curvature learns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from curvlab.analysis.embeddings import principal_components, tangent_coordinates
from curvlab.analysis.style import LINES, MUTED, tidy
from curvlab.manifolds import Space
from curvlab.manifolds import stereographic as k_space
from curvlab.results.files import arriving

DPI = 90
FRAMES_A_SECOND = 12
LAST_FRAME = 2
"""Seconds that the film stays on its last frame."""


@dataclass(frozen=True)
class Frame:
    """A moment of a run.

    Attributes:
        step: of the optimiser.
        loss: by directed edge.
        kappa: the curvature.
        coordinates: two principal components of the points, seen from their midpoint: tangent
            vectors `[nodes, 2]`, as long as the distances from it.
    """

    step: int
    loss: float
    kappa: float
    coordinates: Tensor


def frame(step: int, loss: float, points: Tensor, space: Space, before: Frame | None) -> Frame:
    """The frame of an embedding in one component, turned towards the frame before it.

    Principal components have no sign, and of equal variance no direction: the rotation or
    reflection that brings them nearest to the last ones (orthogonal Procrustes) takes that out.

    Args:
        step: of the optimiser.
        loss: by directed edge.
        points: `[nodes, dim]`.
        space: where they lie.
        before: the last frame.
    """
    assert space.kappa is not None
    coordinates = principal_components(tangent_coordinates(points.detach(), space)).coordinates
    if before is not None:
        left, _, right = torch.linalg.svd(coordinates.T @ before.coordinates)
        coordinates = coordinates @ left @ right
    return Frame(step, loss, float(space.kappa.detach().squeeze()), coordinates)


def write_film(frames: Sequence[Frame], degrees: np.ndarray, title: str, path: Path) -> Path:
    """Write a GIF: the nodes in the ball, whose rim comes in, beside the curvature and the loss.

    Args:
        frames: of the run, in order.
        degrees: colours of the nodes, `[nodes]`.
        title: heading.
        path: of the file.
    """
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    places = figure.subplot_mosaic([["nodes", "kappa"], ["nodes", "loss"]], width_ratios=[1.5, 1])
    disks = [_disk(f) for f in frames]
    reach = 1.05 * max(float(np.abs(disk).max()) for disk in disks)
    writer = PillowWriter(fps=FRAMES_A_SECOND, metadata={"title": title})
    with arriving(path) as partial:
        file = partial.with_name(f"{partial.name}.gif")  # the writer goes by the name
        with writer.saving(figure, file, DPI):
            for i, disk in enumerate(disks):
                for axis in places.values():
                    axis.clear()
                _draw_nodes(places["nodes"], disk, frames[i].kappa, degrees, reach)
                _draw_line(places["kappa"], frames, i, "kappa", "curvature κ")
                _draw_line(places["loss"], frames, i, "loss", "loss")
                places["loss"].set_xlabel("optimiser step")
                words = f"{title}, step {frames[i].step}: κ = {frames[i].kappa:.2f}"
                places["nodes"].set_title(words, loc="left", fontsize=11)
                for _ in range(1 if i < len(disks) - 1 else LAST_FRAME * FRAMES_A_SECOND):
                    writer.grab_frame()
        file.replace(partial)
    return path


def _disk(frame: Frame) -> np.ndarray:
    """Points of the ball of the frame's curvature, `[nodes, 2]`, the midpoint in its centre."""
    kappa = frame.kappa
    points = k_space.project(k_space.expmap0(frame.coordinates / 2, kappa), kappa)
    return points.numpy()


def _draw_nodes(
    axis: Axes, disk: np.ndarray, kappa: float, degrees: np.ndarray, reach: float
) -> None:
    if kappa < 0:
        rim = Circle((0, 0), (-kappa) ** -0.5, facecolor="#f4f4f4", edgecolor=MUTED, linewidth=1)
        axis.add_patch(rim)
    order = np.argsort(degrees, kind="stable")
    colors = np.log(degrees[order])
    axis.scatter(disk[order, 0], disk[order, 1], c=colors, s=5, cmap="viridis", linewidths=0)
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axis.axis("off")


def _draw_line(axis: Axes, frames: Sequence[Frame], now: int, name: str, label: str) -> None:
    tidy(axis)
    steps = [f.step for f in frames]
    values = [getattr(f, name) for f in frames]
    axis.plot(steps[: now + 1], values[: now + 1], color=LINES[0], linewidth=1.6)
    axis.plot(steps[now], values[now], "o", color=LINES[0], markersize=4)
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 1
    axis.set(xlim=(0, max(steps)), ylim=(low - margin, high + margin))
    axis.set_title(label, loc="left", fontsize=10)
