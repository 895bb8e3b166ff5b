"""Which values a run gets from its task and its two recipes; what its folder is called."""

import re
import shlex
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from composing import CONFIGS, composed, recipes, with_hydra
from curvlab.config.folder import choices
from curvlab.config.resolvers import LINKS, recipe, run_name
from curvlab.config.validation import keys_of, option_of, validate
from tiny_data import takes_a_step

RECIPE = """
cora@public:
  provenance:
    command: a search of three trials
  model:
    dim: 64
    dropout: 0.3
  optimizer:
    lr: 0.05
"""


DATASETS = choices(CONFIGS, "dataset")
OF_DATA = [names for names in recipes() if names[2].partition("@")[0] in DATASETS]


def with_few_of_every_key():
    """All recipes; those that set no key that another of the same model sets too are nightly."""
    met = set()
    for names in OF_DATA:
        keys = {(*names[:2], key) for key, _ in leaves(recipes()[names])}
        marks = () if keys - met else pytest.mark.nightly
        yield pytest.param(names, marks=marks, id="-".join(names[1:]))
        met |= keys


def is_task(folder):
    """Whether runs take the recipes of a folder by their task, and not by their table."""
    return (CONFIGS / "task" / f"{folder}.yaml").is_file()


def word_of(folder):
    """The override by which runs take the recipes of a folder."""
    if is_task(folder):
        return f"task={folder}"
    files = (CONFIGS / "table").glob("*/*.yaml")
    (file,) = (file for file in files if f"{{searched:{folder}," in file.read_text())
    return f"table={file.parent.name}/{file.stem}"


MADE_OF = ("batches_of_pass",)
"""Keys that no class takes: steps are made of one."""


def leaves(node, path=""):
    """Dotted keys and literals, but for those of a node that names its class.

    Such a node gets that class's defaults, so that it may have to say again what was there.
    """
    for key, value in node.items() if "_target_" not in node else ():
        own = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict):
            yield from leaves(value, own)
        elif not own.startswith(("defaults", "provenance")):
            yield own, value


def is_key(own, plain, run):
    """Whether a class takes an option, or one whose value is a mapping that has this name."""
    path, _, name = own.rpartition(".")
    block = OmegaConf.select(run, path)
    if option_of(block, path, name) or own in keys_of(plain) or name in MADE_OF:
        return True
    return "." in path and "_target_" not in block and is_key(path, plain, run)


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("names", list(with_few_of_every_key()))
def test_a_recipe_has_what_differs_in_keys_that_there_are_and_a_run_takes_it(names, tmp_path):
    """A recipe that names another key would pass unnoticed until the model is built."""
    folder, model, key = names
    dataset, _, split = key.partition("@")
    words = [f"model={model}", f"dataset={dataset}", word_of(folder)]
    words += [f"split={split}"] if split not in ("", LINKS, "none") else []
    plain, run = composed(*words, "recipe=none"), composed(*words)
    task = plain.task.name if is_task(folder) else folder
    parts = (task, plain.model.name, plain.dataset.name, plain.split.get("name"))
    assert recipe(*parts) == "/".join(names)
    for own, value in leaves(recipes()[names]):
        assert is_key(own, plain, run), own
        if not (isinstance(value, str) and "${" in value):
            assert OmegaConf.select(plain, own) != value, own
    OmegaConf.to_container(run, resolve=True)
    validate(run)
    assert takes_a_step(run, tmp_path)


@pytest.mark.parametrize("key", ["provenance", "found"])  # of earlier versions
def test_a_recipe_is_taken_where_task_model_dataset_and_split_are_its_own(configs, key):
    """Task, split and manifold are chosen within the files of dataset and model."""
    file = configs / "recipe" / "node_classification" / "gcn.yaml"
    others = re.sub(r"(?ms)^cora@public:\n.*?^(?=\S)", "", file.read_text())
    file.write_text(others + RECIPE.replace("provenance", key))
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
    assert with_hydra(*words.split()).hydra.runtime.choices.recipe == address


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
    values = recipes()[names]
    entries = [entry for entry in values.get("defaults", []) if entry != "_self_"]
    for group, name in (pair for entry in entries for pair in entry.items()):
        if not group.startswith(("optional", "/")):
            yield from searched((*group.split("/"), name))
    if "provenance" in values:
        words = shlex.split(values["provenance"]["command"])
        chosen = ("dataset", "split", "task")
        yield split_of(tuple(w for w in words if w.partition("=")[0] in chosen))


@pytest.mark.nightly
def test_what_a_search_has_found_is_used_on_the_split_of_that_search_only():
    """Elsewhere its validation nodes, which chose the values, would be among the test nodes."""
    for names in OF_DATA:
        for found_on in searched(names):
            task = found_on[0] if is_task(names[0]) else names[0]
            assert recipe(task, names[1], *found_on[1:]) == "/".join(names)


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


def test_a_variant_has_the_recipes_of_what_it_varies():
    base = composed("model=hypformer", "dataset=cora", "split=random_per_class")
    column = composed("model=hypformer", "dataset=cora__per_class")
    row = composed("model=hypformer__no_graph", "dataset=cora__per_class")
    assert base.optimizer == column.optimizer == row.optimizer
    assert base.trainer == column.trainer == row.trainer
    assert base.split == column.split
    assert base.model == column.model
    different = {key for key in base.model if base.model[key] != row.model[key]}
    assert different == {"name", "label", "graph"}


@settings(max_examples=40)
@given(st.text())
def test_a_folder_name_is_safe_and_short(value):
    name = run_name([f"model.note={value}"], _root_={"model": {}})
    assert re.fullmatch(r"note=[\w.=,+-]*", name)
    assert len(name) <= 70


TRAINER = {"trainer": {"_target_": "curvlab.run.sections.EarlyStopping"}}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("", "default"),
        ("model=gcn dataset=cora seed=3 paths.output_dir=here table=null logger=csv", "default"),
        ("trainer.plots=false trainer.threads=1 trainer.progress=false", "default"),
        ("model.heads=4 model.dim=8", "dim=8-heads=4"),
        ("optimizer.lr=0.1 recipe=none task.loss=sum", "lr=0.1-recipe=none-task.loss=sum"),
        ("++trainer.patience=5", "patience=5"),
        ("model.bias=True", "bias=true"),  # a sweep spells truth in capitals
        ("dataset.path=/data/mine", "default"),  # whose name is in the path above
    ],
)
def test_a_folder_is_named_after_the_words_that_decide(words, name):
    assert run_name(words.split(), _root_=TRAINER) == name


def test_names_of_many_words_stay_apart():
    words = ["model.a=1", "model.b=1", "model.c=1"]
    one, other = (run_name([*words, f"model.d={i}"], _root_={}) for i in (1, 2))
    assert re.fullmatch(r"a=1-b=1-c=1-[0-9a-f]{8}", one)
    assert re.fullmatch(r"a=1-b=1-c=1-[0-9a-f]{8}", other)
    assert one != other
