"""A value that a library rejects is the user's error, wherever it is found."""

import pytest
from omegaconf import OmegaConf

from curvlab.config.building import build
from curvlab.errors import UsageError


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"_target_": "torch.nn.Linear", "in_features": "a", "out_features": 3}, "got str"),
        ({"_target_": "torch.nn.Dropout", "p": 3}, "dropout probability has to be between 0 and 1"),
        ({"_target_": "torch.nn.Linear", "width": 3}, "unexpected keyword argument 'width'"),
        ({"_target_": "torch.nn.Linear"}, "missing 2 required positional arguments"),
        ({"_target_": "curvlab.data.datasets.hgcn.DiseaseGraph", "folder": "a", "files": []},
         r"missing 1 required .* argument: 'statistics'"),
        ({"_target_": "torch_geometric.nn.ChebConv", "in_channels": 2, "out_channels": 2, "K": 0},
         "AssertionError"),
        ({"_target_": "torch.nn.Nothing"}, "No module named 'torch.nn.Nothing'"),
        ({"_target_": "torch.pi"}, "Expected a callable target"),
    ],
)  # fmt: skip
def test_what_other_packages_say_of_values_is_the_users_error(values, answer):
    sentence = rf"^model \({values['_target_']}\) cannot be built with its values: .*{answer}"
    with pytest.raises(UsageError, match=sentence or "^$") as refused:
        build(values, "model")
    assert "\n" not in str(refused.value)


def test_a_part_of_a_configuration_knows_where_it_stands():
    config = OmegaConf.create({"dataset": {"features": {"_target_": "torch.nn.Nothing"}}})
    with pytest.raises(UsageError, match=r"^dataset.features \(torch.nn.Nothing\) cannot be built"):
        build(config.dataset.features)


def test_a_mistake_of_ours_stays_one():
    values = {"triples": "a", "size": 2, "inverse_relations": False}
    with pytest.raises(TypeError, match="bad operand"):
        build({"_target_": "curvlab.config.resolvers.steps_of_pass", **values})


def refuse(sentence):
    raise UsageError(sentence) if sentence else MemoryError


@pytest.mark.parametrize(("sentence", "error"), [("no such thing", UsageError), ("", MemoryError)])
def test_what_a_constructor_raises_is_raised(sentence, error):
    with pytest.raises(error, match=sentence or "^$"):
        build({"_target_": f"{__name__}.refuse", "sentence": sentence})
