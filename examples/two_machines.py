"""A table that two machines fill together: two workers, one folder, each cell once.

python examples/two_machines.py
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/two_machines").resolve()

# Some cells of a table, on a small graph, so that the script ends in a minute. Leave the second
# line out for the table's own protocol.
TABLE = "fpst/fig3"
CELLS = ["model=mlp,gcn", "dataset=synthetic_web", "seed=0,1"]
SHORT = ["dataset.source.num_nodes=60", "trainer.max_steps=50", "trainer.steps_per_epoch=25"]

# Both machines run the same command, on a folder that both see. Here they are two processes.
command = [sys.executable, "train.py", "-m", f"table={TABLE}", *CELLS, *SHORT]
shared = [f"paths.output_dir={FOLDER}", "trainer.plots=false"]
workers = [subprocess.Popen([*command, *shared], cwd=ROOT) for _ in range(2)]

# A worker leaves alone what the other is at work on, and takes over what a dead one has left.
# Kill one of them to see it.
for worker in workers:
    worker.wait()

# From any machine: what is done, who is at work where, what failed, how many hours are left.
tables = [sys.executable, "scripts/tables.py"]
results = ["--results", str(FOLDER / "tables")]
subprocess.run([*tables, "status", TABLE, *CELLS, *SHORT, *results], cwd=ROOT, check=True)

subprocess.run([*tables, TABLE, *results], cwd=ROOT, check=True)
