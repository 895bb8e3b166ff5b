"""Points that are joined to their nearest: the graph, and the two datasets that are made so."""

import io
import pickle
import tarfile

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch_geometric.data import Data

from curvlab.data.files.cleaning import check_graph
from curvlab.data.transforms.nearest_neighbours import nearest_neighbours
from curvlab.errors import UsageError
from written import saved

GROUPS = ["rec.autos", "alt.atheism", "sci.space"]


@pytest.mark.parametrize("neighbours", [2, 5, 40])
def test_the_nearest_are_those_of_all_distances(neighbours):
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    edges = nearest_neighbours(x, neighbours)
    assert edges.shape == (2, 40 * neighbours)
    expected = np.argsort(cdist(x, x), axis=1)[:, :neighbours]
    for node in range(40):
        assert set(edges[1, edges[0] == node].tolist()) == set(expected[node].tolist())
    assert int((edges[0] == edges[1]).sum()) == 40  # each is one of its own nearest


def test_more_neighbours_than_points_are_all_points(caplog):
    assert len(nearest_neighbours(torch.eye(4), 5).unique(dim=1).T) == 4 * 4
    assert "neighbours=5 of 4 points" in caplog.text


@pytest.fixture
def images(put):
    """`images(**changes)` writes a pickle as NodeFormer's, of 3 classes, and returns the points."""

    def write(protocol=4, convert=lambda array: array, **changes):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(3), 8)
        x = (np.eye(3)[y] + 0.1 * rng.standard_normal((24, 3))).astype(np.float32)
        cuts = {"train": slice(0, 9), "val": slice(9, 14), "test": slice(14, 24)}
        content = {f"x_{part}": convert(x[cut]) for part, cut in cuts.items()}
        content |= {f"y_{part}": y[cut] for part, cut in cuts.items()} | changes
        content = {key: value for key, value in content.items() if value is not None}
        put("MiniImageNet/raw/mini_imagenet.pkl", pickle.dumps(content, protocol=protocol))
        return x, y

    return write


SMALL = {"num_nodes": 24, "num_features": 3, "num_classes": 3, "class_counts": [8, 8, 8]}


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("convert", [lambda array: array, torch.from_numpy])
def test_mini_imagenet_files(protocol, convert, tiny, images):
    x, y = images(protocol, convert)
    data = tiny("mini_imagenet", SMALL).load()
    np.testing.assert_array_equal(data.x.numpy(), x)
    assert data.y.tolist() == y.tolist()
    nearest = np.argsort(cdist(x, x), axis=1)[:, :5]
    pairs = {(a, int(b)) for a, row in enumerate(nearest) for b in row if a != b}
    both = sorted(pairs | {(b, a) for a, b in pairs})
    assert list(map(tuple, data.edge_index.T.tolist())) == both


def test_without_a_graph_it_says_so_and_passes_the_checks(tiny, images):
    images()
    data = tiny("mini_imagenet", SMALL, **{"source.neighbours": None}).load()
    check_graph(data)
    assert data.num_edges == 0
    assert data.without_edges
    with pytest.raises(UsageError, match="the graph is empty"):
        check_graph(Data(x=data.x, y=data.y, edge_index=data.edge_index))


def test_a_tensor_inside_which_is_more_than_data_is_refused_and_not_run(tiny, images, harmful):
    class Storage:
        def __reduce__(self):
            return torch.storage._load_from_bytes, (saved(harmful),)

    images(x_val=Storage())
    with pytest.raises(UsageError, match=r"mini_imagenet in .* cannot be read"):
        tiny("mini_imagenet", SMALL).load()


def postings():
    """Texts by their places in the archive; of a group that is not used, too."""
    rng = np.random.default_rng(1)
    words = np.array(["the", "engine", "road", "orbit", "rocket", "faith", "reason", "caf\xe9"])
    texts = {}
    for number, group in enumerate([*GROUPS, "comp.graphics"]):
        for part in ("train", "test"):
            for name in range(6):
                body = " ".join(rng.choice(words, 12, p=np.eye(8)[2 * number + 1] * 0.3 + 0.0875))
                texts[f"20news-bydate-{part}/{group}/{name}"] = f"Subject: {group}\n\n{body}\n"
    return texts


NEWS = {"num_nodes": 36, "num_classes": 3, "class_counts": [12, 12, 12]}


def test_weights_of_words_are_those_of_the_formula(tiny, put):
    """Rows of `n_dw (1 + ln(N / N_w))`, of length 1, in the order of groups, folders and names."""
    texts, archive = postings(), io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in texts.items():
            content = text.encode("latin1")
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    put("Newsgroups20/raw/20news-bydate.tar.gz", archive.getvalue())
    order = [
        texts[f"20news-bydate-{part}/{group}/{name}"].lower()
        for group in sorted(GROUPS)
        for part in ("train", "test")
        for name in range(6)
    ]
    vocabulary = ["atheism", "alt", "autos", "rec", "sci", "space", "subject"]
    vocabulary += ["engine", "road", "orbit", "rocket", "faith", "reason", "caf\xe9"]
    words = [text.replace(".", " ").replace(":", " ").split() for text in order]
    counts = np.array([[text.count(word) for word in sorted(vocabulary)] for text in words])
    x = counts * (1 + np.log(len(order) / (counts > 0).sum(axis=0)))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    groups = {"source.categories": GROUPS, "source.min_share": 0.1}
    data = tiny("newsgroups20", NEWS, **groups).load()
    np.testing.assert_allclose(data.x.numpy(), x, atol=1e-6)
    assert data.y.tolist() == [0] * 12 + [1] * 12 + [2] * 12
