"""SGFormer in the code of Wu et al. 2023, its part for small graphs."""

from importlib import import_module
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.authors.code import Code, Comparison, Theirs, copy, copy_affine, their_step
from benchmarks.timings import Run

CODE = Code(
    "SGFormer",
    "https://github.com/qitianwu/SGFormer",
    root="medium",
    file="medium/ours.py",
    unused=("torch_sparse",),
)


def _sgformer(run: Run) -> Theirs:
    task, batch, config = run
    encoder = task.encoder
    options, branch = config.model, config.model.graph_branch
    classes, features = len(task.decoder.weight), batch.x.shape[1]
    network = import_module("models").GCN(
        features, options.dim, options.dim, branch.layers, branch.dropout, use_bn=False
    )
    model = import_module("ours").SGFormer(
        features,
        options.dim,
        classes,
        num_layers=options.layers,
        num_heads=options.heads,
        dropout=options.dropout,
        use_bn=options.layer_norm,
        use_residual=options.residual,
        use_weight=options.value_map,
        graph_weight=options.graph_weight,
        gnn=network,
    )
    transformer = model.trans_conv
    copy_affine(encoder.transformer.features, transformer.fcs[0])
    for attention, layer in zip(encoder.transformer.layers, transformer.convs, strict=True):
        copy_affine(attention.queries, layer.Wq)
        copy_affine(attention.keys, layer.Wk)
    parts = encoder.graph_branch.maps, encoder.graph_branch.biases, network.convs
    for linear, bias, convolution in zip(*parts, strict=True):
        copy(linear.weight, convolution.lin.weight)
        copy(bias, convolution.bias)
    copy_affine(task.decoder, model.fc)
    data = SimpleNamespace(
        graph={"node_feat": batch.x, "edge_index": batch.edge_index, "num_nodes": batch.num_nodes}
    )
    nodes = batch.train_mask.nonzero().squeeze(1)

    def loss() -> Tensor:
        logits = F.log_softmax(model(data), dim=1)
        return F.nll_loss(logits[nodes], batch.y[nodes])

    groups = [
        {"params": model.params1, "weight_decay": options.transformer_weight_decay},
        {"params": model.params2, "weight_decay": config.optimizer.weight_decay},
    ]
    optimizer = torch.optim.Adam(groups, lr=config.optimizer.lr)
    step = their_step(model, optimizer, loss, config.trainer.gradient_clip)
    return Theirs(model, lambda: [model(data)], lambda: [task.decoder(encoder(batch))], step)


COMPARISONS = (
    Comparison(
        "SGFormer, Cora",
        CODE,
        ("model=sgformer", "dataset=cora", "split=random_per_class"),
        _sgformer,
    ),
)
