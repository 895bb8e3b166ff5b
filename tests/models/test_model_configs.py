"""Every configuration of a model composes, builds and trains."""

import math

import pytest
import torch
from omegaconf import OmegaConf

import composing
from composing import CONFIGS, tasks_of
from curvlab.callbacks import Curves
from curvlab.config.folder import choices
from curvlab.config.rules import validate
from curvlab.run import reporting
from curvlab.run.parts import build_data, build_task, build_trainer

MODELS = choices(CONFIGS, "model")
OF_TRIPLES = [  # which have no neighbours
    name for name in MODELS if "kg_completion" in tasks_of(name) and name != "cat__neighbours"
]
WEB = ("dataset=synthetic_web", "dataset.source.num_nodes=40")
PRECISIONS = ("32-true", pytest.param("bf16-mixed", marks=pytest.mark.slow))
MANIFOLDS = ("stereographic", "poincare", "sphere", "euclidean")

pytestmark = pytest.mark.slow


def composed(model, folder, *overrides):
    """The configuration of a short run on a tiny graph."""
    config = composing.composed(
        f"model={model}",
        *([] if "dataset=synthetic_kg" in overrides else WEB),
        "trainer.max_steps=1",
        "trainer.accelerator=cpu",
        *overrides,
    )
    config.paths.data_dir = config.paths.output_dir = str(folder)
    if "eigenvectors" in config.model:
        config.model.eigenvectors = 4
    return config


def trained(config, folder):
    """The task before and after training, and the curves."""
    validate(config)
    torch.manual_seed(0)
    data = build_data(config)
    task = build_task(config, data)
    before = {name: p.detach().clone() for name, p in task.named_parameters()}
    curves = Curves(folder / "metrics.csv")
    with reporting.quiet():
        trainer = build_trainer(config, folder, [curves], None)
        trainer.fit(task, datamodule=data)
    return before, task, curves.rows


KG = ("dataset=synthetic_kg", "dataset.source.groups=4", "trainer.steps_per_epoch=1")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("model", "words", "score", "most"),
    [(name, (), "map", 100) for name in MODELS if not tasks_of(name)]
    + [(name, KG, "val/mrr", 1) for name in OF_TRIPLES],
)
def test_each_model_trains_a_step(model, words, score, most, precision, tmp_path):
    config = composed(model, tmp_path, *words)
    config.trainer.precision = precision
    before, task, rows = trained(config, tmp_path)
    assert config.model.name == model
    assert "label" in config.model
    assert rows[-1]["step"] == 1
    assert math.isfinite(rows[-1]["loss"])
    assert 0 < rows[-1][score] <= most
    after = dict(task.named_parameters())
    assert any(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_fpst_trains_a_step_on_each_of_its_manifolds(manifold, tmp_path):
    config = composed("fpst", tmp_path, f"manifold={manifold}")
    before, task, rows = trained(config, tmp_path)
    after = dict(task.named_parameters())
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    curvatures = [name for name in before if "curvature" in name]
    assert len(curvatures) == (0 if manifold == "euclidean" else 1)
    assert set(curvatures) <= set(moved)
    if sign := {"poincare": -1, "sphere": 1}.get(manifold):
        assert (sign * task.encoder.manifold_out.kappa > 0).all()
    assert math.isfinite(rows[-1]["loss"])


def test_tokengt_is_fpst_on_flat_space(tmp_path):
    """The two configurations differ in their names and in the space, and in nothing else."""
    fpst, tokengt = (composed(model, tmp_path) for model in ("fpst", "tokengt"))
    assert (fpst.manifold.name, tokengt.manifold.name) == ("stereographic", "euclidean")
    plain = [OmegaConf.to_container(config.model) for config in (fpst, tokengt)]
    different = {key for key in plain[0] if plain[0][key] != plain[1][key]}
    assert different == {"name", "label", "_target_"}


@pytest.mark.slow
def test_training_on_a_tiny_graph_reduces_the_loss(tmp_path):
    overrides = ("trainer.max_steps=30", "trainer.steps_per_epoch=1")
    _, _, rows = trained(composed("fpst", tmp_path, *overrides), tmp_path)
    losses = [row["loss"] for row in rows]
    assert len(losses) == 30
    assert losses[-1] < 0.8 * losses[0]
    assert all(math.isfinite(row["kappa/0/0"]) for row in rows)
    assert rows[-1]["kappa/0/0"] != rows[0]["kappa/0/0"]
