"""Options of a search."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curvlab.options import PositiveFloat, PositiveInt


@dataclass
class SearchOptions:
    """A search of hyperparameters.

    Attributes:
        trials: combinations of values, pruned ones among them; a larger number goes on.
        minutes: of training, in all; null: no limit.
        seeds: of the runs whose mean best validation score is maximised.
        sampler: proposes values; its seed is the run's.
        pruner: ends combinations early, by the best score of the first run as it goes and by the
            mean before each other run; null: never.
        space: key of the configuration: its values; null: not searched.
    """

    sampler: Callable[..., Any]
    space: Mapping[str, Any]
    trials: PositiveInt = 100
    minutes: PositiveFloat | None = None
    seeds: Sequence[int] = (0, 1, 2)
    pruner: Callable[..., Any] | None = None
