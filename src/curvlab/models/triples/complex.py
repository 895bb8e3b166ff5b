"""ComplEx, "Complex embeddings for simple link prediction".

Trouillon et al. 2016, arXiv:1606.06357.
"""

from typing import Any

from torch import Tensor

from curvlab.models.triples.distmult import DistMult
from curvlab.models.triples.planes import check_even, complex_product


class ComplEx(DistMult):
    """score(h, r, t) = Re sum_i h_i r_i conj(t_i) of complex vectors of dim / 2 numbers.

    The first half of an embedding is the real, the second the imaginary part.

    Args:
        num_entities: number of entities.
        num_relations: number of relations.
        **options: those of `DistMult`; the width is even.
    """

    def __init__(self, num_entities: int, num_relations: int, **options: Any) -> None:
        super().__init__(num_entities, num_relations, **options)
        check_even(self.dim)

    def combine(self, head: Tensor, relation: Tensor) -> Tensor:
        """Real and imaginary part of h r, whose product with those of t is Re(h r conj(t))."""
        return complex_product(head, relation)
