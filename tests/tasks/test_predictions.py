"""The largest scores of long rows, and their ranks, are those that sorting gives."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from curvlab.manifolds import Euclidean, Lorentz, Stereographic
from curvlab.metrics.ranking import ranks_among
from curvlab.tasks import predictions
from curvlab.tasks.decoders import LINK_DECODERS
from curvlab.tasks.largest import largest_of_rows, ranks_of_best
from curvlab.tasks.link_screen import LinkScreen
from curvlab.tasks.predictions import PredictionQuery, likeliest_links

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


SPACES = {
    "flat": (Euclidean(), 1.0),
    "lorentz": (Lorentz(kappa=-1.0), 1.0),
    "lorentz, far out": (Lorentz(kappa=-1.0), 12.0),
    "disk": (Stereographic(1, kappa=-1.0), 1.0),
    "disk, far out": (Stereographic(1, kappa=-1.0), 9.0),
    "sphere": (Stereographic(1, kappa=0.5), 0.5),
    "product": (Stereographic(2, kappa=(-1.0, 0.5)), 0.5),
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", SPACES)
def test_screened_links_are_those_of_all_scores(name, known, monkeypatch):
    space, radius = SPACES[name]
    generator = torch.Generator().manual_seed(0)
    tangent = torch.randn(1200, 6, generator=generator)
    tangent *= radius / tangent.norm(dim=1, keepdim=True)
    tangent[:40] *= 1e-3
    tangent[40:80] = tangent[80:120] + 1e-6  # neighbours that float32 products cannot order
    tangent[120:130] = tangent[130]  # coincident nodes
    points = space.expmap0(F.pad(tangent, (space.codimension, 0)))
    edges = torch.randint(1200, (2, 5000), generator=generator)
    graph = Data(edge_index=edges, num_nodes=1200)
    run = SimpleNamespace(
        ids=lambda _: [*map(str, range(1200))],
        embed=lambda _: points,
        data=SimpleNamespace(graph=graph),
        space=space,
    )
    decoder = LINK_DECODERS["fermi_dirac"](space, **OPTIONS["fermi_dirac"])
    words = run, None, PredictionQuery(k=5, known=known), decoder, decoder.pairwise_scores
    monkeypatch.setattr(predictions, "ENTRIES", 200 * 1200)
    sure = []
    best = LinkScreen.best

    def counted(*args):
        answer = best(*args)
        sure.append(answer[-1])
        return answer

    monkeypatch.setattr(LinkScreen, "best", counted)
    found = likeliest_links(*words)
    monkeypatch.setattr(predictions, "SCREENED", 1200)
    expected = likeliest_links(*words)
    assert len(found) == len(expected) == 6000
    torch.testing.assert_close(
        torch.tensor(found["score"].to_numpy()), torch.tensor(expected["score"].to_numpy())
    )
    tied = expected.duplicated(["node", "score"], keep=False)
    columns = ["node", "neighbour", "rank", "known"]
    assert found.loc[~tied, columns].equals(expected.loc[~tied, columns])
    assert found["rank"].equals(expected["rank"])
    assert bool(sure) == (name != "product")
    if name in ("flat", "lorentz", "disk", "sphere"):
        assert 0.8 < torch.cat(sure).float().mean() < 1
