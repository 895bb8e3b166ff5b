"""`dataset=NAME` is all that it takes: the configuration brings its task, split and metric."""

import pytest

from composing import CONFIGS, composed
from curvlab.checksums import content_checksum
from curvlab.config.building import name_keys_in_errors
from curvlab.config.folder import choices
from curvlab.config.validation import validate
from curvlab.errors import UsageError
from curvlab.results.identity import built, stored_config
from curvlab.run.parts import build_data, dataset_config

pytestmark = pytest.mark.slow


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", choices(CONFIGS, "dataset"))
def test_a_dataset_brings_its_task_and_split(name):
    dataset = dataset_config(name)
    if "node_classification" in dataset.tasks and "path" not in dataset.source:
        config = composed("model=mlp", f"dataset={name}")
        links = name.endswith("lp")
        assert config.task.name == ("link_prediction" if links else "node_classification")
        validate(config)
        build_data(config)  # builds source, split and transforms; loads nothing


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
    identity = built(stored_config(config))
    assert ("split" in identity) == (split == "OwnSplit")
    assert identity["files"] == {"dataset.source.path": content_checksum(__file__)}
    assert __file__ not in str(identity)


def test_triples_of_ones_own_are_another_data_set():
    with pytest.raises(UsageError, match="kg_folder"):
        validate(composed("model=distmult", "dataset=graph_folder", "task=kg_completion"))


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


@pytest.mark.parametrize(
    "sentence", ["split=quota has ten", "dataset=kg_folder reads", "task=cost"]
)
def test_groups_that_a_sentence_names_are_no_arguments_of_a_source(sentence):
    """PyG's Planetoid has an argument `split`, the source around it an argument `dataset`."""
    source = composed("model=gcn", "dataset=cora").dataset.source
    with pytest.raises(UsageError) as refusal, name_keys_in_errors(source):
        raise UsageError(sentence)
    assert str(refusal.value) == sentence
    with pytest.raises(UsageError) as refusal, name_keys_in_errors(source):
        raise UsageError("split=public is unknown")
    assert str(refusal.value) == "dataset.source.dataset.split=public is unknown"


@pytest.mark.parametrize(
    ("words", "python", "command"),
    [
        (["dataset=pyg"], "path=None is not there", "dataset.path=null is not there"),
        (["dataset=pyg"], "by target=", "by dataset.target=torch_geometric"),
        (["dataset=kg_folder", "model=distmult"], "valid_share=0.1", "source.valid_share=0.1"),
    ],
)
def test_sources_speak_python_and_the_command_its_own_words(tmp_path, words, python, command):
    (tmp_path / "train.txt").write_text("a\tr\tb\nb\tr\tc\n")
    if "dataset=kg_folder" in words:
        words = [*words, f"dataset.source.path={tmp_path}", "task=kg_completion"]
    config = composed("model=gcn", *words, f"paths.data_dir={tmp_path / 'data'}")
    with pytest.raises(UsageError) as refusal, name_keys_in_errors(config.dataset.source):
        build_data(config).prepare_data()
    assert command in str(refusal.value)
    assert python in str(refusal.value.__cause__)
