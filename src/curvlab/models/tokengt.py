"""TokenGT (Kim et al. 2022, arXiv:2207.02505) with kernelised attention, FPS-T's flat twin."""

from typing import Any

from curvlab.manifolds import Euclidean
from curvlab.models.fpst import FPST
from curvlab.options import SpaceMaker


class TokenGT(FPST):
    """FPS-T on the Euclidean space, on which no map is computed.

    Args:
        in_channels: number of input features.
        manifold: makes the Euclidean space.
        **options: those of `FPST`.

    Source: TokenGT (Kim et al. 2022), as the baseline of FPS-T's Section 5.
    """

    revision = 2  # 2: as `Encoder`; flat space has no other side

    def __init__(
        self, in_channels: int, manifold: SpaceMaker[Euclidean] = Euclidean, **options: Any
    ) -> None:
        super().__init__(in_channels, manifold, **options)
