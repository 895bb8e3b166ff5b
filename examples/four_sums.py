"""Four ways to add two points of the hyperbolic plane, drawn in the Poincaré disk (LRN, Figure 1).

python examples/four_sums.py outputs
"""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from curvlab.manifolds import lorentz
from curvlab.manifolds.lorentz_sums import STABLE

KAPPA = -1.0
x, y = lorentz.expmap0(torch.tensor([[1.5, 0.2], [0.3, 1.1]]), KAPPA)
origin = lorentz.origin(2, KAPPA)


def line(start: Tensor, end: Tensor) -> Tensor:
    """Points of the disk along a geodesic, `[50, 2]`."""
    steps = torch.linspace(0, 1, 50).unsqueeze(1)
    points = lorentz.expmap(start, steps * lorentz.logmap(start, end, KAPPA), KAPPA)
    return lorentz.to_stereographic(points, KAPPA)


figure = Figure(figsize=(11, 3.4), layout="constrained")
for axis, (operator, add) in zip(figure.subplots(1, len(STABLE)), STABLE.items(), strict=True):
    total, other = add(x, y, KAPPA, 1.0, 1.0), add(y, x, KAPPA, 1.0, 1.0)
    distance = float(lorentz.dist0(total, KAPPA))
    print(f"{operator}: x ⊕ y at distance {distance:.2f} from the origin")
    axis.set_title(f"{operator.replace('_', ' ')}\nd(o, x ⊕ y) = {distance:.2f}", fontsize=10)
    axis.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor="gray"))
    for end in (x, y):
        axis.plot(*line(origin, end).T, color="gray", linewidth=1, linestyle="dotted")
        axis.plot(*line(end, total).T, color="tab:blue", linewidth=1.4)
    for name, point in {"o": origin, "x": x, "y": y, "x ⊕ y": total, "y ⊕ x": other}.items():
        place = lorentz.to_stereographic(point, KAPPA).tolist()
        axis.plot(*place, "o", color="tab:red" if "⊕" in name else "black", markersize=5)
        axis.annotate(name, place, (6, -9 if name == "y ⊕ x" else 5), textcoords="offset points")
    axis.set(xlim=(-0.3, 1.05), ylim=(-0.3, 1.05), aspect="equal")
    axis.axis("off")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "lrn_fig1.svg")
