"""What the processes of the tests of `curvlab.run.group` do; they import it by its name."""

import os
import signal
import time
from pathlib import Path

import psutil
import torch
from torch_geometric.data import Data

from curvlab.data.datasets.synthetic import SyntheticWeb
from curvlab.data.datasets.synthetic_triples import SyntheticKnowledgeGraph
from curvlab.data.loaders.triple_batches import add_inverses
from curvlab.errors import UsageError
from curvlab.manifolds import Euclidean, Stereographic
from curvlab.models.cat import CAT
from curvlab.models.polyformer import PolyFormer
from curvlab.models.triples.ball import MuRP
from curvlab.run import train
from curvlab.tasks import reconstruction, triple_ranking
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion
from curvlab.tasks.node_classification import NodeClassification
from curvlab.tasks.pairs.loss import reconstruction_loss
from curvlab.tasks.pairs.tiles import PairTiles
from placed import Placed


def second_refuses(rank, first_waits):
    if rank == 1:
        raise UsageError("the second process refuses")
    time.sleep(600 if first_waits else 0)


def second_is_killed(rank):
    torch.distributed.init_process_group("gloo")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    torch.distributed.all_reduce(torch.ones(3))


def train_and_note(rank, config, result, folder, checkpoint):
    """A run whose steps note what they see, in a file of each process."""
    seen, step = [], NodeClassification.training_step

    def noting(task, batch, index):
        seen.append(batch.x.clone())
        torch.save(seen, folder.path / f"seen{rank}.pt")
        return step(task, batch, index)

    NodeClassification.training_step = noting
    return train.run_process(rank, config, result, folder, checkpoint)


ENTRIES = 300
"""A block of the evaluations below has 7 triples, or 6 nodes."""


def task_of_triples(model):
    """A task with drawn weights, and a graph of 40 entities."""
    data = add_inverses(SyntheticKnowledgeGraph(8, 5, 0).load())
    sizes = {"num_entities": 40, "num_relations": 12}
    torch.manual_seed(0)
    encoder = CAT(**sizes, dim=8) if model == "cat" else MuRP(**sizes, dim=8)
    return KnowledgeGraphCompletion(encoder, inverse_relations=True).eval(), data


def task_of_points():
    """A task with drawn points of 50 nodes."""
    data = SyntheticWeb(50, cycle_fraction=0.5, seed=0).load()
    data.x = torch.ones(50, 1)
    torch.manual_seed(0)
    return reconstruction.Reconstruction(Placed(torch.randn(50, 3), Euclidean())), data


def task_of_tokens():
    """A task of single nodes, 50 with two features each, in blocks of 8."""
    torch.manual_seed(0)
    tokens, y = torch.randn(50, 4, 2), torch.arange(50) % 3
    mask = torch.arange(50) % 2 == 0
    data = Data(tokens=tokens, y=y, num_nodes=50, chunk=8, edge_index=torch.empty(2, 0))
    data.train_mask, data.val_mask, data.test_mask = mask, mask, ~mask
    return NodeClassification(PolyFormer(2, orders=3, dim=8), 3).eval(), data


def evaluations():
    """What a process finds of whole parts and graphs, and how many blocks it has worked at."""
    found = {}
    for model in ("cat", "murp"):
        task, data = task_of_triples(model)
        scores, blocks = task.encoder.scores, []
        task.encoder.scores = lambda queries, *_, s=scores, b=blocks: b.append(0) or s(queries)
        found[model] = task.rank_part(data, "test")
        found[f"{model} blocks"] = len(blocks)
    task, data = task_of_points()
    found["map"] = task.precision(data)
    task, data = task_of_tokens()
    with torch.no_grad():
        found["logits"] = task(data, "test")[0]
    return found


def evaluate(rank, folder):
    triple_ranking.EVALUATION_ENTRIES = reconstruction.EVALUATION_ENTRIES = ENTRIES
    torch.distributed.init_process_group("gloo")
    torch.save(evaluations(), Path(folder) / f"evaluated{rank}.pt")


def note_what_listens(rank, folder):
    torch.distributed.init_process_group("gloo")
    torch.distributed.all_reduce(torch.ones(3))
    listening = []
    for process in (psutil.Process(), psutil.Process(os.getppid()).parent()):
        listening += [
            connection.laddr.ip
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
    (Path(folder) / f"{rank}").write_text(" ".join(listening))


PAIR_NODES = 30
PAIR_CASES = [
    (space, size, power, clamp)
    for space in (Euclidean(2), Stereographic(2, (-1.0, 0.5), learnable=True))
    for size in (7, 16, PAIR_NODES, None)  # 15, 3 and 1 tiles; None: by the number of processes
    for power in (1, 2)
    for clamp in (None, 1e-2)
]


def pair_losses(rank, ranks):
    """Loss and gradients of each case, of two steps, the second with the arrays of the first."""
    generator = torch.Generator().manual_seed(0)
    edge_index = SyntheticWeb(num_nodes=PAIR_NODES, cycle_fraction=0.5, seed=0).load().edge_index
    found = []
    for space, size, power, clamp in PAIR_CASES:
        tiles = PairTiles(edge_index, PAIR_NODES, size, rank, ranks)
        for _ in range(2):
            v = torch.randn(PAIR_NODES, 8, generator=generator, dtype=torch.float64)
            x = space.double().expmap0(v / 2).detach().requires_grad_()
            loss = reconstruction_loss(x, space, tiles, power, clamp)
            inputs = [x, *space.parameters()]
            found.append([loss.detach(), *torch.autograd.grad(loss, inputs)])
    return found


def share_pairs(rank, folder, ranks):
    torch.distributed.init_process_group("gloo")
    torch.save(pair_losses(rank, ranks), Path(folder) / f"pairs{rank}.pt")
