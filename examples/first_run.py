"""Your first run and its files: FPS-T on a generated web graph, then what its folder holds.

python examples/first_run.py
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/first_run").resolve()

# The command line is the interface: any option of `help=model/fpst` can follow.
command = [
    sys.executable,
    "train.py",
    "model=fpst",
    "dataset=synthetic_web",
    "dataset.source.num_nodes=200",
]
options = ["trainer.max_steps=20", "trainer.steps_per_epoch=10", f"paths.output_dir={FOLDER}"]
subprocess.run([*command, *options], cwd=ROOT, check=True)

run = next(FOLDER.rglob("result.json")).parent
for path in sorted(run.rglob("*")):
    if path.is_file():
        print(path.relative_to(run))

# result.json has the status, the metrics, the curvatures, the configuration and the versions.
result = json.loads((run / "result.json").read_text(encoding="utf-8"))
print(result["status"], result["metrics"])
