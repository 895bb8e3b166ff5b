"""What a model asks of the space its points live in, whatever the geometry."""

from abc import abstractmethod
from typing import Any, Protocol

import torch
from torch import Tensor

from curvlab.errors import UsageError
from curvlab.manifolds._geoopt import geoopt
from curvlab.manifolds.trigonometry import safe_sqrt


class EmbeddingSpace(Protocol):
    """What a task asks of the space that embeddings `[..., dim]` lie in: `Space` or `Lorentz`."""

    def logmap0(self, x: Tensor) -> Tensor:
        """Logarithm at the origin; on the Lorentz model without its zero time part."""

    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distance, `[...]`."""

    def dist(self, x: Tensor, y: Tensor, *, keepdim: bool = False) -> Tensor:
        """Distance, `[...]`."""

    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distances `[..., n, m]` of points `[..., n, dim]` and `[..., m, dim]`."""


class Space(geoopt.Manifold):
    """A product of `components` equal blocks of coordinates; points are `[..., dim]`.

    Subclasses of geoopt's manifold: `geoopt.ManifoldParameter` and `geoopt.optim` take them. The
    methods below are what models use; those named as in geoopt (`projx`, `egrad2rgrad`, `retr`,
    `transp`, ...) are for its optimisers. Distances in the product are the root of the sum of the
    components' squares.

    Args:
        components: number of blocks that the last axis is split into.
    """

    ndim = 1
    reversible = False

    def __init__(self, components: int = 1) -> None:
        super().__init__()
        if components < 1:
            raise UsageError(f"A space needs at least one component, not {components}.")
        self.components = components

    __repr__ = torch.nn.Module.__repr__

    def extra_repr(self) -> str:
        """Show the number of blocks."""
        return f"components={self.components}"

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

    @abstractmethod
    def expmap0(self, v: Tensor) -> Tensor:
        """Exponential map at the origin, `[..., dim]`."""

    @abstractmethod
    def expmap0_projected(self, v: Tensor) -> Tensor:
        """`project(expmap0(v))` in one step, `[..., dim]`."""

    @abstractmethod
    def logmap0(self, x: Tensor) -> Tensor:
        """Logarithm at the origin, `[..., dim]`."""

    @abstractmethod
    def lift(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """`expmap0_projected(v)` and its logarithm, which is v but for the rim, `[..., dim]`."""

    @abstractmethod
    def clip(self, v: Tensor) -> Tensor:
        """`logmap0(expmap0_projected(v))` in one step, `[..., dim]`."""

    @abstractmethod
    def mobius_add(self, x: Tensor, y: Tensor) -> Tensor:
        """Sum of points, `[..., dim]`."""

    @abstractmethod
    def project(self, x: Tensor) -> Tensor:
        """Points moved to where the arithmetic is safe, `[..., dim]`."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`project(mobius_add(x, y))`, the sum that models take, `[..., dim]`."""
        return self.project(self.mobius_add(x, y))

    @abstractmethod
    def expmap0_sum(self, u: Tensor, v: Tensor) -> Tensor:
        """`add` of the `expmap0_projected` of vectors u `[..., dim]` and of one v `[dim]`."""

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
    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared geodesic distance in the product, `[...]`."""

    @abstractmethod
    def dist(self, x: Tensor, y: Tensor, *, keepdim: bool = False) -> Tensor:
        """Geodesic distance in the product, `[...]`."""

    @abstractmethod
    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        """Squared distances `[..., n, m]` of points `[..., n, dim]` and `[..., m, dim]`."""

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

    def projx(self, x: Tensor) -> Tensor:
        """Projection of points under geoopt's name."""
        return self.project(x)

    def retr(self, x: Tensor, u: Tensor) -> Tensor:
        """Retraction: the exponential map, which costs little more and is exact."""
        return self.expmap(x, u)

    def proju(self, x: Tensor, u: Tensor) -> Tensor:  # noqa: ARG002
        """Every vector of coordinates is tangent."""
        return u

    def origin(
        self, *size: int, dtype: torch.dtype | None = None, device: Any = None, seed: int = 42
    ) -> Tensor:
        """The origin, as a manifold tensor of the given size."""
        del seed  # the origin is not random; geoopt's signature has it
        return geoopt.ManifoldTensor(torch.zeros(*size, dtype=dtype, device=device), manifold=self)

    def random_normal(
        self,
        *size: int,
        std: float = 1.0,
        dtype: torch.dtype | None = None,
        device: Any = None,
    ) -> Tensor:
        """Exponential map of normal tangent vectors at the origin, as a manifold tensor."""
        v = std * torch.randn(*size, dtype=dtype, device=device)
        return geoopt.ManifoldTensor(self.expmap0_projected(v), manifold=self)

    random = random_normal
