"""A model from a paper to a cell of a table, in a package of your own: examples/plugin.

python examples/paper_to_cell.py
"""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/paper_to_cell").resolve()
PLUGIN = Path(__file__).resolve().parent / "plugin"

# The package has lab.py (the class, its options in the signature), configs/model/my_tag.yaml
# (its name), configs/dataset/my_ring.yaml and configs/table/my_lab/first.yaml (rows, columns,
# seeds), with the printed numbers in first.csv. Installed, curvlab finds these by an entry
# point; --config-dir does it without.
print((PLUGIN / "my_lab" / "lab.py").read_text(encoding="utf-8"))
CURVLAB = [sys.executable, "-m", "curvlab"]
HERE = ["--config-dir", str(PLUGIN / "my_lab" / "configs")]

# The options of the model are checked, completed and printed as those of any other.
subprocess.run([*CURVLAB, "train", *HERE, "help=model/my_tag"], check=True, cwd=PLUGIN)

# A table is a sweep: all its cells, or some of them.
words = ["-m", "table=my_lab/first", "seed=0", f"paths.output_dir={FOLDER}"]
subprocess.run([*CURVLAB, "train", *HERE, *words], check=True, cwd=PLUGIN)

tables = [*CURVLAB, "tables", *HERE, "my_lab/first", "--results", str(FOLDER / "tables")]
subprocess.run(tables, check=True, cwd=PLUGIN)
