"""Knowledge graphs: from files of triples to the tails that a model predicts.

python examples/triples.py
"""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "outputs/triples").resolve()
CURVLAB = [sys.executable, "-m", "curvlab"]

# A triple a line: head, relation, tail. Here a family tree of five generations.
people = [f"person{i}" for i in range(31)]
parents = {people[i]: people[(i - 1) // 2] for i in range(1, len(people))}
triples = [(child, "has_parent", parent) for child, parent in parents.items()]
triples += [(parent, "has_child", child) for child, parent in parents.items()]
triples += [
    (a, "has_sibling", b)
    for first, second in pairwise(people[1:])
    if parents[first] == parents[second]
    for a, b in ((first, second), (second, first))
]
data = FOLDER / "data"
data.mkdir(parents=True, exist_ok=True)
# Every tenth triple is for validation, every tenth for the test.
parts = {"valid": triples[4::10], "test": triples[9::10]}
parts["train"] = [t for t in triples if t not in parts["valid"] and t not in parts["test"]]
for name, part in parts.items():
    text = "".join("\t".join(triple) + "\n" for triple in part)
    (data / f"{name}.txt").write_text(text, encoding="utf-8")

# MuRP has the entities in the Poincare ball, where a tree has room.
words = ["model=murp", "dataset=kg_folder", f"dataset.source.path={data}", "model.dim=8"]
short = ["trainer.max_steps=200", "trainer.steps_per_epoch=100", f"paths.output_dir={FOLDER}"]
subprocess.run([*CURVLAB, "train", *words, *short], check=True)

run = next(FOLDER.rglob("result.json")).parent
head, relation, tail = parts["test"][0]
print(f"{head} {relation} {tail} was kept back. What is predicted:")
query = ["--head", head, "--relation", relation, "--k", "3"]
subprocess.run([*CURVLAB, "predict", str(run), *query], check=True)
