"""An override of a `_target_` leaves no option of the replaced class."""

import pytest
from omegaconf import OmegaConf, open_dict

from curvlab.config.compose import compose, drop_replaced_options
from curvlab.config.schema import options_of
from curvlab.config.validation import mappings
from curvlab.errors import UsageError
from curvlab.run.command import Command

NEW = "curvlab.layers.PolynomialAttention"
COMMANDS = [
    ("model=fpst", "dataset=web_edu"),
    ("model=lrn", "dataset=cora"),
    ("model=cat", "dataset=wn18rr"),
    ("model=hypformer", "dataset=airport_hgcn"),
]


def nodes(overrides):
    container = OmegaConf.to_container(compose(overrides), resolve=False)
    return {path: node for path, node in mappings(container) if "_target_" in node}


PLACES = [(c, path) for c in COMMANDS for path in nodes(c) if "[" not in path]


@pytest.mark.parametrize(("command", "path"), PLACES, ids=str)
def test_only_options_of_the_new_class_are_left(command, path):
    before = nodes(command)[path]
    after = compose([*command, f"{path}._target_={NEW}"])
    node = OmegaConf.to_container(OmegaConf.select(after, path), resolve=False)
    old = {name for name, option in options_of(before["_target_"]).items() if option.settable}
    assert node["_target_"] == NEW
    assert not (old & set(node)) - set(options_of(NEW))
    kept = set(before) - old | (set(before) & set(options_of(NEW)))
    assert set(node) == kept
    assert {name: node[name] for name in kept - {"_target_"}} == {
        name: before[name] for name in kept - {"_target_"}
    }


def test_a_line_says_once_what_is_left_out():
    lines = []
    for seed in (0, 1):
        overrides = ["model=lrn", f"seed={seed}", f"model.residual._target_={NEW}"]
        Command.from_overrides(overrides, say=lines.append)
    (line,) = lines
    assert line.startswith(f"model.residual._target_={NEW}: options of LorentzResidual are left")
    assert "weight_x" in line


def test_the_job_of_a_sweep_has_the_same_options():
    overrides = ["model=lrn", f"model.residual._target_={NEW}"]
    job = compose(["model=lrn"])
    with open_dict(job):
        job.model.residual._target_ = NEW
    drop_replaced_options(job, overrides)
    assert job == compose(overrides)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("optimizer._target_=no.Such", "no.Such names no class"),
        ("optimizer._target_=curvlab.optim.SGD_", "names no class"),
        (
            "optimizer._target_=curvlab.optim.options.SGD",
            "write optimizer._target_=curvlab.optim.optimisers.SGD",
        ),
    ],
)
def test_a_class_that_is_not_there_is_refused(override, says):
    with pytest.raises(UsageError, match=says):
        compose([override])


def test_an_option_of_the_replaced_class_is_refused_where_the_user_sets_it():
    with pytest.raises(UsageError, match=r"omit model\.residual\.reverse="):
        compose(["model=lrn", f"model.residual._target_={NEW}", "model.residual.reverse=true"])
