"""The protocol of manifolds: the methods of a space that models and tasks use."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from curvlab.checked import Checked
from curvlab.errors import UsageError
from curvlab.manifolds._geoopt import geoopt
from curvlab.manifolds.curved_trig import safe_sqrt
from curvlab.manifolds.kernels import refuse_other_names
from curvlab.manifolds.pair_form import PairForm


def method_from_function(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A method that passes the manifold's curvature to a function of points."""

    def method(self: "Manifold", *points: Tensor) -> Tensor:
        return function(*points, self.kappa)

    method.__doc__ = function.__doc__
    return method


def root_of_sqdist(space: "Manifold", x: Tensor, y: Tensor) -> Tensor:
    """Distance `[...]`, the root of `sqdist`, with gradient 0 where it is 0."""
    return safe_sqrt(space.sqdist(x, y))


class Manifold(Checked, nn.Module, ABC):
    """A space of points `[..., dim]`; models and tasks use only these methods of it.

    A subclass implements `expmap0`, `logmap0`, `add` and `dist`. All other methods have defaults
    that use these four; a subclass overrides a method if its geometry has a better form, such as
    `mean_vectors` and `mean_point`. Tangent vectors at the origin are `[..., dim - codimension]`.

    Args:
        kappa: initial curvature.
        learnable: whether the curvature is a parameter.
        min: open lower bound of the curvature, None for none.
        max: open upper bound of the curvature, None for none.

    Attributes:
        components: Number of factors, each with an attention head.
        codimension: Number of coordinates of a point minus those of a tangent vector at the origin.
        tangent_dim: Width of tangent vectors if it is fixed; None: any multiple of `components`.
        decoders: Names of the decoders of node classification for this space, the default first.
        link_decoders: Names of the decoders of link prediction, the default first.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    components: int = 1
    codimension: int = 0
    tangent_dim: int | None = None
    decoders: ClassVar[tuple[str, ...]] = ("linear",)
    link_decoders: ClassVar[tuple[str, ...]] = ("fermi_dirac",)

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Keep the arguments, from which `__call__` makes further manifolds."""
        refuse_other_names(cls.__name__, options)
        space = super().__new__(cls)
        vars(space)["_arguments"] = args, options
        return space

    def __call__(self, **options: Any) -> Self:
        """Make another manifold with the same arguments, except for `options`."""
        positional, keywords = self._arguments
        arguments = signature(type(self)).bind_partial(*positional).arguments
        return type(self)(**(keywords | arguments | options))

    @property
    def kappa(self) -> Tensor | None:
        """Signed curvatures `[components]`, or `[]` for a single one; None if there are none."""
        return None

    @abstractmethod
    def expmap0(self, v: Tensor) -> Tensor:
        """Exponential map at the origin; in a ball, points stay inside its rim.

        Shapes: `[..., dim - codimension] -> [..., dim]`.
        """

    @abstractmethod
    def logmap0(self, x: Tensor) -> Tensor:
        """Logarithm at the origin, `[..., dim] -> [..., dim - codimension]`."""

    @abstractmethod
    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`exp_x(P(log_0 y))`, P the parallel transport from the origin to x, `[..., dim]`."""

    @abstractmethod
    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Geodesic distance `[...]`, with a finite gradient at x = y."""

    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        return self.dist(x, y).square()

    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distances `[..., n, m]` of points `[..., n, dim]` and `[..., m, dim]`."""
        return self.sqdist(x.unsqueeze(-2), y.unsqueeze(-3))

    def pairwise_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances `[..., n, m]`; the gradient at coincident points is 0."""
        return safe_sqrt(self.pairwise_sqdist(x, y))

    def dist0(self, x: Tensor) -> Tensor:
        return self.dist(self.expmap0(x.new_zeros(x.shape[-1] - self.codimension)), x)

    def expmap(self, x: Tensor, u: Tensor) -> Tensor:
        """Exponential map at x of a tangent vector there, the inverse of `logmap`, `[..., dim]`."""
        raise NotImplementedError(f"{type(self).__name__} defines no expmap")

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        """Logarithm of y at x, a tangent vector there."""
        raise NotImplementedError(f"{type(self).__name__} defines no logmap")

    def geodesic(self, t: Tensor | float, x: Tensor, y: Tensor) -> Tensor:
        """Points `[..., dim]` at the shares t `[...]` of the geodesic from x to y."""
        share = torch.as_tensor(t, dtype=x.dtype, device=x.device).unsqueeze(-1)
        return self.expmap(x, share * self.logmap(x, y))

    def mobius_matvec(self, m: Tensor, x: Tensor) -> Tensor:
        """`exp_0(M log_0(x))` of a matrix `[..., out, in]`, `[..., out]` next to the time."""
        return self.expmap0((m @ self.logmap0(x).unsqueeze(-1)).squeeze(-1))

    def transport0(self, y: Tensor, v: Tensor) -> Tensor:
        """Parallel transport of v from the origin to y, the derivative of `add(y, expmap0(v))`."""
        start = (torch.zeros_like(v),)
        return torch.func.jvp(lambda u: self.add(y, self.expmap0(u)), start, (v,))[1]

    def mean_vectors(self, x: Tensor, scale: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Vectors `[components, ..., n, width]` of points, whose weighted sums `mean_point` takes.

        By default these are the logarithms at the origin, each followed by a 1.

        Args:
            x: Points `[..., n, dim]`.
            scale: `tangent_scale(x)` if it has been computed already.
        """
        v = self.split(self.logmap0(x)).movedim(-2, 0)
        return torch.cat([v.mT, torch.ones_like(v[..., :1]).mT], dim=-2).mT

    def mean_point(self, sums: Tensor) -> Tensor:
        """Weighted means `[..., dim]` of points from the sums `[components, ..., width]`."""
        v = sums[..., :-1] / sums[..., -1:]
        return self.expmap0(self.merge(v.movedim(0, -2)))

    def weighted_mean(self, x: Tensor, average: Callable[[Tensor], Tensor]) -> Tensor:
        """Weighted means `[..., m, dim]` of points `[..., n, dim]`.

        `average` maps vectors `[components, ..., n, width]` to their weighted sums
        `[components, ..., m, width]`; the scale of the weights does not matter.
        """
        return self.mean_point(average(self.mean_vectors(x)))

    def tangent_scale(self, x: Tensor) -> Tensor | None:  # noqa: ARG002
        """Length of a coordinate vector at x divided by its length at the origin.

        The shape is `[components, ..., 1]`; None if coordinates of tangent vectors are orthonormal.
        """
        return None

    def project(self, x: Tensor) -> Tensor:
        """Move points into the region of accurate arithmetic, `[..., dim]`."""
        return x

    def expmap0_and_log(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """`expmap0(v)` and its logarithm."""
        x = self.expmap0(v)
        return x, self.logmap0(x)

    def clamp_tangent(self, v: Tensor) -> Tensor:
        """`logmap0(expmap0(v))`, which is v except far out, `[..., dim - codimension]`."""
        return self.logmap0(self.expmap0(v))

    def expmap0_sum(self, u: Tensor, v: Tensor) -> Tensor:
        """`add(expmap0(u), expmap0(v))` of vectors u and one vector v, `[..., dim]`."""
        return self.add(self.expmap0(u), self.expmap0(v.expand_as(u)))

    def expmap0_sum_means(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor | None]:
        """`mean_vectors` and `tangent_scale` of the points `expmap0_sum(u, v)`."""
        x = self.expmap0_sum(u, v)
        scale = self.tangent_scale(x)
        vectors = self.mean_vectors(x) if scale is None else self.mean_vectors(x, scale)
        return vectors, scale

    def scale_coordinates(self, x: Tensor, factor: Tensor) -> Tensor:
        """Multiply the logarithms of points x by `factor`, as dropout does, `[..., dim]`."""
        return self.expmap0(factor * self.logmap0(x))

    def split(self, x: Tensor) -> Tensor:
        """Coordinates `[..., dim]` as blocks `[..., components, dim / components]`, a view."""
        if x.shape[-1] % self.components:
            raise UsageError(
                f"Dimension {x.shape[-1]} does not split into {self.components} equal components: "
                f"choose a multiple of {self.components}."
            )
        return x.unflatten(-1, (self.components, x.shape[-1] // self.components))

    def merge(self, x: Tensor) -> Tensor:
        """Blocks `[..., components, block]` as coordinates `[..., dim]`, the inverse of `split`."""
        return x.flatten(-2)

    def chord_weight(self, x: Tensor) -> Tensor | None:  # noqa: ARG002
        """Factors w of points, `[n, components]`, in the type of the points.

        The squared distance is a function of `w_x w_y |x - y|^2` of each component, the function of
        `pair_form`. None: the space has no such factors.
        """
        return None

    def pair_form(self, x: Tensor) -> PairForm | None:  # noqa: ARG002
        """Bilinear form of points `[nodes, dim]` that determines their squared distance.

        With it, graph reconstruction needs no matrix of all distances. None: the space has no form.
        """
        return None

    def shares(self, x: Tensor) -> dict[str, Tensor]:  # noqa: ARG002
        """Shares (0 to 1) of points `[..., dim]` at limits of their coordinates, by name."""
        return {}

    def picture(self, x: Tensor) -> tuple[Tensor, Any] | None:  # noqa: ARG002
        """Points `[nodes, dim]` and a manifold that can be stored and drawn.

        None: draw the logarithms at the origin instead, in flat space.
        """
        return None


class GeooptManifold(Manifold, geoopt.Manifold):
    """A manifold whose points geoopt's optimisers move.

    Methods named as in geoopt (`projx`, `egrad2rgrad`, `retr`, `transp`, ...) are for optimisers.
    """

    ndim = 1
    reversible = False
    __repr__ = torch.nn.Module.__repr__

    dist = root_of_sqdist

    def projx(self, x: Tensor) -> Tensor:
        return self.project(x)

    def expmap0_projected(self, v: Tensor) -> Tensor:
        """`expmap0` under its former name."""
        return self.expmap0(v)

    def expmap0_unprojected(self, v: Tensor) -> Tensor:
        """Exponential map at the origin up to the boundary of a ball, `[..., dim]`."""
        return self.expmap0(v)

    def proju(self, x: Tensor, u: Tensor) -> Tensor:  # noqa: ARG002
        """Projection onto the tangent space at x; every vector of coordinates is tangent."""
        return u

    def retr(self, x: Tensor, u: Tensor) -> Tensor:
        return self.expmap(x, u)

    def random_normal(
        self,
        *size: int,
        std: float = 1.0,
        dtype: torch.dtype | None = None,
        device: Any = None,
    ) -> Tensor:
        """Exponential map of normal tangent vectors at the origin, as a manifold tensor."""
        v = torch.randn(*size[:-1], size[-1] - self.codimension, dtype=dtype, device=device)
        return geoopt.ManifoldTensor(self.expmap0(std * v), manifold=self)

    def describe(self, dim: int) -> str:
        """Description of the space of points of width `dim` for the title of a picture."""
        return f"{type(self).__name__}, {dim} dimensions"

    def extra_repr(self) -> str:
        return f"components={self.components}" if self.components > 1 else ""

    def _check_point_on_manifold(self, *_: Any, **__: Any) -> tuple[bool, str | None]:
        return True, None

    def _check_vector_on_tangent(self, *_: Any, **__: Any) -> tuple[bool, str | None]:
        return True, None
