"""Flat space with the interface of the curved spaces."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from curvlab.manifolds.base import GeooptManifold
from curvlab.manifolds.pair_form import PairForm, weighted_form
from curvlab.manifolds.pairwise import squared_differences
from curvlab.options import Passed, PositiveFloat, PositiveInt


class Euclidean(GeooptManifold):
    """R^dim as `components` blocks; every map is the identity or a plain sum.

    Args:
        components: number of blocks; only `split` and the shape of `conformal_factor` depend on it.
        conformal_factor: ratio of distances to |x - y|: 2 is the flat limit of the stereographic
            model, 1 the ordinary Euclidean distance.
    """

    name = "Euclidean"
    reversible = True
    decoders: ClassVar[tuple[str, ...]] = ("linear", "stereographic")

    def __init__(
        self, components: Passed[PositiveInt] = 1, conformal_factor: Passed[PositiveFloat] = 2.0
    ) -> None:
        super().__init__()
        self.components = components
        self.scale = conformal_factor

    expmap0: Callable[..., Tensor] = lambda _, v: v
    logmap0: Callable[..., Tensor] = lambda _, x: x
    add: Callable[..., Tensor] = lambda _, x, y: x + y
    expmap: Callable[..., Tensor] = lambda _, x, u: x + u
    transport0: Callable[..., Tensor] = lambda _, y, v: v  # noqa: ARG005
    transp: Callable[..., Tensor] = lambda _, x, y, v: v  # noqa: ARG005

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return y - x

    def scale_coordinates(self, x: Tensor, factor: Tensor) -> Tensor:
        return x * factor

    def sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        difference = x - y
        return self.scale**2 * torch.linalg.vecdot(difference, difference)

    def pairwise_sqdist(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.scale**2 * squared_differences(x.double(), y.double())).to(x.dtype)

    def pair_form(self, x: Tensor) -> PairForm:
        blocks = x.unsqueeze(1)
        return weighted_form(blocks, torch.ones_like(blocks[..., :1]), None, self.scale**2)

    def picture(self, x: Tensor) -> tuple[Tensor, "Euclidean"]:
        return x, self

    def arrays(self) -> dict[str, Any]:
        return {"conformal_factor": self.scale}

    def conformal_factor(self, x: Tensor) -> Tensor:
        return x.new_full((*x.shape[:-1], self.components), self.scale)

    def inner(
        self, x: Tensor, u: Tensor, v: Tensor | None = None, *, keepdim: bool = False
    ) -> Tensor:
        del x
        product = self.scale**2 * torch.linalg.vecdot(u, u if v is None else v)
        return product.unsqueeze(-1) if keepdim else product

    def component_inner(self, x: Tensor, u: Tensor, v: Tensor | None = None) -> Tensor:
        """factor^2 u v for each coordinate, with which Riemannian Adam equals Adam."""
        del x
        return self.scale**2 * u * (u if v is None else v)

    def egrad2rgrad(self, x: Tensor, u: Tensor) -> Tensor:
        del x
        return u / self.scale**2
