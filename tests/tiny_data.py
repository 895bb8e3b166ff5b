"""Small graphs with the schema of a run's dataset: what recipes and cells are tried on."""

import math
from types import SimpleNamespace

import torch
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from torch_geometric.data import Data

from composing import composed, tasks_of
from curvlab.run.parts import build_data, build_task

NODES = 90
WEB = {"_target_": "curvlab.data.datasets.synthetic.SyntheticWeb", "num_nodes": NODES}
TRIPLES = {
    "_target_": "curvlab.data.datasets.synthetic_triples.SyntheticKnowledgeGraph",
    "groups": 4,
    "size": 5,
    "seed": 0,
}
ON_DISK = {
    "_target_": "curvlab.data.datasets.synthetic_large.SyntheticLarge",
    "num_nodes": 400,
    "mean_degree": 4.0,
}
SPLIT = {
    "_target_": "curvlab.data.splits.nodes.RandomSplit",
    "name": "tiny",
    "val": 0.25,
    "test": 0.25,
    "stratified": False,
    "draw": 0,
}


class TinyGraph:
    """A random graph whose features and labels have the widths of another.

    Args:
        features: number of features, of which a tenth are not 0.
        classes: number of classes, or of labels of a node.
        several: whether a node has several labels.
    """

    def __init__(self, features: int, classes: int, several: bool) -> None:
        self.features, self.classes, self.several = features, classes, several

    def download(self) -> list:
        """Nothing."""
        return []

    def load(self) -> Data:
        """Make the graph."""
        generator = torch.Generator().manual_seed(0)
        nodes = max(NODES, 3 * self.classes)
        x = torch.rand(nodes, self.features, generator=generator)
        x = x * (torch.rand(x.shape, generator=generator) < 0.1)
        x[:, 0] = 1
        y = torch.arange(nodes) % self.classes
        if self.several:
            y = (torch.rand(nodes, self.classes, generator=generator) < 0.5).long()
        ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
        chords = torch.randint(nodes, (2, nodes), generator=generator)
        edges = torch.cat([ring, chords[:, chords[0] != chords[1]]], dim=1)
        both = torch.cat([edges, edges.flip(0)], dim=1).unique(dim=1)
        return Data(x=x, y=y, edge_index=both)


def shrink(config, folder):
    """Put a tiny source in the place of a run's, and a split that any graph has."""
    dataset = config.dataset
    with read_write(config), open_dict(config):
        config.paths.data_dir = config.paths.output_dir = str(folder)
        config.trainer.max_steps = config.trainer.steps_per_epoch = 1
        if "filter_regression" in dataset.tasks:
            dataset.source.generated, dataset.source.side = True, 8
        elif "residual_cost" in dataset.tasks:
            dataset.source.num_nodes, dataset.source.dim = 50, 8
        elif "kg_completion" in dataset.tasks:
            dataset.source, dataset.train_triples = TRIPLES, 100
        elif "reconstruction" in dataset.tasks:
            dataset.source = WEB
        else:
            dataset.source = _labelled(dataset, config.batching.name == "tokens")
            config.split = SPLIT
            if "dataset" in (config.task.get("split") or {}):
                config.task.split.dataset = "tiny"  # which has none of the named one's self-loops
    if "negatives" in config.task:
        drawn = config.task.negatives
        by_side = isinstance(drawn, DictConfig)
        config.task.negatives = {"head": 8, "tail": 8} if by_side else min(drawn, 8)


def _labelled(dataset, on_disk):
    """A source of a graph with as many features and classes as that of a dataset."""
    known = OmegaConf.select(dataset, "source.statistics") or {}
    widths = {"features": known.get("num_features") or 12, "classes": known.get("num_classes") or 3}
    if on_disk:
        return {**ON_DISK, **widths}
    several = dataset.metric == "ogb_rocauc"
    return {"_target_": "tiny_data.TinyGraph", "several": several, **widths}


def built(config):
    """Data, task and optimiser of a run."""
    torch.manual_seed(0)
    data = build_data(config)
    data.setup()
    task = build_task(config, data)
    task._trainer = SimpleNamespace(max_steps=20, check_val_every_n_epoch=1)
    made = task.configure_optimizers()
    task._trainer = None
    return data, task, made["optimizer"] if isinstance(made, dict) else made


def take_a_step(config):
    """Take one step of a run; returns the loss and the largest change of a parameter."""
    data, task, optimizer = built(config)
    parameters = [p.detach() for p in task.parameters()]
    before = [p.clone() for p in parameters]
    batch = next(iter(data.train_dataloader()))
    loss = task.training_step(batch, 0)
    loss.backward()
    optimizer.step()
    changes = [(p - old).abs().max() for p, old in zip(parameters, before, strict=True)]
    return float(loss.detach()), float(torch.stack(changes).max())


STEPPED = set()
"""What has taken a step: runs on other datasets are often the same on a small graph."""


def takes_a_step(config, folder):
    """Whether a run's model learns something from a graph of the same schema, if it learns."""
    shrink(config, folder)
    chosen = (config[key] for key in ("model", "manifold", "task", "optimizer", "batching"))
    parts = [OmegaConf.to_yaml(part, resolve=True) for part in (*chosen, config.dataset.source)]
    if tuple(parts) in STEPPED:
        return True
    STEPPED.add(tuple(parts))
    loss, change = take_a_step(config)
    return math.isfinite(loss) and (change > 0 or config.task.name == "residual_cost")


OF_LABELS = {"cat__neighbours", "idgl", "lds"}
"""Models that a generated web has no task for."""


def said(model, folder, device="cpu"):
    """What an untrained model says of a tiny graph, and the loss of a step."""
    words = ["dataset=synthetic_web"]
    if model in OF_LABELS:
        words = ["dataset=cora", "task=node_classification"]
    elif "kg_completion" in tasks_of(model):
        words = ["dataset=synthetic_kg"]
    config = composed(f"model={model}", *words)
    shrink(config, folder)
    data, task, _ = built(config)
    task.to(device)
    batch = next(iter(data.train_dataloader())).to(device)
    outputs = task.eval().encoder(batch).detach()
    torch.manual_seed(1)
    return outputs, task.train().training_step(batch, 0).detach()
