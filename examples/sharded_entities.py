"""Knowledge graphs: a table of entities that no single process holds.

python examples/sharded_entities.py outputs/sharded
torchrun --standalone --nproc-per-node=2 examples/sharded_entities.py outputs/sharded 10000000 200 5
"""

import os
import resource
import sys
import time
from pathlib import Path

import torch
from torch_geometric.data import Data

from curvlab.metrics.ranking import RankingMetrics
from curvlab.models.triples.complex import ComplEx
from curvlab.optim import RowwiseAdagrad
from curvlab.tasks.sharded_entities import shard_entities, sharded_loss, sharded_standings

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/sharded")
entities, dim, steps = (int(word) for word in sys.argv[2:5] or (500, 32, 300))
rank = int(os.environ.get("RANK", "0"))
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")

# All processes draw the same batches and the same dropout, and hold the same relations.
torch.manual_seed(0)
model = ComplEx(num_entities=1, num_relations=4, dim=dim, dropout=0.0)
table = shard_entities(model, entities)
optimizer = RowwiseAdagrad(model.parameters(), lr=0.3)


def batch_of(size: int) -> Data:
    """Triples (h, r, h + r + 1) of a ring of entities."""
    head = torch.randint(entities, (size,))
    relation = torch.randint(4, (size,))
    return Data(head=head, relation=relation, tail=(head + relation + 1) % entities)


start = time.perf_counter()
for _ in range(steps):
    negatives = torch.randint(entities, (512,))
    loss = sharded_loss(model, batch_of(256), negatives, smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
took = (time.perf_counter() - start) / steps

# Each query is ranked among all entities.
start = time.perf_counter()
model.eval()
metrics = RankingMetrics("realistic", sync_on_compute=False)
metrics.update(sharded_standings(model, batch_of(64))[0])
mrr = float(metrics.compute()["mrr"])
ranked = time.perf_counter() - start

peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux
words = (
    f"process {rank}: rows {table.first} to {table.last}, loss {loss:.4f}, MRR {mrr:.4f}, "
    f"{took:.3f} s a step, {ranked:.1f} s to rank 64 queries, peak {peak:.2f} GiB\n"
)
folder.mkdir(parents=True, exist_ok=True)
(folder / f"process{rank}.txt").write_text(words, encoding="utf-8")
print(words, end="")
if "RANK" in os.environ:
    torch.distributed.destroy_process_group()
