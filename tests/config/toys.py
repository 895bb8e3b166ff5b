"""Classes of another package that configurations of these tests name."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, Interval

from curvlab.manifolds import Lorentz
from curvlab.options import Dropout, FromData, Incidental, Passed, PositiveInt, SpaceMaker

Speed = Annotated[float, Interval(gt=0, lt=3)]


class Base:
    """A base.

    Args:
        dim: width of
            everything.
        weight: of nothing; -0.5 is as good.
    """

    whole_graph = True

    def __init__(self, dim: Annotated[int, Ge(4)] = 16, weight: float = -0.5) -> None: ...


class Toy(Base):
    """A toy.

    Args:
        in_channels: features.
        layer: makes a layer.
        kind: of toy.
        speed: of the toy.
        widths: of layers.
    """

    revision = 3

    def __init__(
        self,
        in_channels: int,
        num_classes: FromData[int] = 2,
        space: SpaceMaker[Lorentz] = Lorentz,
        components: Passed[PositiveInt] = 1,
        layer: Callable[..., Any] | None = None,
        kind: Literal["a", "b"] | None = "a",
        speed: Speed = 1.5,
        dropout: Dropout = 0.0,
        widths: Sequence[PositiveInt] = (8, 8),
        threads: Incidental[PositiveInt | None] = None,
        **options: Any,
    ) -> None: ...
