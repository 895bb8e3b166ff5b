"""What identifies a run, what a folder is called, which values are in range."""

import inspect
import re

import pytest
from hydra.utils import get_object
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from composing import CONFIGS, composed
from curvlab.config import values as rules
from curvlab.config.resolvers import run_name
from curvlab.config.values import check_kind, check_value
from curvlab.errors import UsageError
from curvlab.results.identity import identity, identity_hash


def hash_of(config):
    return identity_hash(identity(config))


def paths_of(config, prefix=""):
    """Dotted paths of everything in a configuration that is not a mapping."""
    for key in config:
        node = config._get_node(key)
        if OmegaConf.is_dict(node) and not node._is_none() and not node._is_interpolation():
            yield from paths_of(node, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def changed(config, path):
    copy = OmegaConf.create(OmegaConf.to_container(config, resolve=False))
    OmegaConf.update(copy, path, "something else", merge=False)
    return copy


@pytest.mark.parametrize(
    ("group", "model"),
    [("model", "fpst"), ("model", "polyformer"), ("manifold", "fpst"), ("dataset", "fpst"),
     ("task", "fpst"), ("optimizer", "fpst")],
)  # fmt: skip
def test_every_key_of_a_run_is_part_of_its_identity_but_what_describes(group, model):
    config = composed(f"model={model}", "dataset=web_edu")
    how = {
        "dataset.source.data_dir", "dataset.source.mirror", "dataset.source.url",
        "dataset.label", "dataset.tasks", "model.label", "model.requires.bases.mono",
        "model.requires.bases.cheb", "model.requires.manifolds", "model.requires.tasks",
        "task.requires", "optimizer.fused",
    }  # fmt: skip
    paths = set(paths_of(config[group], f"{group}."))
    same = {path for path in paths if hash_of(changed(config, path)) == hash_of(config)}
    assert same == how & paths
    assert paths - how


@pytest.mark.parametrize(
    "older",
    [
        {"model": {"dim": 16, "hops": None}},
        {"model": {"dim": 16.0}, "split": {}},
        {"model": {"dim": 16, "label": "GCN"}, "dataset": {"tasks": ["inference"]}},
        {"model": {"dim": 16}, "dataset": {"source": {"url": "https://elsewhere"}}},
    ],
)
def test_what_is_off_or_describes_leaves_an_identity_as_it_was(older):
    assert identity_hash(older) == identity_hash({"model": {"dim": 16}})


@pytest.mark.parametrize(
    "other",
    [{"dim": 17}, {"dim": 16, "hops": 0}, {"dim": 16, "residual": False}, {"dim": "16"}, {}],
)
def test_what_decides_makes_another_identity(other):
    assert identity_hash({"model": other}) != identity_hash({"model": {"dim": 16}})


@pytest.mark.parametrize("path", ["seed", "trainer.max_steps", "trainer.precision"])
def test_what_changes_the_numbers_changes_the_identity(path):
    config = composed()
    assert hash_of(changed(config, path)) != hash_of(config)


@pytest.mark.parametrize(
    "words",
    [
        "paths.data_dir=/elsewhere",
        "paths.output_dir=/elsewhere",
        "paths.mirror=/elsewhere",
        "logger=wandb",
        "trainer.progress=false",
        "trainer.plots=false",
        "trainer.threads=3",
        "trainer.deterministic=true",
        "optimizer.fused=false",
        "trainer.accelerator=cpu",
        "experiment=fpst/fig3",
        "rerun=true",
        "print_config=true",
    ],
)
def test_where_and_how_a_run_is_computed_is_not_part_of_its_identity(words):
    assert hash_of(composed("dataset=web_edu", words)) == hash_of(composed("dataset=web_edu"))


def test_a_cell_of_a_table_is_the_run_that_its_protocol_describes():
    cell = composed("table=fpst/fig3", "model=gcn", "dataset=power")
    assert hash_of(cell) == hash_of(
        composed("model=gcn", "dataset=power", f"trainer.max_steps={cell.trainer.max_steps}")
    )
    assert hash_of(changed(cell, "report.title")) == hash_of(cell)


def test_a_variant_has_the_recipes_of_what_it_varies():
    base = composed("model=hypformer", "dataset=cora", "split=random_per_class")
    column = composed("model=hypformer", "dataset=cora__per_class")
    row = composed("model=hypformer__no_graph", "dataset=cora__per_class")
    assert base.optimizer == column.optimizer == row.optimizer
    assert base.trainer == column.trainer == row.trainer
    assert base.split == column.split
    assert base.model == column.model
    different = {key for key in base.model if base.model[key] != row.model[key]}
    assert different == {"name", "label", "graph", "linear_maps"}  # of two branches, or null


def test_an_identity_does_not_depend_on_the_order_of_its_keys():
    assert identity_hash({"a": 1, "b": {"c": 2, "d": 3}}) == identity_hash(
        {"b": {"d": 3, "c": 2}, "a": 1}
    )


def test_every_word_that_is_checked_is_in_some_configuration():
    groups = (
        "model",
        "manifold",
        "dataset",
        "split",
        "task",
        "optimizer",
        "trainer",
        "search",
        "batching",
    )
    files = [path for group in groups for path in (CONFIGS / group).rglob("*.yaml")]
    used = {key.rsplit(".", 1)[-1] for f in files for key in paths_of(OmegaConf.load(f))} | {"seed"}
    words = rules.POSITIVE_INTEGERS | rules.POSITIVE_NUMBERS | rules.NON_NEGATIVE_NUMBERS
    words |= rules.NON_NEGATIVE_INTEGERS | rules.NEGATIVE_NUMBERS | rules.SEEDS | rules.SHARES
    words |= rules.FRACTIONS | rules.FACTORS | rules.NUMBERS | rules.OPTIONAL | rules.SWITCHES
    words |= rules.CHOICES.keys()
    words |= {name for names in rules.NEEDED.values() for name in names}
    assert words <= used


@given(st.integers(max_value=0) | st.floats() | st.text() | st.booleans() | st.none())
def test_a_size_is_a_whole_number_of_at_least_one(value):
    with pytest.raises(UsageError, match="whole number of at least 1"):
        check_value("model.dim", value)


@given(st.floats(max_value=0) | st.sampled_from([float("nan"), float("inf"), True, None, "0.1"]))
def test_a_rate_is_a_positive_finite_number(value):
    with pytest.raises(UsageError, match="greater than 0"):
        check_value("optimizer.lr", value)


@given(st.floats(min_value=0) | st.sampled_from([float("nan"), -float("inf"), True, None, "-1"]))
def test_the_curvature_of_a_lorentz_space_is_negative(value):
    with pytest.raises(UsageError, match="less than 0"):
        check_value("model.kappa_in", value)


@given(st.integers(min_value=1))
def test_right_values_pass(value):
    for path in ("model.dim", "optimizer.lr", "manifold.kappa", "unknown"):
        check_value(path, value)
    check_value("model.dropout", 0.99)
    check_value("trainer.threads", None)


NONSENSE = {
    "seed": [-1, 2**32, 0.5, True, None],
    "model.last_heads": [0, -1],
    "model.layer.K": [0, -1],
    "model.input_dropout": [2.5, float("nan"), 1],
    "model.later_dropout": [2.5, float("nan"), True],
    "model.threshold": [float("nan"), float("inf")],
    "model.tolerance": [-1, float("nan")],
    "model.all_pairs_up_to": [-1, 0.5],
    "model.connectivity": [-1],
    "model.sparsity": [-1],
    "model.smoothness": [-1],
    "model.entropy.weight": [-1, float("nan")],
    "model.entropy.decay": [-1, 2.5],
    "model.entropy.floor": [-1],
    "model.activation": ["foo"],
    "task.scheduler.mode": ["foo", "min"],
    "task.scheduler.factor": [-1, 0, 1, 2.5, float("nan")],
}


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, values in NONSENSE.items() for value in values]
)
def test_nonsense_is_refused_by_the_name_of_its_key(path, value):
    with pytest.raises(UsageError, match=re.escape(f"{path}={value} must be ")):
        check_value(path, value)


@pytest.mark.parametrize(
    ("path", "value"),
    [("seed", 2**32 - 1), ("model.input_dropout", False), ("model.graph_branch.weight", True),
     ("model.activation", None), ("model.graph_branch.activation", True),
     ("model.threshold", -0.5), ("model.entropy.decay", 1), ("model.all_pairs_up_to", 0)],
)  # fmt: skip
def test_what_means_something_is_not_refused(path, value):
    check_value(path, value)


def told_words(node, path=""):
    """Path, what is told it, and name of everything that `OPTIONAL` has a word for."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from told_words(value, f"{path}{key}.")
        elif key in rules.OPTIONAL and "_target_" in node:
            yield f"{path}{key}", node["_target_"], key


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [*(f"model={path.stem}" for path in sorted((CONFIGS / "model").glob("*.yaml"))),
     *(f"model=fpst manifold={path.stem}" for path in sorted((CONFIGS / "manifold").glob("*"))),
     "model=distmult dataset=wn18rr"],
)  # fmt: skip
def test_null_is_taken_where_what_is_told_it_knows_what_it_means(words):
    """Where null stands already it may, and `check_kind` says what else may be taken away."""
    config = composed(*words.split())
    plain = OmegaConf.to_container(config, resolve=True)
    for path, target, name in told_words({"model": plain["model"], "task": plain["task"]}):
        argument = inspect.signature(get_object(target)).parameters.get(name)
        if argument is None or OmegaConf.select(config, path) is None:
            continue
        if "None" in str(argument.annotation):
            check_kind(path, config, None)
        else:
            with pytest.raises(UsageError, match="not null"):
                check_kind(path, config, None)


@given(st.text())
def test_a_folder_name_is_safe_and_short(value):
    name = run_name(f"paths.mirror={value}")
    assert re.fullmatch(r"paths\.mirror=[\w.=,+-]*", name)
    assert len(name) <= 100


def test_long_names_stay_apart():
    long = "model.dim=8," * 20
    assert run_name(long + "seed=1") != run_name(long + "seed=2")
    assert run_name("model.dim=8") == "model.dim=8"
    # A sweep spells truth in capitals; the folder is that of the single run.
    assert run_name("trainer.plots=False") == run_name("trainer.plots=false")
    assert run_name("++trainer.patience=5,seed=1") == "trainer.patience=5,seed=1"
    assert run_name("") == "default"


@pytest.mark.parametrize("group", ["manifold", "model", "dataset", "split"])
def test_readme_names_what_one_can_choose(group):
    readme = (CONFIGS.parent / "README.md").read_text()
    of_tasks = {"none", "fit"}  # splits that a task without parts, or with its own, brings along
    names = {path.stem for path in (CONFIGS / group).glob("*.yaml")} - of_tasks
    variants = {name for name in names if "__" in name}  # of tables' cells
    assert sorted(name for name in names - variants if f"`{name}`" not in readme) == []
