"""Which values a run gets from its task, its protocol and its tuned file; the command line wins."""

import copy
import shutil
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from curvlab.config import register_resolvers

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
TUNED = """# @package _global_
# Found by a search of three trials.
model:
  dim: 64
  dropout: 0.3
optimizer:
  lr: 0.05
"""


@pytest.fixture
def configs(tmp_path):
    """A copy of the configurations in which GCN is tuned on Cora."""
    folder = tmp_path / "configs"
    shutil.copytree(CONFIGS, folder)
    tuned = folder / "tuned" / "node_classification" / "gcn" / "cora.yaml"
    tuned.parent.mkdir(parents=True, exist_ok=True)
    tuned.write_text(TUNED)
    return folder


def composed(folder, *words):
    register_resolvers()
    with initialize_config_dir(str(folder), version_base="1.3"):
        return compose("train", list(words))


def test_a_dataset_brings_its_task_and_the_task_its_trainer_and_optimiser():
    config = composed(CONFIGS, "dataset=cora", "model=fpst")
    assert config.task.name == "node_classification"
    assert config.task.metric == "accuracy"
    assert config.trainer.max_steps == 1000
    assert config.trainer.patience == 100
    assert (config.optimizer.curvature_lr, config.optimizer.weight_decay) == (1e-4, 5e-4)
    assert (config.model.sign_flips, config.manifold.name) == (True, "stereographic")
    assert config.model.dropout > 0


def test_reconstruction_keeps_its_protocol():
    config = composed(CONFIGS, "dataset=web_edu", "model=fpst")
    assert config.task.name == "reconstruction"
    assert config.trainer.max_steps == 10_000
    assert "patience" not in config.trainer
    assert (config.optimizer.curvature_lr, config.optimizer.weight_decay) == (1e-3, 0)
    assert (config.model.sign_flips, config.model.hops, config.model.layers) == (False, 0, 1)
    assert composed(CONFIGS, "dataset=web_edu", "model=gcn").model.skip_average


def test_the_command_line_wins_over_a_tasks_defaults():
    words = ("trainer=default", "optimizer=adam", "model.dropout=0.1", "trainer.max_steps=7")
    config = composed(CONFIGS, "dataset=cora", "model=gcn", *words)
    assert "patience" not in config.trainer
    assert config.optimizer.curvature_lr == 1e-3
    assert (config.model.dropout, config.trainer.max_steps) == (0.1, 7)


PROTOCOLS = sorted((CONFIGS / "protocol").glob("*/*.yaml"))


@pytest.mark.parametrize("file", PROTOCOLS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_protocol_is_of_a_task_and_a_model_and_sets_what_the_model_has(file):
    assert (CONFIGS / "task" / f"{file.parent.name}.yaml").is_file()
    plain = composed(CONFIGS, f"model={file.stem}")
    values = OmegaConf.load(file)
    assert values.keys() & {"defaults", "model", "optimizer"}  # another model's, or its own
    assert values.keys() <= {"defaults", "model", "manifold", "optimizer", "task", "trainer"}
    assert set(values.get("model", {})) <= set(plain.model)


TUNED_FILES = sorted((CONFIGS / "tuned").glob("*/*/*.yaml"))


@pytest.mark.parametrize("file", TUNED_FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_tuned_values_are_of_keys_that_there_are(file):
    """A file that names another key would pass unnoticed until the model is built."""
    task = file.parent.parent.name
    words = (f"model={file.parent.name}", f"dataset={file.stem}", f"task={task}")
    plain = composed(CONFIGS, *words, "tuned=none")
    # Datasets and transforms ask whether they are there.
    for key in ("row_normalise", "self_loops"):
        OmegaConf.update(plain, f"model.requires.{key}", True, force_add=True)
    OmegaConf.set_struct(plain, True)
    values = OmegaConf.load(file)
    inherits = values.pop("defaults", None) is not None  # another file of tuned values
    merged = OmegaConf.merge(without_other_parts(plain, values), values)
    OmegaConf.to_container(composed(CONFIGS, *words) if inherits else merged, resolve=True)


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


def test_tuned_values_are_taken_where_task_model_and_dataset_are_theirs(configs):
    """Task and manifold are chosen within the files of dataset and model."""
    config = composed(configs, "model=gcn", "dataset=cora")
    assert (config.model.dim, config.model.dropout, config.optimizer.lr) == (64, 0.3, 0.05)
    assert config.model.layers == 2  # of the protocol
    for words in (("model=gcn", "dataset=actor"), ("model=dropedge", "dataset=cora")):
        other = composed(configs, *words)
        assert (other.model.dim, other.optimizer.lr) == (16, 0.01)


def test_the_command_line_wins_over_tuned_values(configs):
    words = ("model=gcn", "dataset=cora", "model.dim=8", "optimizer.lr=0.1")
    config = composed(configs, *words)
    assert (config.model.dim, config.model.dropout, config.optimizer.lr) == (8, 0.3, 0.1)
    plain = composed(configs, "model=gcn", "dataset=cora", "tuned=none")
    assert (plain.model.dim, plain.model.dropout, plain.optimizer.lr) == (16, 0.5, 0.01)


def test_a_table_wins_over_tuned_values(configs):
    table = configs / "table" / "fpst" / "mine.yaml"
    table.write_text("# @package _global_\nmodel:\n  dim: 4\n")
    config = composed(configs, "model=gcn", "dataset=cora", "table=fpst/mine")
    assert (config.model.dim, config.model.dropout) == (4, 0.3)


@pytest.mark.parametrize(
    ("dataset", "c"),
    [("airport__lp", 2), ("airport", 0.5), ("airport_hgcn", 0.5), ("cora", 1.25), ("pubmed", 0.5)],
)
def test_lrns_curvature_is_minus_one_over_its_scripts_c(dataset, c):
    config = composed(CONFIGS, "model=lrn", f"dataset={dataset}")
    assert config.manifold.kappa == -1 / c
    assert not config.manifold.learnable
    other = composed(CONFIGS, "model=lrn", f"dataset={dataset}", f"manifold.kappa={-c}")
    assert other.manifold.kappa == -c
    for model in ("hybonet", "lrn__tangent_space"):  # which have c = 1
        assert composed(CONFIGS, f"model={model}", f"dataset={dataset}").manifold.kappa == -1


def test_a_linear_decoder_of_two_branches_draws_two_maps():
    """Where there is none the key is null, and earlier results of such runs stay theirs."""

    def maps(*words):
        return composed(CONFIGS, *words).model.linear_maps

    assert maps("model=hypformer", "dataset=citeseer") == "per_branch"
    assert maps("model=hypformer_softmax", "dataset=cora__per_class") == "per_branch"
    assert maps("model=hypformer", "dataset=airport") is None  # prototypes
    for part in ("no_graph", "no_transformer"):
        assert maps(f"model=hypformer__{part}", "dataset=citeseer") is None
    assert maps("model=hypformer", "dataset=citeseer", "model.linear_maps=null") is None


@pytest.mark.parametrize(("dataset", "inner"), [("airport", "as_released"), ("citeseer", None)])
def test_the_released_product_is_of_prototypes(dataset, inner):
    assert composed(CONFIGS, "model=hypformer", f"dataset={dataset}").task.inner is None
    config = composed(CONFIGS, "model=hypformer__as_released", f"dataset={dataset}")
    assert config.task.inner == inner
    assert config.model.input_lift == "exp0_ref"
