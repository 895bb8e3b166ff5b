"""A key of a shared file composes as a file of its own does, and says where it is from."""

import pytest
from omegaconf import OmegaConf

from composing import CONFIGS, composed
from curvlab.config.folder import address, choices, comment_of, find
from curvlab.config.sources import CompletedFiles, read

SECTIONS = {
    "recipe/node_classification/gcn/cora@public": ["model=gcn", "dataset=cora"],
    "recipe/node_classification/gat/_": ["model=gat", "dataset=actor"],
    "recipe/node_classification/nodeformer/variants/newsgroups20__no_graph": [
        *("model=nodeformer", "dataset=newsgroups20__no_graph")
    ],
    "model/lrn__tangent_space": ["model=lrn__tangent_space_maps", "dataset=cora__lp"],
    "model/lrn__tangent_space_maps": ["model=lrn__tangent_space_maps", "dataset=airport"],
    "dataset/cora__per_class": ["model=hypformer__no_graph", "dataset=cora__per_class"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "words"), SECTIONS.items(), ids=SECTIONS)
def test_a_key_composes_as_a_file_of_its_own(configs, name, words):
    expected, own = composed(*words), read(CONFIGS, name)
    shared = find(configs, f"{name}.yaml")
    assert shared.is_file()
    assert shared.stem != name.rpartition("/")[2]
    file = configs / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True, parents=True)
    head = "# @package _global_\n" if name.startswith("recipe") else ""
    file.write_text(head + OmegaConf.to_yaml(own))
    shared.write_text(shared.read_text().replace("dropout: 0.7", "dropout: 0.123"))
    assert find(configs, f"{name}.yaml") == file  # which is read before the key
    assert composed(*words, configs=configs) == expected


@pytest.mark.parametrize(
    ("name", "place", "comment"),
    [
        ("model/lrn", "model/lrn.yaml", "LRN, HyboNet with Lorentzian residual connections"),
        ("model/cat__neighbours", "model/cat.yaml neighbours", "CAT with attention to a node's"),
        (
            "recipe/node_classification/gcn/cora@public",
            "recipe/node_classification/gcn.yaml cora@public",
            None,
        ),
    ],
)
def test_a_configuration_has_a_place_and_a_line(name, place, comment):
    assert address(CONFIGS, name) == place
    if comment:
        assert comment_of(CONFIGS, f"{name}.yaml").startswith(comment)
        assert name.partition("/")[2] in choices(CONFIGS, "model")


def test_a_path_in_the_home_folder_is_one_in_a_users_file_too(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    (tmp_path / "paths").mkdir()
    text = "output_dir: ~/runs\ndata_dir: ~other\nmirror: null\n"
    (tmp_path / "paths" / "mine.yaml").write_text(text)
    file = CompletedFiles("", str(tmp_path)).load_config("paths/mine").config
    assert file == {"output_dir": "/home/ada/runs", "data_dir": "~other", "mirror": None}
