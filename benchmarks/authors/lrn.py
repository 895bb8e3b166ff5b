"""HyboNet and LRN in the code of LRN (He et al. 2024)."""

import argparse
from importlib import import_module

import torch
from torch import Tensor

from benchmarks.authors.code import Code, Comparison, Theirs, copy, copy_affine, their_step
from benchmarks.timings import Run
from curvlab.graph.sparse_graph import SparseGraph
from curvlab.models.hybonet import LRN

CODE = Code(
    "LRN and HyboNet",
    "https://github.com/Graph-and-Geometric-Learning/LResNet",
    root="homophilous",
    file="homophilous/train.py",
)


def _hyperbolic_gnn(run: Run) -> Theirs:
    """Build their model at c = 1, where the two conventions of their code are one."""
    task, batch, config = run
    encoder, graph = task.encoder, SparseGraph.from_data(batch)
    residual = isinstance(encoder, LRN)
    links = "train_edges" in batch
    layers = [encoder.features, *encoder.linears]
    options = argparse.Namespace(
        **{"manifold": "Lorentz", "c": 1.0, "cuda": -1, "device": "cpu", "use_att": 0},
        **{"local_agg": 0, "bias": 1, "r": 2.0, "t": 1.0, "nb_false_edges": 1, "nb_edges": 1},
        feat_dim=batch.x.shape[1],
        n_nodes=batch.num_nodes,
        dim=len(layers[0].weight),
        task="lp" if links else "nc",
        model="SkipHGNN" if residual else "HyboNet",
        num_layers=len(layers) + (0 if links else 1),
        dropout=config.model.dropout,
        act=config.model.activation,
        margin=task.decoder.margin if links else config.task.margin,
        n_classes=None if links else task.decoder.prototypes.shape[0],
    )
    models = import_module("models.base_models")
    model = (models.LPModel if links else models.NCModel)(options)
    model.to(torch.float32)
    for mine, layer in zip(layers, model.encoder.layers, strict=True):
        linear = layer.linear1 if residual else layer.linear
        copy_affine(mine, linear.weight)
        copy(mine.point.log_scale, linear.scale)
    if not links:
        copy(task.decoder.prototypes, model.decoder.cls)
        copy(-task.decoder.bias, model.decoder.bias)
    features = graph.features.dense
    adjacency = graph.matrix("adj_t")
    target, source = adjacency.ends
    entries = torch.stack([target, source]), adjacency.rows[2]
    shape = batch.num_nodes, batch.num_nodes
    neighbours = torch.sparse_coo_tensor(*entries, shape, check_invariants=False).coalesce()

    def loss() -> Tensor:
        points = model.encode(features, neighbours)
        if links:
            edges = batch.train_edges.T
            apart = torch.randint(batch.num_nodes, edges.shape)
            pairs = [model.decode(points, nodes) for nodes in (edges, apart)]
            found: Tensor = model.loss(torch.stack(pairs, dim=-1))
            return found
        nodes = batch.train_mask.nonzero().squeeze(1)
        logits = model.decode(points, neighbours, nodes)
        correct = logits.gather(1, batch.y[nodes].unsqueeze(-1))
        return torch.relu(model.margin - correct + logits).mean()

    def outputs() -> list[Tensor]:
        points = model.encode(features, neighbours)
        return [points] if links else [points, model.decoder.decode(points, neighbours)]

    def ours() -> list[Tensor]:
        points = encoder(batch)
        return [points] if links else [points, task.decoder(points)]

    kept = config.optimizer.get("weight_decay", 0.0)
    decayed = [p for n, p in model.named_parameters() if "bias" not in n and "scale" not in n]
    others = [p for n, p in model.named_parameters() if "bias" in n or "scale" in n]
    groups = [
        {"params": decayed, "weight_decay": kept},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = import_module("optim").RiemannianAdam(
        params=groups, lr=config.optimizer.lr, stabilize=10
    )
    step = their_step(model, optimizer, loss, config.trainer.gradient_clip)
    return Theirs(model, outputs, ours, step)


UNIT = ("manifold.kappa=-1.0", "manifold.learnable=false")
COMPARISONS = (
    Comparison(
        "LRN, links of Disease",
        CODE,
        ("model=lrn", "dataset=disease_lp", *UNIT),
        _hyperbolic_gnn,
    ),
    Comparison(
        "LRN, Airport",
        CODE,
        ("model=lrn", "dataset=airport_hgcn", *UNIT),
        _hyperbolic_gnn,
    ),
    Comparison(
        "HyboNet, Airport",
        CODE,
        ("model=hybonet", "dataset=airport_hgcn", "model.time_offset=0.5", *UNIT),
        _hyperbolic_gnn,
    ),
)
