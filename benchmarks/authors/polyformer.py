"""PolyFormer in the code of Ma et al. 2024."""

import argparse
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.authors.code import Code, Comparison, Theirs, copy, copy_affine, their_step
from benchmarks.timings import Run

CODE = Code(
    "PolyFormer",
    "https://github.com/air029/PolyFormer",
    root="node_classification",
    file="node_classification/mymodels.py",
    unused=("dgl", "torch_sparse"),
)


def _polyformer(run: Run) -> Theirs:
    """Build their model and its tokens of all nodes, which are made once."""
    task, batch, config = run
    encoder, ours = task.encoder, config.model
    options = argparse.Namespace(
        dataset=config.dataset.name,
        base=ours.basis,
        K=ours.orders,
        nlayer=ours.layers,
        num_features=batch.x.shape[1],
        num_classes=len(task.decoder.weight),
        hidden=ours.dim,
        n_head=ours.heads,
        d_ffn=ours.ffn_dim,
        multi=ours.layer.expansion,
        q=ours.layer.power,
        dropout=ours.dropout,
        dprate=ours.attention_dropout,
    )
    model = import_module("mymodels").PolyFormer(None, options)
    copy_affine(encoder.input, model.lin1)
    copy_affine(encoder.hidden, model.lin2)
    copy_affine(task.decoder, model.lin3)
    parts = encoder.mixers, encoder.feed_forwards, model.attn
    for mixer, feed_forward, block in zip(*parts, strict=True):
        _copy_attention(mixer, block.attnmodule)
        copy_affine(feed_forward.norm, block.ffnmodule.ffn_norm)
        copy_affine(feed_forward.inner, block.ffnmodule.ffn_net.lin1)
        copy_affine(feed_forward.outer, block.ffnmodule.ffn_net.lin2)
    tokens = import_module("utils").get_base(ours.basis, ours.orders, batch.x, batch.edge_index)
    data = SimpleNamespace(list_mat=tokens)

    def loss() -> Tensor:
        return F.cross_entropy(model(data)[batch.train_mask], batch.y[batch.train_mask])

    attention = {"lr": ours.attention_lr, "weight_decay": ours.attention_weight_decay}
    rest = {"lr": config.optimizer.lr, "weight_decay": config.optimizer.weight_decay}
    optimizer = torch.optim.Adam(
        {"params": parameter} | (attention if "attnmodule" in name else rest)
        for name, parameter in model.named_parameters()
    )
    step = their_step(model, optimizer, loss, config.trainer.gradient_clip)
    return Theirs(model, lambda: [model(data)], lambda: [task.decoder(encoder(batch))], step)


def _copy_attention(ours: Any, theirs: Any) -> None:
    copy_affine(ours.norm, theirs.norm)
    for order, (inner, _, outer) in enumerate(theirs.token_wise_network):
        copy(ours.mlp.weight1[order].T, inner.weight)
        copy(ours.mlp.bias1[order, 0], inner.bias)
        copy(ours.mlp.weight2[order].T, outer.weight)
        copy(ours.mlp.bias2[order, 0], outer.bias)
    copy(ours.query.weight, theirs.W_Q.weight)
    copy(ours.key.weight, theirs.W_K.weight)
    copy(ours.beta, theirs.bias_scale)


COMPARISONS = (
    Comparison(
        "PolyFormer (Mono), Citeseer",
        CODE,
        ("model=polyformer", "dataset=citeseer__quota"),
        _polyformer,
    ),
    Comparison(
        "PolyFormer (Cheb), Citeseer",
        CODE,
        ("model=polyformer_cheb", "dataset=citeseer__quota"),
        _polyformer,
    ),
)
