"""Runs in double precision: every model and task, with nothing of theirs in float32."""

import math

import pytest
import torch
from tiny_runs import LARGE, PIXELS, TREE

import curvlab.run.train
from composing import different_models, tasks_of

# PyTorch Geometric's making of a sparse matrix, once a process.
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")

DOUBLE = ("trainer.precision=64-true", "trainer.plots=false", "trainer.accelerator=cpu")
SHORT = (*DOUBLE, "trainer.max_steps=10", "trainer.steps_per_epoch=10")
WEB = ("dataset=synthetic_web", "dataset.source.num_nodes=40")
KG = ("dataset=synthetic_kg", "dataset.source.groups=4", "dataset.train_triples=100")
TASKS = {
    "node_classification": (*TREE, *SHORT),
    "link_prediction": (*TREE[:-1], "task=link_prediction", "split=none", *SHORT),
    "reconstruction": (*WEB, *SHORT, "trainer.max_steps=2"),
    "kg_completion": (*KG, *DOUBLE, "trainer.epochs=1"),
    "filter_regression": (*PIXELS, *SHORT),
}
BATCHES = {
    "partition": (*TREE, "model=hypformer", "batching=partition", "batching.size=20"),
    "neighbours": (*TREE, "model=sage", "batching=neighbours", "batching.size=8"),
    "tokens": (*LARGE, "model=polyformer", "batching=tokens", "batching.workers=0"),
}


def task_of(model):
    """The first of the tasks above that a model is made for; an encoder does the same in all."""
    tasks = tasks_of(model)
    return next(task for task in TASKS if task in tasks or (not tasks and task != "kg_completion"))


CASES = [(task_of(model), model) for model in different_models()]
CASES += [("kg_completion", "cat")]
SPACES = ("gcn", "fpst", "hgcn", "hypformer", "lrn")  # a decoder of each
CASES += [(task, model) for task in ("link_prediction", "reconstruction") for model in SPACES]
CASES += [("filter_regression", model) for model in ("gcn", "polyattn_cheb")]


@pytest.fixture
def run_double(run_here, monkeypatch):
    """Run, and return the result and the types of float that modules returned beside float64."""
    made, seen = [], set()
    build = curvlab.run.train.build_task

    def look(module, _, output):
        tensors = output if isinstance(output, tuple) else (output,)
        floats = [t for t in tensors if isinstance(t, torch.Tensor) and t.is_floating_point()]
        seen.update((type(module).__name__, t.dtype) for t in floats if t.dtype != torch.float64)

    def watched(config, data):
        task = build(config, data)
        for part in task.modules():
            part.register_forward_hook(look)
        made.append((task, data))
        return task

    monkeypatch.setattr(curvlab.run.train, "build_task", watched)

    def run(*words):
        result = run_here(*words)
        ((task, data),) = made
        tensors = {**dict(task.named_parameters()), **dict(task.named_buffers())}
        tensors |= {k: v for k, v in data.graph.to_dict().items() if isinstance(v, torch.Tensor)}
        seen.update(
            (name, t.dtype)
            for name, t in tensors.items()
            if t.is_floating_point() and t.dtype != torch.float64
        )
        return result, seen

    return run


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("task", "model"), CASES)
def test_every_model_trains_in_double_precision(run_double, task, model):
    few = ("model.eigenvectors=4",) if model in ("fpst", "tokengt") else ()
    result, single = run_double(f"model={model}", *TASKS[task], *few)
    assert not single
    assert math.isfinite(result.score)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("batching", BATCHES)
def test_mini_batches_in_double_precision(run_double, batching):
    result, single = run_double(*BATCHES[batching], *SHORT)
    assert {name for name, _ in single} <= {"tokens"}  # as they lie on disk
    assert math.isfinite(result.score)
