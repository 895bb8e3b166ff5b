"""HGCN in the code of Chami et al. 2019."""

import argparse
from importlib import import_module

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.authors.code import Code, Comparison, Theirs, copy_affine, their_step
from benchmarks.timings import Run
from curvlab.graph.sparse_graph import SparseGraph

CODE = Code(
    "HGCN",
    "https://github.com/HazyResearch/hgcn",
    root="",
    file="optimizers/radam.py",
)


def _hgcn(run: Run) -> Theirs:
    """Build their model of the Poincare ball, at c = 1; the decoder counts as a layer of theirs."""
    task, batch, config = run
    encoder = task.encoder
    options = argparse.Namespace(
        model="HGCN",
        task="nc",
        manifold="PoincareBall",
        c=1.0,
        cuda=-1,
        feat_dim=batch.x.shape[1],
        n_nodes=batch.num_nodes,
        n_classes=len(task.decoder.weight),
        dim=encoder.dim,
        num_layers=len(encoder.linears) + 1,
        act=config.model.activation,
        dropout=config.model.dropout,
        bias=1,
        use_att=0,
        local_agg=0,
        pos_weight=0,
    )
    model = import_module("models.base_models").NCModel(options)
    for mine, layer in zip(encoder.linears, model.encoder.layers, strict=True):
        copy_affine(mine, layer.linear)
    copy_affine(task.decoder, model.decoder.cls.linear)
    graph = SparseGraph.from_data(batch)
    features = graph.features.dense
    adjacency = graph.matrix("adj_t")
    target, source = adjacency.ends
    shape = batch.num_nodes, batch.num_nodes
    neighbours = torch.sparse_coo_tensor(
        torch.stack([target, source]),
        adjacency.degrees[target].reciprocal(),
        shape,
        check_invariants=False,
    ).coalesce()
    nodes = batch.train_mask.nonzero().squeeze(1)

    def loss() -> Tensor:
        logits = model.decode(model.encode(features, neighbours), neighbours, nodes)
        return F.nll_loss(logits, batch.y[nodes], model.weights)

    def outputs() -> list[Tensor]:
        points = model.encode(features, neighbours)
        return [points, model.decoder.decode(points, neighbours)]

    def ours() -> list[Tensor]:
        points = encoder(batch)
        return [points, task.decoder(points)]

    optimizer = import_module("optimizers").Adam(
        model.parameters(),
        lr=config.optimizer.lr,
        weight_decay=config.optimizer.weight_decay,
    )
    step = their_step(model, optimizer, loss, config.trainer.gradient_clip)
    return Theirs(model, outputs, ours, step)


COMPARISONS = (
    Comparison(
        "HGCN, one convolution, Airport",
        CODE,
        (
            "model=hgcn",
            "dataset=airport_hgcn",
            "model.layers=1",
            "manifold.kappa=-1.0",
            "manifold.learnable=false",
        ),
        _hgcn,
    ),
)
