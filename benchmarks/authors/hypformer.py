"""Hypformer in the code of Yang et al. 2024, its part for small graphs."""

import argparse
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.authors.code import Code, Comparison, Theirs, copy, copy_affine, their_step
from benchmarks.timings import Run

CODE = Code(
    "Hypformer",
    "https://github.com/Graph-and-Geometric-Learning/hyperbolic-transformer",
    root="medium",
    file="medium/hypformer.py",
)


def _hypformer(run: Run) -> Theirs:
    task, batch, config = run
    encoder, decoder, optimizer = task.encoder, task.decoder, config.optimizer
    branch = config.model.graph_branch
    prototypes = encoder.graph_lift is not None
    parse = import_module("parse")
    parser = argparse.ArgumentParser()
    parse.parser_add_main_args(parser)
    options = parser.parse_args(
        [], argparse.Namespace(method="hypformer", in_channels=batch.x.shape[1])
    )
    vars(options).update(
        device=batch.x.device,
        hidden_channels=config.model.dim,
        out_channels=len(decoder.prototypes) if prototypes else len(decoder.weight),
        decoder_type="hyp" if prototypes else "euc",
        graph_weight=encoder.graph_weight,
        k_in=-1 / config.model.kappa_in,
        k_out=-1 / encoder.space.kappa.item(),
        power_k=config.model.attention.power,
        trans_num_layers=config.model.layers,
        trans_num_heads=config.model.heads,
        trans_dropout=config.model.dropout,
        trans_use_bn=int(config.model.layer_norm),
        trans_use_residual=int(config.model.residual),
        trans_use_act=int(config.model.input_activation),
        gnn_num_layers=branch.layers,
        gnn_dropout=branch.dropout,
        gnn_use_bn=int(branch.batch_norm),
        gnn_use_residual=int(branch.residual),
        gnn_use_weight=int(branch.weight),
        gnn_use_init=int(branch.initial),
        gnn_use_act=int(branch.activation),
        lr=optimizer.lr,
        weight_decay=optimizer.weight_decay,
        hyp_lr=optimizer.manifold_lr,
        hyp_weight_decay=optimizer.manifold_weight_decay,
    )
    model = parse.parse_method(options, batch.x.device)
    _copy_transformer(encoder.transformer, model.trans_conv)
    _copy_graph_branch(encoder.graph_branch, model.graph_conv)
    if prototypes:
        copy_affine(encoder.graph_lift, model.decode_graph.linear)
        copy(decoder.prototypes, model.decode_trans.cls)
        copy(decoder.bias, model.decode_trans.bias)
    else:
        weights = decoder.weight.chunk(2, dim=1)
        for weight, part in zip(weights, (model.decode_trans, model.decode_graph), strict=True):
            copy(weight, part.weight)
            copy(decoder.bias, part.bias)
    graph = {"node_feat": batch.x, "edge_index": (batch.edge_index,)}
    dataset = SimpleNamespace(graph=graph)
    nodes = batch.train_mask.nonzero().squeeze(1)

    def loss() -> Tensor:
        logits = F.log_softmax(model(dataset), dim=1)
        return F.nll_loss(logits[nodes], batch.y[nodes])

    their_optimizer = import_module("manifolds.hyp_layer").Optimizer(model, options)
    step = their_step(model, their_optimizer, loss, config.trainer.gradient_clip)
    return Theirs(model, lambda: [model(dataset)], lambda: [decoder(encoder(batch))], step)


def _copy_transformer(ours: Any, theirs: Any) -> None:
    copy_affine(ours.features, theirs.fcs[0].linear)
    copy_affine(ours.position, theirs.positional_encoding.linear)
    copy_affine(ours.last, theirs.fcs[-1].linear)
    for attention, layer in zip(ours.attentions, theirs.convs, strict=True):
        maps = [part.linear for kind in (layer.Wq, layer.Wk, layer.Wv) for part in kind]
        weights, biases = (
            parameter.chunk(len(maps))
            for parameter in (attention.projection.weight, attention.projection.bias)
        )
        for part, weight, bias in zip(maps, weights, biases, strict=True):
            copy(weight, part.weight)
            copy(bias, part.bias)
        copy_affine(attention.psi, layer.v_map_mlp)


def _copy_graph_branch(ours: Any, theirs: Any) -> None:
    copy_affine(ours.features, theirs.fcs[0])
    for mine, layer in zip(ours.maps, theirs.convs, strict=True):
        if isinstance(mine, nn.Linear):
            copy_affine(mine, layer.W)


NO_DROPOUT = ("model.dropout=0.0",)
"""Their dropout moves points to another space, in training alone."""

COMPARISONS = (
    Comparison(
        "Hypformer, Airport",
        CODE,
        ("model=hypformer__as_released", "dataset=airport_hgcn"),
        _hypformer,
        NO_DROPOUT,
    ),
    Comparison(
        "Hypformer, Cora",
        CODE,
        ("model=hypformer__as_released", "dataset=cora", "split=random_per_class"),
        _hypformer,
        NO_DROPOUT,
    ),
)
