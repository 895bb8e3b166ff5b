"""Which values a run gets from its task and its two recipes; the command line wins."""

import copy
import re
import shlex
import shutil
from functools import cache

import pytest
from omegaconf import DictConfig, OmegaConf

from composing import CONFIGS, composed, recipes, with_hydra
from curvlab.config.resolvers import LINKS, recipe
from curvlab.config.rules import validate
from tiny_data import takes_a_step

RECIPE = """
cora@public:
  found:
    command: a search of three trials
  model:
    dim: 64
    dropout: 0.3
  optimizer:
    lr: 0.05
"""


@pytest.fixture(scope="module")
def configs(tmp_path_factory):
    """A copy of the configurations in which GCN has a recipe on Cora's public split."""
    folder = tmp_path_factory.mktemp("of_recipes") / "configs"
    shutil.copytree(CONFIGS, folder)
    file = folder / "recipe" / "node_classification" / "gcn.yaml"
    others = re.sub(r"(?ms)^cora@public:\n.*?^(?=\S)", "", file.read_text())
    file.write_text(others + RECIPE)
    return folder


def test_a_dataset_brings_its_task_and_the_task_its_trainer_and_optimiser():
    config = composed("dataset=cora", "model=fpst", "recipe=none")
    assert config.task.name == "node_classification"
    assert config.task.metric == "accuracy"
    assert config.trainer.max_steps == 1000
    assert config.trainer.patience == 100
    assert (config.optimizer.curvature_lr, config.optimizer.weight_decay) == (1e-4, 5e-4)
    assert (config.model.sign_flips, config.manifold.name) == (True, "stereographic")
    assert config.model.dropout > 0


def chosen_recipe(*words):
    """The recipe of data set and split that a run takes, whether there is one or not."""
    return with_hydra(*words).hydra.runtime.choices.recipe


OF_TASKS = [names for names in recipes() if names[2] == "_"]
OF_DATA = [names for names in recipes() if names[2] != "_" and "/" not in names[2]]


@pytest.mark.slow
@pytest.mark.parametrize("names", OF_TASKS, ids="-".join)
def test_a_recipe_of_a_task_and_a_model_sets_what_the_model_has(names):
    task, model, _ = names
    assert (CONFIGS / "task" / f"{task}.yaml").is_file()
    plain = composed(f"model={model}")
    values = recipes()[names]
    assert values.keys() & {"defaults", "model", "optimizer", "trainer"}
    assert values.keys() <= {"defaults", "model", "manifold", "optimizer", "task", "trainer"}
    assert set(values.get("model", {})) <= set(plain.model)


def with_few_of_every_key():
    """All recipes; those that set no key that another of the same model sets too are nightly."""
    met = set()
    for names in OF_DATA:
        values = OmegaConf.to_container(recipes()[names])
        parts = ((k, v) for k, v in values.items() if isinstance(v, dict) and k != "found")
        sets = {(*names[:2], part, key) for part, v in parts for key in v}
        marks = () if sets - met else pytest.mark.nightly
        yield pytest.param(names, marks=marks, id="-".join(names[1:]))
        met |= sets


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("names", list(with_few_of_every_key()))
def test_a_recipe_is_of_keys_that_there_are_and_of_a_run_that_takes_it(names, tmp_path):
    """A recipe that names another key would pass unnoticed until the model is built."""
    task, model, key = names
    dataset, _, split = key.partition("@")
    words = [f"model={model}", f"dataset={dataset}", f"task={task}"]
    words += [f"split={split}"] if split not in ("", LINKS) else []
    values = copy.deepcopy(recipes()[names])
    values.pop("found", None)
    defaults = values.pop("defaults", [])
    batching = [f"batching={d[key]}" for d in defaults for key in d if key.startswith("/batching@")]
    plain = composed(*words, *batching, "recipe=none")
    run = (plain.task.name, plain.model.name, plain.dataset.name, plain.split.get("name"))
    assert recipe(*run) == "/".join(names)
    # Datasets and transforms ask whether they are there.
    for key in ("row_normalise", "self_loops"):
        OmegaConf.update(plain, f"model.requires.{key}", True, force_add=True)
    OmegaConf.update(plain, "trainer.batches_of_pass", 1, force_add=True)  # steps are made of it
    OmegaConf.set_struct(plain, True)
    inherits = len(defaults) > len(batching)  # another recipe
    merged = OmegaConf.merge(without_other_parts(plain, values), values)
    run = composed(*words) if inherits else merged
    OmegaConf.to_container(run, resolve=True)
    validate(run)
    assert takes_a_step(run, tmp_path)


def without_other_parts(plain, values):
    """A configuration that allows any key where the values name another class to build."""
    plain = copy.deepcopy(plain)
    for key, value in values.items():
        if not (isinstance(value, DictConfig) and isinstance(plain.get(key), DictConfig)):
            continue
        if value.get("_target_") not in (None, plain[key].get("_target_")):
            plain[key] = OmegaConf.create({}, flags={"struct": False})
        else:
            plain[key] = without_other_parts(plain[key], value)
    return plain


def test_a_recipe_is_taken_where_task_model_dataset_and_split_are_its_own(configs):
    """Task, split and manifold are chosen within the files of dataset and model."""
    config = composed("model=gcn", "dataset=cora", configs=configs)
    assert (config.model.dim, config.model.dropout, config.optimizer.lr) == (64, 0.3, 0.05)
    assert config.model.layers == 2  # of the protocol
    for words in (
        ("model=gcn", "dataset=actor"),
        ("model=dropedge", "dataset=cora"),
        ("model=gcn", "dataset=cora__per_class"),
        ("model=gcn", "dataset=cora", "split=random_per_class"),
    ):
        other = composed(*words, configs=configs)
        assert (other.model.dim, other.optimizer.lr) == (16, 0.01)


def test_the_command_line_wins_over_a_recipe(configs):
    words = ("model=gcn", "dataset=cora", "model.dim=8", "optimizer.lr=0.1")
    config = composed(*words, configs=configs)
    assert (config.model.dim, config.model.dropout, config.optimizer.lr) == (8, 0.3, 0.1)
    plain = composed("model=gcn", "dataset=cora", "recipe=none", configs=configs)
    assert (plain.model.dim, plain.model.dropout, plain.optimizer.lr) == (16, 0.5, 0.01)


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("model=gcn dataset=cora", "node_classification/gcn/cora@public"),
        ("model=gcn dataset=cora__per_class", "node_classification/gcn/cora@random_per_class"),
        (
            "model=gcn split=random_per_class dataset=cora",
            "node_classification/gcn/cora@random_per_class",
        ),
        ("model=lrn__tangent_space dataset=cora__lp", "link_prediction/lrn/cora@links"),
        ("dataset=cora model=lrn task=link_prediction", "link_prediction/lrn/cora@links"),
        ("model=fpst dataset=web_edu", "reconstruction/fpst/web_edu"),
        ("model=distmult dataset=wn18rr", "kg_completion/distmult/wn18rr"),
        (
            "model=mlp dataset=cora task=node_classification__cost",
            "node_classification/mlp/cora@public",
        ),
        (
            "table=hypformer/table2 model=gcn dataset=disease",
            "node_classification/gcn/disease@hgcn",
        ),
        ("search=gcn dataset=cora", "none"),
    ],
)
def test_a_recipe_is_chosen_by_what_a_run_is(words, address):
    assert chosen_recipe(*words.split()) == address


@pytest.mark.parametrize("file", sorted((CONFIGS / "split").glob("*.yaml")), ids=lambda f: f.stem)
def test_a_split_has_the_name_that_chooses_recipes(file):
    """A recipe is written by the name that a run knows, and taken by the name of the file."""
    assert OmegaConf.load(file).get("name", "none") == file.stem


@cache
def split_of(words):
    """Task, data set and split of a search's command."""
    config = composed(*words)
    return config.task.name, config.dataset.name, config.split.name


def searched(names):
    """What the values of a recipe were found on, its own and those that it takes from others."""
    values = OmegaConf.to_container(recipes()[names])
    entries = [entry for entry in values.get("defaults", []) if entry != "_self_"]
    for group, name in (pair for entry in entries for pair in entry.items()):
        if not group.startswith(("optional", "/")):
            yield from searched((*group.split("/"), name))
    if "found" in values:
        words = shlex.split(values["found"]["command"])
        chosen = ("dataset", "split", "task")
        yield split_of(tuple(w for w in words if w.partition("=")[0] in chosen))


@pytest.mark.slow
def test_what_a_search_has_found_is_used_on_the_split_of_that_search_only():
    """Elsewhere its validation nodes, which chose the values, would be among the test nodes."""
    for names in OF_DATA:
        for found_on in searched(names):
            assert recipe(found_on[0], names[1], *found_on[1:]) == "/".join(names)


@pytest.mark.parametrize(
    ("dataset", "c"),
    [("airport__lp", 2), ("airport", 0.5), ("airport_hgcn", 0.5), ("cora", 1.25), ("pubmed", 0.5)],
)
def test_lrns_curvature_is_minus_one_over_its_scripts_c(dataset, c):
    config = composed("model=lrn", f"dataset={dataset}")
    assert config.manifold.kappa == -1 / c
    assert not config.manifold.learnable
    other = composed("model=lrn", f"dataset={dataset}", f"manifold.kappa={-c}")
    assert other.manifold.kappa == -c
    for model in ("hybonet", "lrn__tangent_space"):  # which have c = 1
        assert composed(f"model={model}", f"dataset={dataset}").manifold.kappa == -1
