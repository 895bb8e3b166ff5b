"""The picture of the sums: its points are the operators', its lines geodesics."""

import pytest
import torch

from curvlab.analysis.additions import KAPPA, TANGENTS, TITLES, additions_figure, geodesic, sums
from curvlab.manifolds import lorentz

X, Y = lorentz.expmap0(TANGENTS, KAPPA)


def in_disk(points):
    return lorentz.to_stereographic(points, KAPPA)


@pytest.mark.parametrize("operator", TITLES)
def test_only_parallel_transport_does_not_commute(operator):
    total, other = sums(operator, X, Y)
    assert (operator == "parallel_transport") == (not torch.allclose(total, other, atol=1e-4))


def test_lines_are_circles_that_meet_the_rim_at_right_angles():
    """A geodesic of the disk lies on a circle of centre c and radius r with |c|^2 = 1 + r^2."""
    line = geodesic(X, Y)
    torch.testing.assert_close(line[[0, -1]], in_disk(torch.stack([X, Y])), atol=1e-5, rtol=0)
    a, b, c = line[0].double(), line[20].double(), line[-1].double()
    matrix = 2 * torch.stack([b - a, c - a])
    centre = torch.linalg.solve(matrix, torch.stack([b @ b - a @ a, c @ c - a @ a]))
    radius = (line.double() - centre).norm(dim=1)
    torch.testing.assert_close(radius, radius[0].expand(50), atol=1e-4, rtol=0)
    assert (centre @ centre).item() == pytest.approx(1 + radius[0].item() ** 2, rel=1e-3)


def test_panels_show_the_sums_and_how_far_out_they_are():
    figure = additions_figure()
    distances = []
    for axis, operator in zip(figure.axes, TITLES, strict=True):
        total, _ = sums(operator, X, Y)
        places = {text.get_text(): text.xy for text in axis.texts}
        assert places["x ⊕ y"] == pytest.approx(in_disk(total).tolist(), abs=1e-5)
        distances.append(lorentz.dist0(total, KAPPA).item())
        assert axis.get_title().endswith(f"= {distances[-1]:.2f}")
    # Only the centroid stays between the points.
    assert distances[-1] < min(lorentz.dist0(torch.stack([X, Y]), KAPPA)) + 1e-6 < distances[0]
    assert min(distances[:3]) > max(lorentz.dist0(torch.stack([X, Y]), KAPPA))
