"""Two processes that hold the rows of their nodes train as one that holds the graph."""

import halo_steps as work
import pandas as pd
import pytest
import torch
from hydra.types import RunMode
from tiny_runs import composed

from curvlab.config.rules import validate
from curvlab.errors import UsageError
from curvlab.run.distributed import launch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]

RUN = (
    "dataset=synthetic_large",
    "dataset.source.num_nodes=201",
    "dataset.source.classes=3",
    "dataset.source.features=8",
    "model.dropout=0",
    "trainer.accelerator=cpu",
    "trainer.precision=64-true",
    "trainer.max_steps=12",
    "trainer.steps_per_epoch=3",
    "trainer.validate_every=3",
    "trainer.plots=false",
)
PAIR = ("batching=halo", "trainer=ddp", "trainer.devices=2")
HYPFORMER = ("model=hypformer", "model.transformer=false", "model.dim=8")


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    launch(work.all_steps, 2, str(folder))
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("split", work.SPLITS)
@pytest.mark.parametrize("model", work.MODELS)
def test_loss_and_gradients_are_those_of_the_whole_graph(steps, model, split):
    before = torch.get_default_dtype()
    try:
        loss, gradients = work.step(model, work.prepared(model))
    finally:
        torch.set_default_dtype(before)
    for found in steps:
        torch.testing.assert_close(found[model, split][0], loss, rtol=1e-10, atol=1e-10)
        assert found[model, split][1].keys() == gradients.keys()
        for name, gradient in gradients.items():
            same = found[model, split][1][name]
            torch.testing.assert_close(same, gradient, rtol=1e-8, atol=1e-10, msg=name)


@pytest.mark.usefixtures("keeps_last")
@pytest.mark.parametrize(
    "model",
    [
        ("model=gcn", "batching.partition=random"),
        pytest.param(("model=sgc",), marks=pytest.mark.nightly),
        pytest.param(("model=hgcn",), marks=pytest.mark.nightly),
        (*HYPFORMER, "model.graph_branch.dropout=0"),
    ],
)
def test_a_run_is_that_of_one_process(run_here, tmp_path, model):
    pair = run_here(*RUN, *PAIR, *model, folder="pair")
    model = [word for word in model if not word.startswith("batching")]
    alone = run_here(*RUN, *model, folder="alone")
    assert pair.best_step == alone.best_step
    for part, scores in alone.metrics.items():
        assert pair.metrics[part] == pytest.approx(scores, rel=1e-9)
    curves = [pd.read_csv(tmp_path / folder / "metrics.csv") for folder in ("pair", "alone")]
    columns = ["step", "loss", "val/accuracy", "val/f1_macro"]
    pd.testing.assert_frame_equal(*(curve[columns] for curve in curves), rtol=1e-9)
    states = [
        torch.load(tmp_path / folder / "checkpoints" / "last.ckpt", weights_only=True)
        for folder in ("pair", "alone")
    ]
    for name, weight in states[0]["state_dict"].items():
        torch.testing.assert_close(weight, states[1]["state_dict"][name], rtol=1e-8, atol=1e-10)


def test_one_process_has_all_rows(run_here):
    one = run_here(*RUN, "model=gcn", "batching=halo", folder="one")
    alone = run_here(*RUN, "model=gcn", folder="alone")
    assert one.metrics == alone.metrics


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("model=gat",), "nodes of model=gat see each other by more than a sparse product"),
        (("model=hgat",), "nodes of model=hgat see"),
        (("model=hypformer",), "takes model.transformer=false"),
        (("model=gcn", "model.skip_average=true"), "takes model.skip_average=false"),
        (("model=gcn", "model.normalisation=batch"), "batch normalisation would be by the rows"),
        (
            (*HYPFORMER, "model.graph_branch.batch_norm=true"),
            "batch normalisation would be by the rows",
        ),
    ],
)
def test_what_rows_cannot_do_is_refused(run_here, words, sentence):
    with pytest.raises(UsageError, match=sentence):
        run_here(*RUN, *PAIR, *words)


def test_training_on_links_has_no_rows(tmp_path):
    with pytest.raises(UsageError, match="the loss of task=reconstruction is of the whole graph"):
        validate(composed(tmp_path, ("task=reconstruction", "batching=halo"), RunMode.RUN))
