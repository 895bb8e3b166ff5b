"""Options of a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curvlab.options import NonNegativeInt, PositiveInt


@dataclass
class StudyOptions:
    """The same models in several spaces, with the same widths, seeds, steps, splits and trials.

    Attributes:
        spaces: name of each kind of space: lists of words that choose one; the first that a model
            can be built with is its space of this kind.
        models: that are compared with themselves, choices of `model=`.
        seeds: runs of each model in each space, from `seed` on; the tests pair them.
        steps: of training; null: the task's own.
        dim: width of every model; null: each model's own.
        trials: combinations of `values` that each model has tried in each space, all the same ones,
            on a seed of their own; 0: none.
        values: key of the configuration: values that trials choose from.
        words: that every run has, where the command line does not say otherwise.
        cuts: the best curved space and the flat one are also tried at `dim` divided by each of
            these.
    """

    spaces: Mapping[str, Any]
    models: Sequence[str] = ("fpst", "kappa_gcn")
    seeds: PositiveInt = 6
    steps: PositiveInt | None = 300
    dim: PositiveInt | None = None
    trials: NonNegativeInt = 0
    values: Mapping[str, Any] | None = None
    words: Sequence[str] = ()
    cuts: Sequence[PositiveInt] = (2, 4)
