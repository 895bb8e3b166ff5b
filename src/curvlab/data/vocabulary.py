"""Names of nodes, classes, entities and relations, kept from the files to every output."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch_geometric.data import Data


@dataclass(frozen=True, repr=False)
class Vocabulary:
    """Names in the order of their indices; None where a data set has no names.

    A graph carries it as `data.vocabulary`, which copies and transforms keep.

    Attributes:
        nodes: ids of the nodes, in the order of the rows of `x`.
        classes: names of the classes, in the order of the numbers in `y`.
        entities: names of a knowledge graph's entities.
        relations: names of a knowledge graph's relations as the model numbers them, inverse ones
            last.
        features: names of the columns of `x`.
    """

    nodes: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    entities: Sequence[str] | None = None
    relations: Sequence[str] | None = None
    features: Sequence[str] | None = None

    def __repr__(self) -> str:
        present = {name: names for name, names in vars(self).items() if names is not None}
        counts = [f"{name}: {len(names)}" for name, names in present.items()]
        return f"Vocabulary({', '.join(counts)})"


def vocabulary_of(data: Data) -> Vocabulary:
    """The names that a graph carries, an empty vocabulary without any."""
    return data.get("vocabulary") or Vocabulary()
