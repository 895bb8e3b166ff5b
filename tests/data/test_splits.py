"""Splits on labels of the test's making: sizes, quotas, proportions, and what is refused."""

import logging

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from curvlab.data.splits.nodes import PARTS, RandomSplit
from curvlab.errors import UsageError


def labelled(counts, shuffled=True):
    """A graph without edges whose classes have so many nodes."""
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    if shuffled:
        y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
    return Data(y=y, num_nodes=len(y))


def with_splits(number, given, nodes=6):
    """A graph that comes with splits; in split i, node i is trained on, the next validates."""
    train, val = torch.eye(nodes)[:, :number], torch.eye(nodes).roll(1, 0)[:, :number]
    data = labelled([nodes // 2, nodes - nodes // 2])
    data.given_train, data.given_val = train.bool(), val.bool()
    data.given_test = ~(data.given_train | data.given_val)
    data.given = given
    return data


def parts(data):
    return [set(data[part].nonzero().flatten().tolist()) for part in PARTS]


def same(first, second):
    return parts(first) == parts(second)


RANDOM = ["random_60_20_20", "random_48_32_20", "random_70_15_15", "fpst"]
DRAWN = [*RANDOM, "random_per_class", "quota", "hgcn"]


@pytest.mark.parametrize("name", DRAWN)
def test_parts_are_disjoint_masks_and_the_draw_decides(name, split):
    data = labelled([900, 800, 900]) if name != "hgcn" else labelled([300, 200])
    first = split(name, draw=0)(data, seed=7)
    for part in PARTS:
        assert first[part].dtype == torch.bool
        assert first[part].shape == (data.num_nodes,)
        assert first[part].any()
    assert sum(first[part].int() for part in PARTS).max() == 1
    assert same(first, split(name, draw=0)(data, seed=8))
    assert not same(first, split(name, draw=1)(data, seed=7))
    assert "train_mask" not in data


@pytest.mark.parametrize("name", [*RANDOM, "quota"])
def test_the_runs_seed_draws_where_nothing_is_fixed(name, split):
    data = labelled([50, 60, 70])
    assert not same(split(name)(data, seed=0), split(name)(data, seed=1))
    assert same(split(name)(data, seed=1), split(name, draw=1)(data, seed=0))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(3, 60), min_size=2, max_size=6),
    st.sampled_from([(0.2, 0.2), (0.32, 0.2), (0.15, 0.15), (0.1, 0.6), (0.45, 0.45)]),
    st.integers(0, 5),
)
def test_stratified_parts_have_every_class_in_proportion_and_exact_sizes(counts, fractions, seed):
    val, test = (round(f * sum(counts)) for f in fractions)
    if min(fractions) * sum(counts) < 1 or val + test >= sum(counts):
        return
    data = RandomSplit(val=fractions[0], test=fractions[1])(labelled(counts), seed)
    assert [len(part) for part in parts(data)] == [sum(counts) - val - test, val, test]
    shares = zip(PARTS, (1 - sum(fractions), *fractions), (2, 1, 1), strict=True)
    for mask, fraction, within in shares:
        inside = torch.bincount(data.y[data[mask]], minlength=len(counts))
        assert (inside - fraction * torch.tensor(counts)).abs().max() <= within + 1e-4


def test_a_class_of_one_node_turns_stratification_off(split, caplog):
    data = labelled([33, 1, 18, 101, 30])  # Texas
    with caplog.at_level(logging.INFO):
        masks = split("random_60_20_20")(data, 0)
    assert "class 1 has only 1 nodes" in caplog.text
    assert [len(part) for part in parts(masks)] == [109, 37, 37]


@pytest.mark.parametrize(("nodes", "expected"), [(183, [109, 37, 37]), (251, [151, 50, 50])])
def test_fpsts_sizes_are_rounded(nodes, expected, split):
    masks = split("fpst")(labelled([nodes - 40, 40]), 0)
    assert [len(part) for part in parts(masks)] == expected


def test_several_labels_a_node_can_be_split_but_not_by_class(split):
    data = Data(y=torch.randint(0, 2, (40, 3)).float(), num_nodes=40)
    assert [len(part) for part in parts(split("fpst")(data, 0))] == [24, 8, 8]
    for name in ("random_60_20_20", "quota", "random_per_class"):
        with pytest.raises(UsageError, match="one class a node"):
            split(name)(data, 0)


def test_quota_takes_the_whole_of_small_classes(split):
    counts = [10, 100, 190]  # 300 nodes: 60 a class
    masks = split("quota")(labelled(counts), 0)
    assert masks.y[masks.train_mask].bincount().tolist() == [10, 60, 60]
    assert [len(part) for part in parts(masks)] == [130, 60, 110]


@pytest.mark.parametrize(
    ("name", "changes", "counts", "words"),
    [
        ("random_per_class", {}, [600, 19, 1000], "class 1 has only 19.*train_per_class"),
        ("random_per_class", {}, [500, 500], "only 960 nodes are not trained on"),
        ("fpst", {}, [1, 1], "leaves val without a node in a graph of 2"),
        ("quota", {"draw": 10}, [30, 30], "has 10 published seeds, numbers 0 to 9, not 10"),
    ],
)
def test_impossible_sizes_are_refused(name, changes, counts, words, split):
    with pytest.raises(UsageError, match=words) as caught:
        split(name, **changes)(labelled(counts), 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["given", "geom_gcn"])
def test_given_splits_are_the_datasets_columns(name, split):
    data = with_splits(4, "geom_gcn")
    for seed in range(12):
        again = split(name, cycle=4)(data, seed)
        assert parts(again) == parts(split(name)(data, seed % 4))
    for seed in range(4):
        masks = split(name)(data, seed)
        assert parts(masks)[:2] == [{seed}, {(seed + 1) % 6}]
        assert len(parts(masks)[2]) == 4
        assert not [key for key in masks.keys() if "given" in key]  # noqa: SIM118 - PyG's method
    assert same(split(name, draw=2)(data, 0), split(name)(data, 2))


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("given", labelled([3, 3]), "no splits of the kind split=given: it comes with none"),
        ("public", with_splits(4, "geom_gcn"), "its own are split=geom_gcn"),
        ("geom_gcn", with_splits(4, "given"), "its own are split=given"),
        ("geom_gcn", with_splits(4, "geom_gcn"), "number 0 to 3, and the run.s seed asks"),
    ],
)
def test_given_splits_that_are_not_there_are_refused(name, data, words, split):
    with pytest.raises(UsageError, match=words):
        split(name)(data, seed=4)
