"""Runs on mini-batches: `batching=partition`, or tokens from disk, and nothing else."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny_runs import LARGE

import curvlab
from curvlab.analysis.embeddings import load_embedding
from curvlab.analysis.filters import load_filters
from curvlab.data.datasets.synthetic_large import SyntheticLarge
from curvlab.data.files.disk_graph import write_disk_graph
from curvlab.data.loaders.token_batches import TokenStore
from curvlab.errors import UsageError
from curvlab.memory import PeakBytes
from curvlab.models.graph_network import GraphNetwork
from curvlab.results.identity import identity_hash
from curvlab.run.command import Command
from curvlab.run.parts import build_data, build_task
from curvlab.run.train import train_in
from curvlab.tasks.written_files import save_embeddings, save_filters

BATCHES = (*LARGE, "batching=partition", "batching.size=100")


@pytest.fixture
def evaluated(watch):
    """Numbers of nodes of what a graph network embeds, out of training."""
    sizes = []

    def note(encoder, batch):
        sizes.extend([] if encoder.training else [batch.num_nodes])

    watch(GraphNetwork, "forward", note)
    return sizes


def test_the_whole_graph_is_embedded_once_per_set_of_weights(run_here, evaluated):
    run_here(*BATCHES, "model=gcn")
    # Choosing weights and the curves evaluate after the same step, the test two parts; two more
    # are of the stored embeddings and the classes' report. Two parts estimate its memory first.
    assert evaluated == [100, 50, *7 * [600]]


def test_parts_are_evaluated_once_per_set_of_weights_and_part_of_the_split(run_here, evaluated):
    run_here(*BATCHES, "model=gcn", "batching.evaluation=parts")
    # Four validations, then the three parts of the split; six subgraphs hold nodes of each.
    assert evaluated.count(100) == 6 * (4 + 3)


def test_parts_of_the_whole_graph_score_as_the_whole_graph(run_here):
    """An MLP sees no edges, so that a node's logits are the same in any subgraph."""
    words = (*BATCHES, "model=mlp", "trainer.max_steps=20")
    whole = run_here(*words, folder="whole")
    parts = run_here(*words, "batching.evaluation=parts", folder="parts")
    assert parts.metrics["test"]["accuracy"] == whole.metrics["test"]["accuracy"]
    assert identity_hash(parts.config) != identity_hash(whole.config)


@pytest.mark.parametrize("batching", ["partition", "neighbours"])
def test_evaluation_in_parts_sees_no_more_than_a_part_and_repeats(run_here, tmp_path, batching):
    words = (*LARGE, f"batching={batching}", "batching.size=100", "model=hypformer")
    words += ("batching.evaluation=parts", "trainer.steps_per_epoch=10", "trainer.max_steps=20")
    result = run_here(*words)
    run = curvlab.load(tmp_path / "run")
    assert run.evaluate()["test"] == result.metrics["test"]
    assert run.embed().shape == (600, run.model.dim_out)
    assert len(run.predict()) == 600


def test_a_whole_graph_that_does_not_fit_is_refused_before_training(run_here, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=5e5))
    with pytest.raises(UsageError, match=r"^evaluation .* 0\.\d GB.* batching.evaluation=parts"):
        run_here(*BATCHES, "model=hypformer", "model.dim=64")


def test_the_estimate_is_nearly_what_the_whole_graph_takes(run_here, tmp_path, monkeypatch):
    needed = []
    place = "curvlab.tasks.node_classification.check_memory"
    monkeypatch.setattr(place, lambda _, size, *__: needed.append(size))
    run_here(*BATCHES, "model=hypformer", "model.dim=64")
    run = curvlab.load(tmp_path / "run")
    with torch.no_grad(), PeakBytes() as made:
        run.model(run.prepare())
    assert 0.75 * made.peak < needed[0] < made.peak  # parts have not all edges of their nodes
    assert len(needed) == 1


TOKENS = (
    *LARGE,
    "batching=tokens",
    "batching.size=100",
    "batching.workers=0",
    "trainer.max_steps=30",
    "model.orders=3",
    "model.dim=16",
    "optimizer.lr=0.01",
)


def test_scores_are_those_of_the_graph_in_memory(run_here):
    """One batch of all training nodes is the whole graph in memory, in another order."""
    words = ("model=polyformer", *TOKENS, "model.dropout=0", "model.attention_dropout=0")
    disk = run_here(*words, "batching.size=1000", folder="disk")
    whole = run_here(
        *(w for w in words if "batching" not in w), "trainer.validate_every=10", folder="memory"
    )
    assert disk.val_score == pytest.approx(whole.val_score, abs=0.7)  # a node of 150
    assert disk.metrics["test"] == pytest.approx(whole.metrics["test"], abs=0.7)


def test_other_runs_find_graph_and_tokens_unless_they_are_damaged(run_here, tmp_path, monkeypatch):
    """A worker reads what the process reads."""
    words = ("model=polyformer", *TOKENS, "trainer.max_steps=10")
    alone = run_here(*words, folder="alone")
    monkeypatch.setattr(TokenStore, "compute", lambda *_: pytest.fail("computed again"))
    helped = run_here(*words, "batching.workers=1", folder="helped")
    assert (helped.metrics, helped.config_hash) == (alone.metrics, alone.config_hash)
    (path,) = tmp_path.rglob("tokens.bin")
    with path.open("r+b") as file:
        file.write(b"\xff")
    with pytest.raises(UsageError, match=r"tokens\.bin is not what was written there: delete"):
        run_here(*words, "seed=1", folder="second")
    (path,) = tmp_path.rglob("labels.bin")
    path.unlink()
    with pytest.raises(UsageError, match=r"labels\.bin is not what was written there: delete"):
        run_here(*words, "seed=1", folder="second")


def test_of_runs_that_start_together_one_writes_graph_and_tokens(prepared, monkeypatch, caplog):
    """Each way to the disk leads through the first process, which waits to be waited for."""
    caplog.set_level("INFO", logger="curvlab.data.loaders.token_batches")
    config, *_ = prepared("model=polyformer", *TOKENS)
    written, compute, write = [], TokenStore.compute, SyntheticLarge.to_disk

    def watched(source, folder):
        written.append("graph")
        deadline = time.monotonic() + 30
        while not caplog.messages and len(written) == 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        return write(source, folder)

    def counted(store, memory):
        written.append("tokens")
        compute(store, memory)

    monkeypatch.setattr(SyntheticLarge, "to_disk", watched)
    monkeypatch.setattr(TokenStore, "compute", counted)
    modules = [build_data(config) for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda module: module.graph, modules)
    assert written == ["graph", "tokens"]
    assert re.search(r"(process \d+ on \S+|another process) is at work in", caplog.text)
    assert torch.equal(first.tokens, second.tokens)


def test_a_pass_takes_every_training_node_once_in_an_order_of_its_own(prepared):
    config, *_ = prepared("model=polyformer", *TOKENS)
    data = build_data(config)
    rounds = data.rounds(0, batches=2)
    rows = torch.cat([part for parts in rounds for part in parts])
    assert torch.equal(rows.sort().values, data.graph.train_mask.nonzero().squeeze(-1))
    assert len(rows) == 300
    assert [len(parts) for parts in rounds] == [2, 2]
    batch = data.batch(rounds[0][0])
    assert torch.equal(batch.y, data.graph.y[rounds[0][0]])
    assert batch.tokens.shape == (75, 4, 8)
    again, other = (build_data(config).rounds(number, batches=2) for number in (0, 1))
    assert torch.equal(again[0][0], rounds[0][0])
    assert not torch.equal(other[0][0], rounds[0][0])


@pytest.mark.nightly
def test_two_processes_with_a_worker_each(prepared):
    words = ("model=polyformer", *TOKENS, "batching.workers=1", "trainer=ddp")
    config, _, folder = prepared(*words, "trainer.max_steps=20")
    result = train_in(Command.from_hydra(config), folder, multirun=False)
    assert result.metrics["test"]["accuracy"] > 50


@pytest.mark.parametrize("step", [1, 3], ids=["all have a label", "a third"])
def test_embeddings_and_filters_are_saved_by_node(prepared, tmp_path, monkeypatch, step):
    """Those that the graph in memory has of the nodes with a label, which the file shuffles."""

    def to_disk(source, folder):
        data = source.load()
        data.labelled = torch.arange(600) % step == 0
        return write_disk_graph(folder, data)

    monkeypatch.setattr(SyntheticLarge, "to_disk", to_disk)
    words = ("model=polyattn_mono", *TOKENS, "model.hidden=false")
    data = build_data(prepared(*words)[0])
    task = build_task(prepared(*words)[0], data)
    memory = [w for w in words if "batching" not in w]
    whole = build_data(prepared(*memory, "trainer.validate_every=10")[0])
    found, expected = tmp_path / "found", tmp_path / "expected"
    for graph, folder in ((data.graph, found), (whole.graph, expected)):
        save_embeddings(task.encoder, graph, folder)
        save_filters(task.encoder, graph, folder)
    points, of_all = (load_embedding(folder / "embeddings.npz") for folder in (found, expected))
    filters, all_filters = (load_filters(folder / "filters.npz") for folder in (found, expected))
    nodes = torch.arange(0, 600, step)
    assert points.nodes.equal(nodes)
    assert filters["nodes"].tolist() == nodes.tolist()
    assert of_all.nodes is None
    assert "nodes" not in all_filters
    assert points.classes.equal(whole.graph.y[nodes])
    torch.testing.assert_close(points.points, of_all.points[nodes], atol=1e-5, rtol=1e-4)
    expected = all_filters["coefficients"][nodes.numpy()]
    np.testing.assert_allclose(filters["coefficients"], expected, atol=1e-5, rtol=1e-4)
