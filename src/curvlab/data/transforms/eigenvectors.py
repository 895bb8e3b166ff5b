"""Eigenvectors of normalised adjacencies that do not depend on the solver."""

from functools import partial

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

DENSE_EIGEN_NODES = 512  # below this, a dense solver is faster than Lanczos iterations
LANCZOS_SEED = 0
SAME_EIGENVALUE = 1e-8  # eigenvalues closer than this count as a repeated one


def smallest_eigenvectors(adjacency: csr_array, k: int) -> np.ndarray:
    """The eigenvectors of all components with the k smallest Laplacian eigenvalues."""
    count, component = connected_components(adjacency, directed=False)
    order = np.argsort(component, kind="stable")
    ends = np.cumsum(np.bincount(component, minlength=count))
    members = np.split(order, ends)[:count]
    solved = []
    for nodes in members:
        matrix = adjacency[nodes][:, nodes]
        size = min(k, len(nodes))
        dense = len(nodes) <= DENSE_EIGEN_NODES or size > len(nodes) // 4
        solved.append(largest_eigenpairs(matrix, size, dense))
    # Rounding makes the components' trivial eigenvalues, all 0, differ in the last digits.
    values = np.concatenate([np.round(1 - values, 10) for values, _ in solved])
    owner = np.repeat(np.arange(count), [len(values) for values, _ in solved])
    column = np.concatenate([np.arange(len(values)) for values, _ in solved])
    result = np.zeros((adjacency.shape[0], k))
    for position, best in enumerate(np.argsort(values, kind="stable")[:k]):
        part = owner[best]
        _, vectors = solved[part]
        result[members[part], position] = _fix_sign(vectors[:, column[best]])
    return result


def largest_eigenpairs(matrix: csr_array, k: int, dense: bool) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, descending, and eigenvectors that do not depend on the solver.

    The basis of a repeated eigenvalue is a pivoted Cholesky factor of the projector on its space.
    """
    nodes = matrix.shape[0]
    values, vectors = _solve(matrix, k, dense)
    all_values = values
    all_vectors = vectors
    while len(all_values) < nodes and all_values[k - 1] - all_values[-1] < SAME_EIGENVALUE:
        # The last space may go on.
        all_values, all_vectors = _solve(matrix, min(2 * len(all_values), nodes), dense)
    if len(all_values) > k and all_values[k - 1] - all_values[k] < SAME_EIGENVALUE:
        values = all_values
        vectors = all_vectors
    starts = np.flatnonzero(values[:-1] - values[1:] >= SAME_EIGENVALUE) + 1
    for space in np.split(np.arange(len(values)), starts):
        basis = _canonical if len(space) > 1 else _fix_sign
        vectors[:, space] = basis(vectors[:, space])
    return values[:k], vectors[:, :k]


def _solve(matrix: csr_array, k: int, dense: bool) -> tuple[np.ndarray, np.ndarray]:
    nodes = matrix.shape[0]
    if dense or k == nodes:
        values, vectors = eigh(
            matrix.toarray(), subset_by_index=(nodes - k, nodes - 1), overwrite_a=True
        )
    else:
        values, vectors = _lanczos(matrix, k)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _lanczos(matrix: csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues and eigenvectors of a matrix whose eigenvalues are in [-1, 1]."""
    nodes = matrix.shape[0]
    start = np.random.default_rng(LANCZOS_SEED).standard_normal(nodes)
    # rng draws the vector from which the iteration starts again where eigenvalues repeat.
    solve = partial(
        eigsh, which="LA", ncv=min(nodes, max(2 * k + 1, 20)), v0=start, rng=LANCZOS_SEED
    )
    values, vectors = solve(matrix, k)
    while True:
        # Lanczos iterations can miss a copy of a repeated eigenvalue: the largest that is left.
        rest = LinearOperator(matrix.shape, lambda x: matrix @ x - 2 * vectors @ (vectors.T @ x))
        (missed,), vector = solve(rest, 1)
        last = values.argmin()
        if missed < values[last] + SAME_EIGENVALUE:
            return values, vectors
        values[last] = missed
        vectors[:, last] = vector[:, 0]


def _canonical(vectors: np.ndarray) -> np.ndarray:
    """A basis of the space of orthonormal columns `[nodes, m]`, see `largest_eigenpairs`."""
    residual = vectors.copy()
    basis = np.empty_like(vectors)
    for column in basis.T:
        length = (residual**2).sum(axis=1)
        pivot = np.argmax(length >= (1 - 1e-6) * length.max())
        direction = residual[pivot] / np.sqrt(length[pivot])
        column[:] = residual @ direction
        residual -= np.outer(column, direction)
    return basis


def _fix_sign(vector: np.ndarray) -> np.ndarray:
    magnitude = np.abs(vector)
    leading = np.argmax(magnitude >= (1 - 1e-6) * magnitude.max())
    return vector * np.sign(vector[leading])
