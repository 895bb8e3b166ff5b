"""UniFilter, PolyAttn's control in PolyFormer (Ma et al. 2024, arXiv:2407.14459), Table 3."""

from functools import partial
from typing import Any, Literal

from curvlab.layers import SharedCoefficients
from curvlab.models.token_network import TokenMixer


class UniFilter(TokenMixer):
    """One polynomial filter for all nodes, in the place of PolyAttn.

    Args:
        in_channels: number of input features.
        basis: of the polynomials: `mono` (powers) or `cheb` (Chebyshev).
        **options: those of `TokenMixer` and `TokenNetwork`.
    """

    def __init__(
        self, in_channels: int, basis: Literal["mono", "cheb"] = "mono", **options: Any
    ) -> None:
        mixer = partial(SharedCoefficients, basis=basis)
        super().__init__(in_channels, mixer, basis=basis, **options)
