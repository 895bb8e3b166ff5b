"""The largest scores of long rows, and their ranks, are those that sorting gives."""

import pytest
import torch
import torch.nn.functional as F

from curvlab.manifolds import Euclidean, Lorentz, Stereographic
from curvlab.metrics.ranking import ranks_among
from curvlab.tasks.decoders import LINK_DECODERS
from curvlab.tasks.predictions import largest_of_rows, ranks_of_best

OPTIONS = {"lorentzian": {"margin": 1.0}, "fermi_dirac": {"radius": 2.0, "temperature": 1.0}}


@pytest.mark.parametrize("columns", [1, 9, 90, 1000, 1003, 4999])
@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("different", [2, 30, 10**6])
def test_the_largest_of_long_rows_and_their_ranks(columns, count, different):
    count = min(count, columns)
    generator = torch.Generator().manual_seed(columns + count)
    values = torch.randint(different, (5, columns), generator=generator).float()
    values[0, : columns // 2] = -torch.inf
    best, places = largest_of_rows(values, count)
    assert torch.equal(best, values.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(values.gather(1, places), best)
    assert all(len({*row}) == count for row in places.tolist())
    expected = ranks_among(best, values)
    more, _ = largest_of_rows(values, min(count + 1, columns))
    torch.testing.assert_close(ranks_of_best(more, values, count), expected)


@pytest.mark.parametrize(
    ("kind", "space"),
    [
        ("lorentzian", Lorentz(kappa=-1.0)),
        ("lorentzian", Lorentz(kappa=-0.3)),
        ("fermi_dirac", Lorentz(kappa=-1.0)),
        ("fermi_dirac", Euclidean()),
        ("fermi_dirac", Stereographic(2, kappa=(-1.0, 0.7))),
    ],
)
def test_scores_of_all_pairs_are_those_of_single_ones(kind, space):
    generator = torch.Generator().manual_seed(0)
    tangent = torch.randn(12, 8, generator=generator, dtype=torch.float64)
    tangent = F.pad(tangent, (space.codimension, 0))
    tangent[:4] *= 1e-4  # near the origin
    tangent[8:] *= 2
    x = space.expmap0(tangent)
    decoder = LINK_DECODERS[kind](space, **OPTIONS[kind])
    found = decoder.pairwise_scores(x[:5], x)
    expected = torch.stack([decoder(row.expand_as(x), x) for row in x[:5]])
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
