"""The same command gives the same weights to the last bit, on as many threads.

Graphs are of a size at which torch's kernels share a gather's gradient among threads, where the
order of a sum is a matter of luck.
"""

import lightning
import pytest
import torch
from tiny_runs import composed
from torch_geometric.data import Data

from composing import different_models, tasks_of
from curvlab.models.triples.ball import RotH
from curvlab.run import reporting
from curvlab.run.parts import build_data, build_task, build_trainer

WEB = ("dataset=synthetic_web", "dataset.source.num_nodes=2000")
TREE = ("dataset=disease_synthetic", "dataset.source.features=12", "split=random_60_20_20")
SHORT = ("trainer.max_steps=4", "trainer.steps_per_epoch=2", "trainer.accelerator=cpu")
MODELS = [m for m in different_models() if not tasks_of(m) and "__" not in m and m != "nagphormer"]

pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder for what is made of the graphs, once for all models."""
    return tmp_path_factory.mktemp("data")


def trained(config, folder):
    """The weights after a few steps, with the kernels that torch takes of its own accord."""
    lightning.seed_everything(config.seed, verbose=False)
    data = build_data(config)
    task = build_task(config, data)
    with reporting.quiet():
        build_trainer(config, torch.device("cpu"), folder, [], None, limit_val_batches=0).fit(
            task, datamodule=data
        )
    return task.state_dict()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("model", MODELS)
def test_the_steps_of_every_model_repeat_on_two_threads(model, data, tmp_path):
    graph = {"hgat": (*TREE, "dataset.source.depth=7")}.get(model, WEB)  # gathers a number an edge
    few = ("model.eigenvectors=4",) if model in ("fpst", "tokengt") else ()
    words = (*graph, *few, f"model={model}", *SHORT, f"paths.data_dir={data}")
    config = composed(tmp_path, words)
    first, second = trained(config, tmp_path), trained(config, tmp_path)
    torch.testing.assert_close(first, second, rtol=0, atol=0, equal_nan=True)


def test_the_biases_of_knowledge_graphs_repeat_on_two_threads():
    """Of 100,000 queries many have the same head and relation."""
    model = RotH(num_entities=3, num_relations=2, dim=2)
    head, relation = (torch.randint(n, (100_000,)) for n in (3, 2))
    noise = torch.randn(100_000, 3)
    loss = (model.scores(Data(head=head, relation=relation)) * noise).sum()
    first, *others = (
        torch.autograd.grad(loss, (model.head_bias, model.curvature.raw), retain_graph=True)
        for _ in range(5)
    )
    assert all(torch.equal(*pair) for other in others for pair in zip(first, other, strict=True))
