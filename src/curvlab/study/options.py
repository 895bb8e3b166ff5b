"""Options of a study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curvlab.options import PositiveInt


@dataclass
class StudyOptions:
    """The same models in several spaces, with the same widths, seeds, steps and splits.

    Attributes:
        spaces: name of each kind of space: lists of overrides that choose one; the first that a
            model can be built with is its space of this kind.
        models: that are compared with themselves, choices of `model=`.
        seeds: runs of each model in each space, from `seed` on; the tests pair them.
        steps: of training; null: the task's own.
        dim: width of every model; null: each model's own.
        words: overrides that every run has, where the command line does not say otherwise.
    """

    spaces: Mapping[str, Any]
    models: Sequence[str] = ("fpst", "kappa_gcn")
    seeds: PositiveInt = 6
    steps: PositiveInt | None = 300
    dim: PositiveInt | None = None
    words: Sequence[str] = ()
