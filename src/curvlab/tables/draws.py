"""Whether runs have the paper's split, a draw of their own, or a draw for each seed."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from curvlab.config.schema import attribute


class Draw(Enum):
    """What the runs of a cell have of a split."""

    none = "no split"
    published = "the published split"
    published_each = "a published split for each seed"
    own = "one draw that is not the paper's"
    own_each = "a draw for each seed"

    @property
    def varies(self) -> bool:
        """Whether runs of other seeds have other splits."""
        return self in (Draw.published_each, Draw.own_each)

    @property
    def comparable(self) -> bool:
        """Whether a mean over the runs can be compared with a number on the paper's split.

        One draw that is not the paper's cannot: how far another one would be is not known.
        """
        return self is not Draw.own


def split_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The split that a run uses: its task's of the edges, or its dataset's of the nodes."""
    of_edges = (config.get("task") or {}).get("split") or {}
    if {"val", "test"} <= of_edges.keys():  # then nothing used the dataset's split of its nodes
        return of_edges
    return config.get("split") or {}


def draw_of(config: Mapping[str, Any]) -> Draw:
    """What a run has of a split, by the class attribute `published` of the split's `_target_`."""
    split = split_of(config)
    if not split:
        return Draw.none
    draw = split.get("draw", 0)  # some, as split=fit, are never drawn
    published = attribute(str(split.get("_target_", "")), "published", False)
    if published is True or (published is not False and published == draw):
        return Draw.published_each if draw is None else Draw.published
    return Draw.own_each if draw is None else Draw.own
