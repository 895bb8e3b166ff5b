"""What models and tasks require of the space that points lie in, in any geometry."""

from abc import ABC, abstractmethod
from inspect import signature
from typing import Any, Self

import torch
from torch import Tensor

from curvlab.checked import Checked
from curvlab.errors import UsageError
from curvlab.manifolds._geoopt import geoopt
from curvlab.manifolds.curved_trig import safe_sqrt
from curvlab.manifolds.kernels import refuse_other_names
from curvlab.manifolds.pairs.form import PairForm
from curvlab.options import PositiveInt


class EmbeddingSpace(Checked, ABC):
    """What a task asks of the space that embeddings `[..., dim]` lie in.

    Attributes:
        codimension: number of coordinates that a point has more than a tangent vector at the
            origin.
        decoders: decoders of node classification that work here, the default first, by their names
            in `curvlab.tasks.decoders`.
        link_decoders: those of link prediction, by their names in `curvlab.tasks.link_decoders`.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    codimension = 0
    decoders: tuple[str, ...] = ("linear",)
    link_decoders: tuple[str, ...] = ("fermi_dirac",)

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Keep the arguments: a space makes others like it."""
        refuse_other_names(cls.__name__, options)
        space = super().__new__(cls)
        vars(space)["_arguments"] = args, options
        return space

    def __call__(self, **options: Any) -> Self:
        """Make a space with the same arguments but for `options`, as calling its class does."""
        args, given = self._arguments
        given = given | signature(type(self)).bind_partial(*args).arguments | options
        return type(self)(**given)

    @abstractmethod
    def logmap0(self, x: Tensor) -> Tensor:
        """Logarithm at the origin, `[..., dim - codimension]`."""

    @abstractmethod
    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distance, `[...]`."""

    @abstractmethod
    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distances `[..., n, m]` of points `[..., n, dim]` and `[..., m, dim]`."""

    def dist(self, x: Tensor, y: Tensor, *, keepdim: bool = False) -> Tensor:
        """Distance `[...]`, with gradient 0 where it is 0."""
        distance = safe_sqrt(self.sqdist(x, y))
        return distance.unsqueeze(-1) if keepdim else distance

    def pair_form(self, x: Tensor) -> PairForm:  # noqa: ARG002
        """The form of two points `[nodes, dim]` that their squared distance is a function of.

        Raises:
            UsageError: the space has none.
        """
        raise UsageError(
            f"reconstruction has no distance for {type(self).__name__}; it has for Stereographic, "
            "Lorentz, PseudoHyperboloid and Euclidean"
        )

    def shares(self, x: Tensor) -> dict[str, Tensor]:  # noqa: ARG002
        """Shares of points `[..., dim]` at limits of their coordinates, 0 to 1, by name."""
        return {}

    def in_components(self, x: Tensor) -> "tuple[Tensor, Space]":
        """Points `[nodes, dim]` in a space that pictures are drawn of.

        Here their logarithms at the origin, in flat space.
        """
        from curvlab.manifolds.euclidean_space import Euclidean  # a subclass

        return self.logmap0(x), Euclidean(conformal_factor=1.0)


class GeooptSpace(EmbeddingSpace, geoopt.Manifold):
    """A space whose points geoopt's optimisers move; a subclass has `expmap` and `project`."""

    ndim = 1
    reversible = False
    __repr__ = torch.nn.Module.__repr__

    @abstractmethod
    def expmap0(self, v: Tensor) -> Tensor:
        """Exponential map at the origin, inside the rim where there is one, `[..., dim]`."""

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """Points moved to where the arithmetic is safe, `[..., dim]`."""

    def projx(self, x: Tensor) -> Tensor:
        """Projection of points under geoopt's name."""
        return self.project(x)

    def dist0(self, x: Tensor, *, keepdim: bool = False) -> Tensor:
        """Distance to the origin, `[...]`."""
        origin = self.expmap0(x.new_zeros(x.shape[-1] - self.codimension))
        return self.dist(origin, x, keepdim=keepdim)

    def geodesic(self, t: Tensor | float, x: Tensor, y: Tensor) -> Tensor:
        """Point at the share t `[...]` of the geodesic from x to y, `[..., dim]`."""
        share = torch.as_tensor(t, dtype=x.dtype, device=x.device).unsqueeze(-1)
        return self.expmap(x, share * self.logmap(x, y))

    def mobius_matvec(self, m: Tensor, x: Tensor) -> Tensor:
        """`exp_0(M log_0(x))` of a matrix `[..., out, in]`, `[..., out]` next to the time."""
        return self.expmap0((m @ self.logmap0(x).unsqueeze(-1)).squeeze(-1))

    def retr(self, x: Tensor, u: Tensor) -> Tensor:
        """Retraction: the exponential map, which costs little more and is exact."""
        return self.expmap(x, u)

    def origin(
        self, *size: int, dtype: torch.dtype | None = None, device: Any = None, seed: int = 42
    ) -> Tensor:
        """The origin repeated to `size`, whose last entry is `dim`, as a manifold tensor."""
        del seed  # the origin is not random; geoopt's signature has it
        v = torch.zeros(*size[:-1], size[-1] - self.codimension, dtype=dtype, device=device)
        return geoopt.ManifoldTensor(self.expmap0(v), manifold=self)

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

    random = random_normal


class Space(GeooptSpace):
    """A product of `components` equal blocks of coordinates; points are `[..., dim]`.

    Subclasses of geoopt's manifold: `geoopt.ManifoldParameter` and `geoopt.optim` take them. The
    methods below are what models use; those named as in geoopt (`projx`, `egrad2rgrad`, `retr`,
    `transp`, ...) are for its optimisers. Distances in the product are the root of the sum of the
    components' squares.

    Args:
        components: number of blocks that the last axis is split into.
    """

    def __init__(self, components: PositiveInt = 1) -> None:
        super().__init__()
        self.components = components

    def extra_repr(self) -> str:
        """Show the number of blocks."""
        return f"components={self.components}"

    @property
    def kappa(self) -> Tensor | None:
        """Signed curvatures `[components]`; None for flat space."""
        return None

    def arrays(self) -> dict[str, Any]:
        """What a file of embeddings says of the space.

        Raises:
            UsageError: such files have no word for it.
        """
        raise UsageError(f"embeddings on {type(self).__name__} cannot be stored yet.")

    def in_words(self, dim: int) -> str:
        """The space of points of width `dim`, as a picture names it."""
        return f"{type(self).__name__}, {dim} dimensions"

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

    def expmap0_unprojected(self, v: Tensor) -> Tensor:
        """Exponential map at the origin up to the boundary of a ball, `[..., dim]`."""
        return self.expmap0(v)

    def expmap0_projected(self, v: Tensor) -> Tensor:
        """`expmap0` under its former name."""
        return self.expmap0(v)

    @abstractmethod
    def lift(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """`expmap0(v)` and its logarithm, which is v but for the rim, `[..., dim]`."""

    @abstractmethod
    def clip(self, v: Tensor) -> Tensor:
        """`logmap0(expmap0(v))` in one step, `[..., dim]`."""

    @abstractmethod
    def mobius_add(self, x: Tensor, y: Tensor) -> Tensor:
        """Sum of points, `[..., dim]`."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`project(mobius_add(x, y))`, the sum that models take, `[..., dim]`."""
        return self.project(self.mobius_add(x, y))

    @abstractmethod
    def expmap0_sum(self, u: Tensor, v: Tensor) -> Tensor:
        """`add` of the `expmap0` of vectors u `[..., dim]` and of one v `[dim]`."""

    @abstractmethod
    def conformal_factor(self, x: Tensor) -> Tensor:
        """Length of a tangent vector over its coordinates' norm, `[..., components]`."""

    @abstractmethod
    def transport0(self, y: Tensor, v: Tensor) -> Tensor:
        """Parallel transport of v from the origin to y, `[..., dim]`."""

    @abstractmethod
    def transport0_back(self, x: Tensor, v: Tensor) -> Tensor:
        """Parallel transport of v from x to the origin, `[..., dim]`."""

    @abstractmethod
    def midpoint(self, x: Tensor, weights: Tensor) -> Tensor:
        """Weighted midpoint `[..., dim]` of points `[..., n, dim]` with weights `[..., n]`."""

    def pairwise_dist(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances `[..., n, m]`; the gradient at coincident points is 0."""
        return safe_sqrt(self.pairwise_sqdist(x, y))

    def dist2(self, x: Tensor, y: Tensor, *, keepdim: bool = False) -> Tensor:
        """Squared distance under geoopt's name."""
        squared = self.sqdist(x, y)
        return squared.unsqueeze(-1) if keepdim else squared

    def proju(self, x: Tensor, u: Tensor) -> Tensor:  # noqa: ARG002
        """Every vector of coordinates is tangent."""
        return u
