"""The real graphs have the specifications' statistics, their splits the stated sizes and sums."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.labelled import GIVEN_MASKS
from curvlab.data.splits.nodes import PARTS
from curvlab.data.transforms.features import DegreeFeatures
from curvlab.tables.runs import PUBLISHED_SPLITS
from graphs import is_simple

# Nodes, directed entries after cleaning, features, classes, as the papers' specifications state.
STATED = {
    "cora": (2708, 10556, 1433, 7),
    "citeseer": (3327, 9104, 3703, 6),
    "texas": (183, 2 * (295 - 16), 1703, 5),
    "cornell": (183, 2 * (280 - 3), 1703, 5),
    "wisconsin": (251, 2 * (466 - 16), 1703, 5),
    "actor": (7600, 2 * (26752 - 93), 932, 5),
    "airport": (3188, 2 * 18630, 4, 4),
    "chameleon": (890, 17708, 2325, 5),
    "squirrel": (2223, 93996, 2089, 5),
    "minesweeper": (10000, 78804, 7, 2),
    "tolokers": (11758, 1038000, 10, 2),
}


def sizes(data):
    return tuple(int(data[part].sum()) for part in PARTS)


def sums(data):
    return tuple(int(data[part].nonzero().sum()) for part in PARTS)


@pytest.fixture
def real(source, mirror):
    """`real(name)`: a graph from the mirror."""

    def load(name, **changes):
        changes = {f"source.{key}": value for key, value in changes.items()}
        return source(name, mirror, **changes).load()

    return load


@pytest.mark.parametrize("name", STATED)
def test_statistics_and_a_simple_graph(name, real):
    data = real(name)  # asserts the configuration's statistics
    found = (data.num_nodes, data.num_edges, data.num_features, int(data.y.max()) + 1)
    assert found == STATED[name]
    assert data.x.dtype == torch.float32
    assert data.y.dtype == torch.int64
    assert not data.x.is_sparse
    assert is_simple(data)


@pytest.mark.parametrize("name", ["chameleon", "squirrel", "minesweeper", "tolokers", "actor"])
def test_graphs_with_a_split_for_each_seed_have_ten(name, real):
    data = real(name)
    assert {data[part].shape[1] for part in GIVEN_MASKS} == {PUBLISHED_SPLITS}


def test_citeseer_keeps_its_isolated_nodes_and_empty_rows(real):
    data = real("citeseer")
    assert data.num_nodes - len(data.edge_index.unique()) == 48
    assert (data.x.sum(dim=1) == 0).sum() == 15


def test_features_of_airport_are_hgcns_eleven(real):
    x = DegreeFeatures(max_degree=5, row_normalise=False)(real("airport")).x
    assert x.shape == (3188, 11)
    assert x[:, 4:10].sum(dim=0).tolist() == [4, 713, 635, 386, 217, 1233]
    assert x[:, 10].eq(1).all()
    assert x[:, :4].abs().max() > 0.1


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("cora", "public", (140, 500, 1000)),
        ("citeseer", "public", (120, 500, 1000)),
        ("texas", "fpst", (109, 37, 37)),
        ("cornell", "fpst", (109, 37, 37)),
        ("wisconsin", "fpst", (151, 50, 50)),
        ("wisconsin", "geom_gcn", (120, 80, 51)),
        ("actor", "geom_gcn", (3648, 2432, 1520)),
        ("actor", "fpst", (4560, 1520, 1520)),
        ("chameleon", "given", (409, 287, 194)),
        ("squirrel", "given", (1053, 718, 452)),
        ("minesweeper", "given", (5000, 2500, 2500)),
        ("tolokers", "given", (5879, 2939, 2940)),
        ("citeseer", "random_per_class", (120, 500, 1000)),
        ("airport", "random_70_15_15", (2232, 478, 478)),
    ],
)
def test_sizes_of_splits(name, kind, expected, real, split):
    data = split(kind)(real(name), 0)
    assert sizes(data) == expected
    assert sum(data[part].int() for part in PARTS).max() == 1


def test_public_training_nodes_are_the_first_twenty_of_each_class(real, split):
    data = split("public")(real("cora"), seed=5)
    assert data.y[data.train_mask].bincount().tolist() == [20] * 7
    assert data.y[data.test_mask].bincount().tolist() == [130, 91, 144, 319, 149, 103, 64]
    assert sums(data)[0] == sum(range(140))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cora", (196831, 663716, 1339962)), ("citeseer", (191298, 832950, 1687935))],
)
def test_twenty_nodes_of_each_class_are_those_of_hypformers_code(name, expected, real, split):
    """Sums of the indices of the parts that its `class_rand_splits` draws with seed 123."""
    assert sums(split("random_per_class")(real(name), seed=5)) == expected


def test_the_ten_given_splits_follow_the_runs_seed(real, split):
    chameleon = real("chameleon")
    trained = [int(split("given")(chameleon, seed).train_mask.sum()) for seed in range(10)]
    assert trained == [409, 427, 422, 412, 440, 434, 418, 421, 431, 426]
    fixed = split("given", draw=4)(chameleon, seed=0)
    assert int(fixed.train_mask.sum()) == 440


QUOTA = {  # sums of the indices of the parts, by published seed
    "citeseer": [(3293823, 1054305, 1184673), (3170385, 1159025, 1203391)],
    "coauthor_cs": [(82563341, 34232681, 51244256), (82887546, 33975664, 51177068)],
    "coauthor_physics": [(319926931, 119846431, 155092916), (320286251, 119036831, 155543196)],
}
QUOTA_SIZES = {
    "citeseer": (1929, 665, 733),
    "coauthor_cs": (9105, 3667, 5561),
    "coauthor_physics": (18689, 6899, 8905),
}
FIRST = {
    "citeseer": [0, 1, 3, 7, 8],
    "coauthor_cs": [1, 2, 4, 5, 7],
    "coauthor_physics": [2, 3, 4, 5, 11],
}
NEVER_TESTED = {"citeseer": {0}, "coauthor_cs": {0, 1, 3, 6, 9, 12}, "coauthor_physics": {3, 4}}


@pytest.mark.parametrize(
    "name",
    ["citeseer"]
    + [pytest.param(f"coauthor_{name}", marks=pytest.mark.nightly) for name in ("cs", "physics")],
)
def test_quota_split_node_by_node(name, real, split):
    graph = real(name)
    words = {"citeseer": 105165, "coauthor_cs": 1092079, "coauthor_physics": 1137311}
    assert int(graph.x.count_nonzero()) == words[name]
    del graph.x  # more than a gigabyte, which splits would copy
    for seed, expected in enumerate(QUOTA[name]):
        data = split("quota")(graph, seed)
        assert sizes(data) == QUOTA_SIZES[name]
        assert sums(data) == expected
        tested = set(data.y[data.test_mask].unique().tolist())
        assert set(range(int(data.y.max()) + 1)) - tested == NEVER_TESTED[name]
        if seed == 0:
            assert data.train_mask.nonzero().flatten()[:5].tolist() == FIRST[name]


@pytest.mark.parametrize(
    ("draw", "expected", "leaked", "leaked_val"),
    [(1234, (2691, 505, 506), 225, 246), (1000, (2666, 507, 504), 229, None)],
)
def test_hgcns_split_of_airport_leaks_as_published_and_says_so(
    draw, expected, leaked, leaked_val, real, split, caplog
):
    data = split("hgcn", draw=draw)(real("airport"), seed=0)
    assert sizes(data) == expected
    assert int((data.train_mask & data.test_mask).sum()) == leaked
    assert f"{leaked} of {expected[2]} test nodes" in caplog.text
    if leaked_val is not None:
        assert int((data.train_mask & data.val_mask).sum()) == leaked_val
        assert int((data.test_mask & data.val_mask).sum()) == 43
        assert f"{leaked_val} of {expected[1]} validation nodes" in caplog.text
    twice = data.y[data.train_mask & (data.test_mask | data.val_mask)].unique()
    assert twice.tolist() == [2, 3]


def test_hgcns_split_of_disease_is_balanced_and_disjoint(mirror, split, caplog):
    y = torch.from_numpy(np.load(mirror / "HGCN/disease_nc/raw/disease_nc.labels.npy")).long()
    data = split("hgcn", dataset="disease")(Data(y=y, num_nodes=len(y)), seed=0)
    assert sizes(data) == (748, 42, 254)
    assert [int(y[data[part]].sum()) for part in PARTS] == [63, 21, 127]
    assert sum(data[part].int() for part in PARTS).tolist() == [1] * 1044
    assert caplog.text == ""


def test_the_unfiltered_graphs_are_the_larger_ones(real):
    assert real("chameleon", filtered=False).num_nodes == 2277
    assert real("squirrel", filtered=False).num_edges == 2 * 198353
