"""The largest scores of long rows are those that sorting gives, and so are lists of links."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from curvlab.manifolds import Euclidean, Lorentz, Product, Stereographic
from curvlab.metrics.coincidence import coincident_nodes
from curvlab.tasks import likeliest_links as links
from curvlab.tasks.decoders import LINK_DECODERS
from curvlab.tasks.predictions import PredictionQuery
from curvlab.tasks.topk import row_topk

OPTIONS = {"lorentzian": {"margin": 1.0}, "fermi_dirac": {"radius": 2.0, "temperature": 1.0}}


@pytest.mark.parametrize("columns", [1, 9, 90, 1000, 1003, 4999])
@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("different", [2, 30, 10**6])
def test_the_largest_of_long_rows(columns, count, different):
    count = min(count, columns)
    generator = torch.Generator().manual_seed(columns + count)
    values = torch.randint(different, (5, columns), generator=generator).float()
    values[0, : columns // 2] = -torch.inf
    best, places = row_topk(values, count)
    assert torch.equal(best, values.sort(dim=1, descending=True).values[:, :count])
    assert torch.equal(values.gather(1, places), best)
    assert all(len({*row}) == count for row in places.tolist())


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


SPACES = {
    "flat": (Euclidean(), 1.0),
    "lorentz": (Lorentz(kappa=-1.0), 1.0),
    "lorentz, far out": (Lorentz(kappa=-1.0), 12.0),
    "disk": (Stereographic(1, kappa=-1.0), 1.0),
    "disk, far out": (Stereographic(1, kappa=-1.0), 9.0),
    "sphere": (Stereographic(1, kappa=0.5), 0.5),
    "disk and sphere": (Stereographic(2, kappa=(-1.0, 0.5)), 0.5),
    "flat and sphere to its antipode": (Stereographic(2, kappa=(0.0, 0.5)), 9.0),
    "three factors": (Product("H2xE2xS2"), 1.0),
}
NODES = 400


def clouds(radius):
    """A cloud, few places with many nodes, a small cloud far from the origin, and two of them."""
    generator = torch.Generator().manual_seed(0)
    tangent = torch.randn(NODES, 6, generator=generator)
    tangent *= radius / tangent.norm(dim=1, keepdim=True)
    tangent[:40] *= 1e-3
    tangent[40:80] = tangent[80:120] + 1e-6  # neighbours that float32 products cannot order
    tangent[120:130] = tangent[130]  # coincident nodes
    yield tangent
    yield tangent[torch.randint(120, 300, (NODES,), generator=generator)]
    yield tangent[-1:] + 1e-3 * tangent
    sides = torch.arange(NODES)[:, None] % 2 * 2 - 1
    yield sides * tangent[-1:] + 1e-4 * tangent


def check_links(found, scores):
    """Compare lists with the five largest of each row of scores, minus infinity where hidden."""
    expected = scores.topk(5, dim=1).values
    neighbours, listed, ranks = (
        torch.tensor(found[column].astype(kind).to_numpy()).view(NODES, 5)
        for column, kind in [("neighbour", int), ("score", float), ("rank", float)]
    )
    assert found["node"].tolist() == [str(row) for row in range(NODES) for _ in range(5)]
    assert all(len({*row}) == 5 for row in neighbours.tolist())
    torch.testing.assert_close(listed, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(scores.gather(1, neighbours), listed, rtol=1e-5, atol=1e-5)
    exact = (listed == expected.float()).all(1)  # their ties are known
    assert exact.float().mean() > 0.9
    better = (scores.float().unsqueeze(1) > listed.unsqueeze(2)).sum(2)
    tied = (scores.float().unsqueeze(1) == listed.unsqueeze(2)).sum(2)
    torch.testing.assert_close(ranks[exact], (better + (tied + 1) / 2)[exact].double())


@pytest.mark.parametrize("name", SPACES)
def test_links_are_those_of_sorted_scores(name, monkeypatch):
    """Also where they are screened, and where an answer is tied with nodes that are not listed."""
    space, radius = SPACES[name]
    generator = torch.Generator().manual_seed(1)
    edges = torch.randint(NODES, (2, 1000), generator=generator)
    graph = Data(edge_index=edges, num_nodes=NODES)
    decoder = LINK_DECODERS["fermi_dirac"](space, **OPTIONS["fermi_dirac"])
    certain = []
    monkeypatch.setattr(links, "ENTRIES", 70 * NODES)
    monkeypatch.setattr(links, "SCREEN_FACTOR", 9)
    are_certain = links.Answers.are_certain

    def counted(*args):
        certain.append(are_certain(*args))
        return certain[-1]

    monkeypatch.setattr(links.Answers, "are_certain", counted)
    for tangent in clouds(radius):
        points = space.expmap0(F.pad(tangent.double(), (space.codimension, 0)))
        run = SimpleNamespace(
            ids=lambda _: [*map(str, range(NODES))],
            embed=lambda _: points,  # noqa: B023
            data=SimpleNamespace(graph=graph),
            space=space,
        )
        wide = points[coincident_nodes(points)]
        scores = decoder(wide.unsqueeze(1), wide)
        scores.fill_diagonal_(-torch.inf)
        for known in (True, False):
            query = PredictionQuery(k=5, known=known)
            found = links.likeliest_links(run, None, query, decoder, decoder.pairwise_scores)
            if not known:
                scores[edges[0], edges[1]] = scores[edges[1], edges[0]] = -torch.inf
            check_links(found, scores)
    assert torch.cat(certain).any()
    assert not torch.cat(certain).all()
