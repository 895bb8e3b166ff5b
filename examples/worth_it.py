"""Is curvature worth it on your graph? A folder with edges.csv, one command, one page.

python examples/worth_it.py
"""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/worth_it").resolve()

# Your graph: a file of edges, with any names. Here a tree of 63 files and folders.
edges = [(f"folder{(i - 1) // 2}", f"folder{i}") for i in range(1, 63)]
(FOLDER / "graph").mkdir(parents=True, exist_ok=True)
lines = ["source,target", *(f"{a},{b}" for a, b in edges)]
(FOLDER / "graph" / "edges.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

# Each model in flat and in curved spaces, at the same width, seeds, steps and split. More seeds and
# steps find smaller differences: the default is six seeds, 300 steps, five spaces.
command = [sys.executable, "-m", "curvlab", "train", "-m", "study=spaces"]
words = ["dataset=graph_folder", f"dataset.path={FOLDER / 'graph'}", f"paths.output_dir={FOLDER}"]
short = ["study.models=[kappa_gcn]", "study.seeds=3", "study.steps=60", "study.dim=4"]
fewer = ["study.spaces.spherical=null", "study.spaces.product=null"]
subprocess.run([*command, *words, *short, *fewer], check=True)

# The picture is study.png; the numbers are in study.json.
page = next(FOLDER.rglob("study.json"))
found = json.loads(page.read_text(encoding="utf-8"))
print(f"delta of a tree is {found['facts']['delta'][0]:g}")
print(found["answer"])
print(page.with_suffix(".png"))
