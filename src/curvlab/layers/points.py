"""Points that remember their logarithms, and layers between them."""

from typing import Any

from torch import Tensor, nn

from curvlab.layers.spaces import TakesManifold
from curvlab.manifolds import Manifold


def first_tokens(x: Tensor, count: int | None) -> Tensor:
    """The first `count` tokens of `[..., tokens, dim]`, or all (None), in the layout of x."""
    return x.mT[..., :count].mT


class Points:
    """Points of a space, known by coordinates, by logarithms at the origin, or by both.

    Missing values are computed at their first use and kept, so that a layer that maps tangent
    vectors needs no exponential followed by a logarithm.

    Args:
        space: Space of the points.
        tangent: Tangent vectors `[..., tokens, dim]`, whose exponentials at the origin are the
            points; far out on a ball or a sphere, the logarithms of the points are shorter.
        x: Coordinates.
        log: Logarithms at the origin.
        eager: Compute coordinates and logarithms from `tangent` at once, by one call.
    """

    def __init__(
        self,
        space: Manifold,
        tangent: Tensor | None = None,
        *,
        x: Tensor | None = None,
        log: Tensor | None = None,
        eager: bool = False,
    ) -> None:
        self.space = space
        self._tangent = tangent
        self._x = x
        self._log = log
        if eager and tangent is not None:
            self._x, self._log = space.expmap0_and_log(tangent)

    @property
    def x(self) -> Tensor:
        """Coordinates `[..., tokens, dim + codimension]`."""
        if self._x is None:
            if self._log is None:
                assert self._tangent is not None
                self._x, self._log = self.space.expmap0_and_log(self._tangent)
            else:
                tangent = self._log if self._tangent is None else self._tangent
                self._x = self.space.expmap0(tangent)
        return self._x

    @property
    def log(self) -> Tensor:
        """Logarithms at the origin `[..., tokens, dim]`."""
        if self._log is None:
            if self._x is None:
                assert self._tangent is not None
                self._log = self.space.clamp_tangent(self._tangent)
            else:
                self._log = self.space.logmap0(self._x)
        return self._log

    def first(self, count: int | None) -> "Points":
        """The first `count` tokens, or all (None); other tangent vectors are not mapped."""
        if count is None:
            return self
        if self._x is None and self._tangent is not None:
            x = self.space.expmap0(first_tokens(self._tangent, count))
        else:
            x = first_tokens(self.x, count)
        return Points(self.space, x=x)

    def __add__(self, other: "Points") -> "Points":
        """Moebius sum, `add` of the space: the left point, moved by the logarithm of the right."""
        return Points(self.space, x=self.space.add(self.x, other.x))


class PointLayer(TakesManifold, nn.Module):
    """A layer from `Points` to `Points`; called with coordinates, it returns coordinates.

    Attributes:
        space: space of the input.
    """

    space: Manifold

    def __call__(self, x: Points | Tensor, *args: Any) -> Any:
        """Return points for points and coordinates for coordinates."""
        if isinstance(x, Tensor):
            return super().__call__(Points(self.space, x=x), *args).x
        return super().__call__(x, *args)
