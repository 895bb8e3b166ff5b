"""Steps as an accelerator would make them: none waits for it, or has tensors beside it."""

import pytest
import torch
from accelerator import passing_for_an_accelerator
from lightning import Callback
from tiny_runs import FAST, LARGE, PIXELS, TINY, TREE, TRIPLES, composed

from composing import different_models, tasks_of
from curvlab.run import train
from tiny_data import built

LINKS = (*TREE[:3], "task=link_prediction", "trainer.accelerator=cpu")
TOKENS = (*LARGE, "batching=tokens", "batching.size=100", "batching.workers=0")
PARTITION = (*TREE, "batching=partition", "batching.size=30")
GRAPHS = {
    "node_classification": TREE,
    "link_prediction": LINKS,
    "reconstruction": TINY,
    "kg_completion": TRIPLES,
    "filter_regression": PIXELS,
    "tokens": TOKENS,
    "partition": PARTITION,
}
WAITING = {  # models that have to, and the files where
    "chebnet": {"cheb_conv.py", "loop.py"},  # ChebConv looks for edges of nodes to themselves
    "graphgps": {"gps_conv.py", "loop.py", "test_waiting.py"},  # GPSConv masks what is no node
    "idgl": {"idgl.py"},  # learns the graph until that changes no more
}
STEPS = 3
"""After which all is as in later ones: the graph has been seen, optimisers have their state."""


MODELS = {
    "node_classification": [
        model
        for model in different_models()
        if not tasks_of(model) or "node_classification" in tasks_of(model)
    ],
    "link_prediction": ["gcn", "hgcn", "hypformer", "lrn"],
    "reconstruction": ["fpst", "gcn", "hgcn", "q_gcn"],
    "kg_completion": [
        *("cat", "cat_eee", "cat_mlp", "cat_spherical", "cat_uniform", "complex", "distmult"),
        *("transe", "rotate", "murp", "roth", "atth"),
    ],
    "filter_regression": ["gprgnn", "polyattn_cheb"],
    "tokens": ["polyformer"],
    "partition": ["chebnet2", "hypformer"],
}
CASES = [(graph, model) for graph, models in MODELS.items() for model in models]


@pytest.fixture(params=CASES, ids="-".join)
def parts(request, tmp_path):
    """Data, task and optimiser of a small run, and the file where it has to wait."""
    graph, model = request.param
    words = ["model.eigenvectors=4"] if model in ("fpst", "tokengt", "nagphormer") else []
    config = composed(tmp_path, (*GRAPHS[graph], f"model={model}", *words))
    return *built(config), WAITING.get(model, set())


def gradients(task, batch):
    """Loss and gradients of a batch without dropout."""
    torch.manual_seed(0)
    task.eval().zero_grad()
    loss = task.training_step(batch, 0)
    loss.backward()
    return {"loss": loss.detach()} | {
        name: p.grad.clone() for name, p in task.named_parameters() if p.grad is not None
    }


@pytest.mark.sampled(4)
def test_a_step_of_training_neither_waits_nor_differs(parts):
    """After the first steps, and from the same step on the processor, whose kernels are others."""
    data, task, optimizer, waiting = parts
    for i, batch in zip(range(1 + STEPS), data.train_dataloader(), strict=False):
        optimizer.zero_grad()
        with passing_for_an_accelerator() as found:
            task.training_step(batch, i).backward()
            optimizer.step()
    assert i == STEPS
    assert [where for where in found if not any(file in where for file in waiting)] == []
    with passing_for_an_accelerator():
        there = gradients(task, batch)
    here = gradients(task, batch)
    assert there.keys() == here.keys()
    for name, gradient in here.items():  # rounding in float32 is relative to the largest entry
        tolerance = 1e-5 + 0.01 * gradient.abs().max().item()
        torch.testing.assert_close(there[name], gradient, rtol=0.0, atol=tolerance, msg=name)


class Around(Callback):
    """Before all that happens in a step, and with the same context after it."""

    def __init__(self, at, entered):
        self.at, self.entered, self.found, self._context = at, entered, [], None

    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == self.at and self.entered is None:
            self._context = passing_for_an_accelerator()
            self.found = self._context.__enter__()

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == self.at + 1 and self.entered is not None:
            self.entered._context.__exit__(None, None, None)


@pytest.mark.parametrize(
    "words",
    [
        (*FAST, "model=fpst", "model.eigenvectors=4"),
        (*TREE, "model=gcn", "trainer.plots=false"),
        (*TREE, "model=lrn", "trainer.plots=false", "trainer.gradient_clip=1"),
        (*TRIPLES, "model=cat", "trainer.plots=false"),
    ],
    ids=["reconstruction", "node_classification", "hyperbolic", "kg_completion"],
)
def test_what_a_run_does_around_a_step_does_not_wait(run_here, monkeypatch, words):
    """Callbacks, among them the choice of the best weights, on a step that is not logged."""
    first = Around(8, None)
    last = Around(8, first)
    build = train.build_trainer

    def watched(config, device, folder, callbacks, *others, **options):
        return build(config, device, folder, [first, *callbacks, last], *others, **options)

    monkeypatch.setattr(train, "build_trainer", watched)
    assert run_here(*words, "trainer.max_steps=12").status == "finished"
    assert first._context is not None
    assert first.found == []


class _Waits(torch.autograd.Function):
    """Reads a value in its backward where it is on an accelerator."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        assert gradient.device.type == "cuda"
        return gradient * gradient.sum().item()


@pytest.mark.parametrize("backward", [torch.Tensor.backward, torch.autograd.backward])
def test_what_waits_in_a_backward_is_seen(backward):
    x = torch.ones(2, requires_grad=True)
    with passing_for_an_accelerator() as found:
        backward(_Waits.apply(x).sum())
        torch.autograd.grad(_Waits.apply(x).sum(), x)
    assert [line.split(":")[0] for line in found] == ["_local_scalar_dense"] * 2
    assert x.grad.tolist() == [2.0, 2.0]
