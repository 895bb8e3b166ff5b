"""`dataset=NAME` is all that it takes: the configuration brings its task, split and metric."""

import pytest
from omegaconf import open_dict

from composing import CONFIGS, composed
from curvlab.config.building import in_words_of
from curvlab.config.rules import validate
from curvlab.data.datasets.named import dataset_config, dataset_names
from curvlab.errors import UsageError
from curvlab.results.identity import built, stored
from curvlab.run.parts import build_data

pytestmark = pytest.mark.slow

# The main table's protocol, or the disjoint one where that leaks.
DEFAULTS = {
    name: default
    for default, names in {
        ("public", "accuracy"): "cora citeseer pubmed cora__lp pubmed__lp",
        ("fpst", "accuracy"): "texas cornell wisconsin actor",
        ("geom_gcn", "accuracy"): "actor__geom_gcn",
        ("shared_70_15_15", "accuracy"): "airport airport__lp",
        ("hgcn", "accuracy"): "airport_hgcn disease_synthetic",
        ("hgcn", "f1_binary"): "disease",
        ("given", "accuracy"): "chameleon squirrel roman_empire twitch_gamers pokec",
        ("given", "roc_auc"): "minesweeper tolokers questions",
        ("quota", "accuracy"): "coauthor_cs coauthor_physics citeseer__quota pubmed__quota",
        ("official", "ogb_acc"): "ogbn_arxiv ogbn_papers100m",
        ("official", "ogb_rocauc"): "ogbn_proteins",
        ("redrawn_50_25_25", "accuracy"): (
            "newsgroups20 mini_imagenet newsgroups20__no_graph newsgroups20__k5 "
            "newsgroups20__k10 newsgroups20__k15 newsgroups20__k20 mini_imagenet__no_graph "
            "mini_imagenet__k5 mini_imagenet__k10 mini_imagenet__k15 mini_imagenet__k20"
        ),
        ("random_50_25_25", "ogb_acc"): "amazon2m",
        ("random_50_25_25", "accuracy"): "synthetic_large",
        ("random_60_20_20", "accuracy"): "hyperbolic_graph spherical_graph flat_graph",
        ("random_60_20_20", "f1_binary"): "disease_lp",
        ("random_per_class", "accuracy"): "cora__per_class citeseer__per_class pubmed__per_class",
    }.items()
    for name in names.split()
}


def test_every_dataset_with_labels_is_here():
    names = dataset_names(CONFIGS)
    described = {name: dataset_config(name, CONFIGS) for name in names}
    labelled = {name for name in names if "node_classification" in described[name].tasks}
    of_users = {name for name in names if "path" in described[name]}  # perhaps without labels
    assert labelled - of_users == set(DEFAULTS)


@pytest.mark.parametrize("name", ["graph_folder", "pyg", "networkx"])
@pytest.mark.parametrize(
    ("task", "split"),
    [
        ("reconstruction", None),
        ("node_classification", "OwnSplit"),
        ("link_prediction", "LinkSplit"),
    ],
)
def test_a_graph_of_ones_own_has_the_split_that_the_task_needs(name, task, split):
    config = composed("model=gcn", f"dataset={name}", f"task={task}", f"dataset.path={__file__}")
    validate(config)
    assert type(build_data(config).split).__name__ == (split or "NoneType")
    identity = built(stored(config))
    assert ("split" in identity) == (split == "OwnSplit")
    assert identity["dataset"].get("files") == config.dataset.files
    assert config.dataset.files is not None
    assert "path" not in str(identity)


def test_triples_of_ones_own_are_another_data_set():
    with pytest.raises(UsageError, match="kg_folder"):
        validate(composed("model=distmult", "dataset=graph_folder", "task=kg_completion"))


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", DEFAULTS)
def test_a_dataset_brings_its_task_split_and_metric(name):
    config = composed("model=mlp", f"dataset={name}")
    links = name.endswith("lp")
    assert config.task.name == ("link_prediction" if links else "node_classification")
    assert (config.split.name, config.dataset.metric) == DEFAULTS[name]
    validate(config)
    build_data(config)  # builds source, split and transforms; loads nothing


def test_datasets_without_labels_have_no_split():
    config = composed("model=mlp", "dataset=synthetic_web")
    assert not config.split
    assert build_data(config).split is None


@pytest.mark.parametrize(
    ("name", "classes", "features"),
    [("texas", 5, 1703), ("airport", 4, 11), ("tolokers", 1, 10), ("chameleon", 5, 2325)],
)
def test_a_dataset_is_ready_to_train_on(name, classes, features, mirror, tmp_path):
    config = composed(
        "model=mlp",
        f"dataset={name}",
        "recipe=none",
        f"paths.data_dir={tmp_path}",
        f"paths.mirror={mirror}",
    )
    data = build_data(config)
    assert (data.num_classes, data.num_features) == (classes, features)
    assert data.graph.train_mask.any()
    rows = data.graph.x.sum(dim=1)
    bags = name in ("texas", "chameleon")
    assert bool(((rows - 1).abs() < 1e-5).logical_or(rows == 0).all()) == bags


def test_unfiltered_graphs_and_raw_features_are_a_word_away(mirror, tmp_path):
    places = (f"paths.data_dir={tmp_path}", f"paths.mirror={mirror}")
    words = ("dataset=squirrel", "dataset.filtered=false", *places)
    assert build_data(composed("model=mlp", *words)).num_nodes == 5201
    words = ("dataset=texas", "dataset.features=null", *places)
    config = composed("model=mlp", *words)
    assert build_data(config).graph.x.max() == 1
    with open_dict(config):
        config.split = {}
    assert "train_mask" not in build_data(config).graph


def prepared(config):
    data = build_data(config)
    data.prepare_data()
    return data.graph


EDGES = "a,b\nb,c\n"
FACTS = "a\tr\tb\nb\tr\tc\n"


@pytest.mark.parametrize(
    ("words", "python", "command"),
    [
        ([], "path=None is not there", "dataset.path=null is not there"),
        (["dataset.source.weighted=true"], "weighted=True, but", "dataset.source.weighted=true, "),
        (
            ["dataset.source.ignore=[nix]"],
            "ignore=[nix] names",
            "dataset.source.ignore=[nix] names",
        ),
        (["dataset=pyg"], "path=None is not there", "dataset.path=null is not there"),
        (["dataset=pyg"], "by target=", "by dataset.target=torch_geometric"),
        (["dataset=kg_folder", "model=distmult"], "valid_share=0.1", "source.valid_share=0.1"),
        (["task=link_prediction", "task.split.val=0.9"], "val=0.9", "task.split.val=0.9"),
    ],
)
def test_sources_speak_python_and_the_command_its_own_words(tmp_path, words, python, command):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text("id,label\na,x\nb,x\nc,y\n")
    (tmp_path / "train.txt").write_text(FACTS)
    (tmp_path / "test.txt").write_text(FACTS)
    place = [f"dataset.path={tmp_path}"]
    if "dataset=kg_folder" in words:
        place = [f"dataset.source.path={tmp_path}", "task=kg_completion", "batching=triples"]
    if words in ([], ["dataset=pyg"], ["dataset=networkx"]):
        place = []
    own = [] if any(word.startswith("dataset=") for word in words) else ["dataset=graph_folder"]
    config = composed("model=gcn", *own, *words, *place, f"paths.data_dir={tmp_path / 'data'}")
    with pytest.raises(UsageError) as refusal, in_words_of(config.dataset.source):
        prepared(config)
    assert command in str(refusal.value)
    assert python in str(refusal.value.__cause__)
