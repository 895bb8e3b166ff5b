"""A step of training by the rows of a process, which the tests' processes import by its name."""

from functools import partial
from pathlib import Path

import torch
from torch_geometric.data import Data

from curvlab.data.loaders.halo import HaloDataModule
from curvlab.layers.graph_propagation import GraphConvolutionBranch
from curvlab.manifolds import PoincareBall
from curvlab.models.gcn import GCN
from curvlab.models.hgcn import HGCN
from curvlab.models.hypformer import Hypformer
from curvlab.models.sgc import SGC
from curvlab.tasks.node_classification import NodeClassification

NODES = 41
BRANCH = partial(GraphConvolutionBranch, layers=3, weight=True, initial=True)
MODELS = {
    "gcn": partial(GCN, dim=6, layers=3, skip_average=False),
    "gcn with layer norm": partial(
        GCN, dim=6, layers=2, skip_average=False, normalisation="layer", residual=True
    ),
    "sgc": partial(SGC, K=2, dim=6, layers=2, skip_average=False),
    "hgcn": partial(HGCN, manifold=PoincareBall, dim=6, layers=2),
    "hypformer": partial(Hypformer, graph_branch=BRANCH, dim=6, transformer=False),
}
SPLITS = {
    "odd": torch.arange(NODES) % 3 == 0,  # 14 and 27
    "apart": torch.arange(NODES) >= 30,  # the last nodes are a component of their own
    "untrained": torch.arange(NODES) < 12,  # whose nodes are not for training
}


def graph():
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(30, (2, 70), generator=generator)
    second = torch.randint(30, NODES, (2, 20), generator=generator)
    edges = torch.cat([first, second], 1)
    edges = edges[:, edges[0] != edges[1]]
    return Data(
        x=torch.randn(NODES, 5, generator=generator, dtype=torch.float64),
        y=torch.randint(3, (NODES,), generator=generator),
        edge_index=torch.cat([edges, edges.flip(0)], 1).unique(dim=1),
        train_mask=(torch.arange(NODES) % 4 == 1) & (torch.arange(NODES) >= 12),
        val_mask=torch.arange(NODES) % 4 == 2,
        test_mask=torch.arange(NODES) % 4 == 3,
        num_nodes=NODES,
    )


class Given(HaloDataModule):
    """Rows of a graph by a partition that is given."""

    def __init__(self, graph, split):
        super().__init__(source=None)
        self._graph, self.split_of_nodes = graph, split

    def _parts(self, matrix, processes):
        return self.split_of_nodes.long() if processes == 2 else torch.zeros(NODES).long()


def task_of(model):
    torch.manual_seed(0)
    return NodeClassification(MODELS[model](5), 3).double()


def prepared(model):
    torch.set_default_dtype(torch.float64)
    data = graph()
    for transform in task_of(model).encoder.transforms():
        data = transform(data)
    return data


def step(model, batch):
    """Loss and gradients."""
    task = task_of(model)
    loss = task.training_step(batch, 0)
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in task.named_parameters()}


def all_steps(rank, folder):
    torch.distributed.init_process_group("gloo")
    found = {}
    for model in MODELS:
        for split, part in SPLITS.items():
            loss, gradients = step(model, Given(prepared(model), part).rows(rank, 2))
            for gradient in gradients.values():  # as DDP does
                torch.distributed.all_reduce(gradient)
                gradient /= 2
            found[model, split] = loss, gradients
    torch.save(found, Path(folder) / f"{rank}.pt")
