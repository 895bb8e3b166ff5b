"""Values that models derive from a graph once: sparse matrices, sparse features and others.

The graph keeps them (`SparseGraph`) until one of their source tensors is replaced or edited.
"""

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from curvlab.graph.sparse_matrix import SparseMatrix, to_csr
from curvlab.manifolds.kernels import squared_norm, upcast_half

T = TypeVar("T")

SPARSE_BELOW = 0.2
"""Fraction of non-zero features below which a sparse matrix is faster on CPU."""


class Features:
    """Features of a graph `[nodes, features]`, on CPU also sparse if nearly all are 0.

    Features that need a gradient and features on an accelerator are only dense.

    Attributes:
        dense: features as a tensor.
        sparse: features as a sparse matrix; None where that is slower.
    """

    @torch.compiler.disable
    def __init__(self, dense: Tensor) -> None:
        self.dense = dense
        mostly_zero = dense.device.type == "cpu" and dense.dim() == 2 and not dense.requires_grad
        if mostly_zero:
            mostly_zero = int(torch.count_nonzero(dense)) < SPARSE_BELOW * dense.numel()
        self.sparse = SparseMatrix(to_csr(dense)) if mostly_zero else None
        self._squared_norms: Tensor | None = None

    @torch.compiler.disable
    def tensor(self) -> Tensor:
        """The dense features, with a reference to these `Features` for `FeatureLinear`."""
        if self.sparse is None:
            return self.dense
        x = self.dense.detach()
        vars(x)["features"] = self
        return x

    @torch.compiler.disable
    def squared_norms(self) -> Tensor:
        """Squared norms `[nodes, 1]`, computed once unless they need a gradient."""
        if self.dense.requires_grad:
            return squared_norm(upcast_half(self.dense))
        if self._squared_norms is None:
            with torch.inference_mode(False), torch.no_grad():
                self._squared_norms = squared_norm(upcast_half(self.dense))
        return self._squared_norms


def as_features(x: Features | Tensor) -> Features:
    """Return `Features` unchanged; find or make those of a tensor."""
    if isinstance(x, Features):
        return x
    features: Features | None = getattr(x, "features", None)
    return Features(x) if features is None else features


class SparseGraph:
    """Values derived from a graph, kept on the graph; its copies start without them.

    An attribute counts as edited if another tensor has taken its place, or if it was changed in
    place (except through `.data`, which PyTorch does not record).
    """

    def __init__(self, data: Data) -> None:
        self._data = weakref.ref(data)
        self._values: dict[Hashable, tuple[list[_Source], Any]] = {}
        self._origins: dict[str, tuple[Sequence[str], list[_Source]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a pickled graph has its attributes alone

    @staticmethod
    @torch.compiler.disable
    def from_data(data: Data) -> "SparseGraph":
        """Return the sparse graph of a `Data`, which keeps it."""
        attached: SparseGraph | None = getattr(data, "_sparse_graph", None)
        if attached is not None and attached._data() is data:
            return attached
        graph = SparseGraph(data)
        if attached is not None:  # `data` is a copy of that graph, attributes included
            graph._origins.update(attached._origins)
        data._sparse_graph = graph
        return graph

    @staticmethod
    def forget(data: Data) -> None:
        """Forget how attributes of a graph were derived, so that all of them count as given."""
        data._sparse_graph = None

    @property
    def features(self) -> Features:
        """Features `x` of the graph, sparse if nearly all are 0."""
        return self.features_of("x")

    def features_of(self, name: str) -> Features:
        """Features of the nodes in an attribute of the graph, sparse if nearly all are 0."""
        return self.derive(("features", name), (name,), lambda data: Features(data[name]))

    def matrix(self, name: str) -> SparseMatrix:
        """A sparse matrix of the graph, `adj_t` or `normalised_adj`, with its transpose."""
        return self.derive(("matrix", name), (name,), lambda data: SparseMatrix(data[name]))

    @torch.compiler.disable
    def derive(self, key: Hashable, reads: Sequence[str], make: Callable[[Data], T]) -> T:
        """Result of a function of the graph, kept until an attribute that it reads is edited.

        Args:
            key: Name of the function and its options.
            reads: Attributes that the function reads.
            make: The function.
        """
        data, sources = self._sources(reads)
        entry = self._values.get(key)
        if entry is None or not _are_unchanged(entry[0], sources):
            with torch.inference_mode(False):
                entry = sources, make(data)
            self._values[key] = entry
        value: T = entry[1]
        return value

    def remember(self, writes: Sequence[str], reads: Sequence[str]) -> None:
        """Record that attributes of the graph were derived from the current value of others."""
        _, sources = self._sources(reads)
        for name in writes:
            self._origins[name] = reads, sources

    def is_outdated(self, name: str) -> bool:
        """Whether an attribute's sources have been edited; False for an attribute that was given.

        Sources that were only moved or copied are compared, once.
        """
        if name not in self._origins:
            return False
        reads, old_sources = self._origins[name]
        _, sources = self._sources(reads)
        if _are_unchanged(old_sources, sources):
            return False
        if not all(map(_have_equal_values, old_sources, sources)):
            return True
        self._origins[name] = reads, sources
        return False

    def _sources(self, names: Sequence[str]) -> tuple[Data, list["_Source"]]:
        """The graph, and some of its attributes with the number of their changes in place."""
        data = self._data()
        assert data is not None
        values = [data.get(name) for name in names]
        return data, [(value, _version(value)) for value in values]


_Source = tuple[Any, int]


def _version(value: Any) -> int:
    return value._version if isinstance(value, Tensor) and not value.is_inference() else 0


def _are_unchanged(before: list[_Source], now: list[_Source]) -> bool:
    return all(x is y and m == n for (x, m), (y, n) in zip(before, now, strict=True))


def _have_equal_values(before: _Source, now: _Source) -> bool:
    """Whether two sources have equal values, although they are not the same tensor."""
    x, version = before
    y, _ = now
    if x is None or y is None or x.layout != y.layout or x.dtype != y.dtype:
        return x is y
    return _version(x) == version and torch.equal(x.cpu(), y.cpu())
