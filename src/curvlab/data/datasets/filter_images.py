"""Images on a grid, filtered by two spectral filters: the targets of filter regression."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge
from numpy.polynomial.chebyshev import chebinterpolate
from scipy.io import loadmat
from torch_geometric.data import Data
from torch_geometric.utils import grid

from curvlab.checked import CheckedFields
from curvlab.data.files.sources import fetch
from curvlab.data.transforms.graph import normalised_adjacency_matrix
from curvlab.errors import UsageError
from curvlab.graph.polynomials import polynomials
from curvlab.options import FilterPair, NonNegativeInt, Passed

Filter = Callable[[np.ndarray], np.ndarray]

DEGREE = 64
"""Degree of the Chebyshev expansion: the filters below are exact to 1e-13 from degree 60 on."""

BORDER = 2
"""Pixels at each side of a generated grid that are not scored, as the file's mask has it."""

IMAGES = (
    "FilterImages/raw/2Dgrid.mat",
    "https://raw.githubusercontent.com/ivam-he/BernNet/main/Learning_filters/2Dgrid.mat",
    "0df971bd4392136887f4147112dc8aff13608bab545b66b07b1d35d41eeb566f",
)
"""Path, address and SHA-256 of BernNet's fifty images."""


def _band(sharpness: float, centre: float, rejects: bool = False) -> Filter:
    """`exp(-sharpness (l - centre)^2)` of an eigenvalue l, or 1 minus that."""

    def response(eigenvalue: np.ndarray) -> np.ndarray:
        passed = np.exp(-sharpness * (eigenvalue - centre) ** 2)
        return 1 - passed if rejects else passed

    return response


FILTERS: dict[FilterPair, tuple[Filter, Filter]] = {
    "mixed_low_pass": (_band(5, 0), _band(20, 0)),
    "mixed_high_pass": (_band(5, 0, True), _band(20, 0, True)),
    "mixed_band_pass": (_band(5, 1), _band(20, 1)),
    "mixed_rejection_pass": (_band(5, 1, True), _band(20, 1, True)),
    "low_high_pass": (_band(10, 0), _band(10, 0, True)),
    "band_rejection_pass": (_band(10, 1), _band(10, 1, True)),
}
"""Functions of a Laplacian eigenvalue, for pixels below 0.5 and for the others.

PolyFormer, Table 10, whose last two rows are swapped: these fit the text and the published numbers.
"""


class FilterImages(CheckedFields):
    """One grey image on a grid of pixels; one of two filters makes the target of each pixel.

    `z_v = (h_a(L) x)_v` where `x_v < 0.5`, else `(h_b(L) x)_v`, L the normalised Laplacian of the
    grid.

    Args:
        filter: pair of filters, one of `FILTERS`.
        image: number of the image, 0 to 49; the paper's numbers are of 15.
        generated: draw an image instead of reading the file.
        side: pixels in a row of a generated image.
        data_dir: folder of raw and processed files.
        mirror: folder with the same layout, used instead of the network.

    Source: PolyFormer, Section 4.1.1 and Appendix D.2, with BernNet's images.
    """

    filter: FilterPair = "low_high_pass"
    image: NonNegativeInt = 15
    generated: bool = False
    side: Annotated[int, Ge(5)] = 100
    data_dir: Passed[str | Path] = "data"
    mirror: Passed[str | Path | None] = None

    def download(self) -> list[Path]:
        return [] if self.generated else [fetch(*IMAGES, self.data_dir, self.mirror)]

    def load(self) -> Data:
        if self.generated:
            edge_index, images, scored = generated_grid(self.side, self.image)
        else:
            edge_index, images, scored = _read(self.download()[0], self.image)
        signal = images.astype(np.float64)
        below, above = (apply_filter(edge_index, signal, f) for f in FILTERS[self.filter])
        target = np.where(images < 0.5, below, above)
        return Data(
            x=torch.from_numpy(images.astype(np.float32)[:, None]),
            target=torch.from_numpy(target.astype(np.float32)),
            scored=torch.from_numpy(scored),
            edge_index=edge_index,
            num_nodes=len(images),
        )


def apply_filter(edge_index: torch.Tensor, signal: np.ndarray, filter_of: Filter) -> np.ndarray:
    """`h(L) x [nodes]` by the Chebyshev expansion of `h(1 + t)` on [-1, 1], with `T_k(L - I) x`."""
    coefficients = chebinterpolate(lambda t: filter_of(1 + t), DEGREE)  # type: ignore[type-var]
    adjacency = normalised_adjacency_matrix(edge_index, len(signal))
    terms = polynomials("cheb", DEGREE, signal, adjacency.__matmul__)
    return sum(c * term for c, term in zip(coefficients, terms, strict=True))


def generated_grid(side: int, image: int) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Edges of a grid, a smooth image from 0 to 1 drawn by the seed `image`, and scored pixels."""
    generator = np.random.default_rng(image)
    y, x = np.mgrid[:side, :side] / side
    waves = generator.normal(size=(12, 2)) * 2
    phases = generator.uniform(0, 2 * np.pi, 12)
    field = sum(
        np.cos(2 * np.pi * (kx * x + ky * y) + phase)
        for (kx, ky), phase in zip(waves, phases, strict=True)
    )
    field += 0.3 * generator.normal(size=field.shape)
    ranks = (field - field.min()) / (field.max() - field.min())
    scored = np.zeros((side, side), dtype=bool)
    scored[BORDER:-BORDER, BORDER:-BORDER] = True
    edges, _ = grid(side, side)
    diagonal = (edges[0] - edges[1]).abs()
    straight = (diagonal == 1) | (diagonal == side)  # PyTorch Geometric's grid has diagonals, loops
    return edges[:, straight], ranks.ravel(), scored.ravel()


def _read(path: Path, image: int) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    contents = loadmat(path, variable_names=["A", "F", "mask"])
    images = contents["F"]
    if not 0 <= image < images.shape[1]:
        raise UsageError(f"image={image}: {path.name} has images 0 to {images.shape[1] - 1}")
    edges = torch.from_numpy(np.stack(np.nonzero(contents["A"])))
    return edges, images[:, image], contents["mask"].ravel() > 0
