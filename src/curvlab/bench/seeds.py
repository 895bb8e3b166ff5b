"""Ten seeds at once against ten runs one after another, as a user would type them."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from curvlab.tasks.cost.timing import print_table, verdict

SEEDS = 10
FASTER = 3.0
"""Least admissible throughput over that of separate runs."""

DATASET = "texas"


def run(args: argparse.Namespace) -> None:
    """Print seconds of both, for the same scores."""
    rows = []
    for model in ("gcn", "fpst"):
        with tempfile.TemporaryDirectory() as folder:
            words = [f"model={model}", f"trainer.accelerator={args.device}"]
            _train(folder, *words, "seed=0")  # the graph and its transforms are cached now
            start = time.perf_counter()
            for seed in range(SEEDS):
                _train(f"{folder}/alone", *words, f"seed={seed}")
            alone = time.perf_counter() - start
            start = time.perf_counter()
            _train(f"{folder}/together", *words, f"trainer.parallel_seeds={SEEDS}")
            together = time.perf_counter() - start
            same = _scores(f"{folder}/alone") == _scores(f"{folder}/together")
        ratio = verdict(alone / together, FASTER, at_least=True)
        rows.append([model, f"{alone:.1f}", f"{together:.1f}", ratio, "yes" if same else "no"])
    columns = (DATASET, f"{SEEDS} runs, s", f"{SEEDS} seeds at once, s", "ratio", "same scores")
    print_table(f"Training of {SEEDS} seeds, from the command to the last result", columns, rows)


def _train(output: str, *words: str) -> None:
    """One command, without its pictures."""
    command = [sys.executable, "-m", "curvlab", "train", f"dataset={DATASET}", *words]
    quiet = ["trainer.plots=false", "trainer.progress=false", f"paths.output_dir={output}"]
    subprocess.run([*command, *quiet], check=True, stdout=subprocess.DEVNULL)


def _scores(output: str) -> dict[int, float]:
    """The test score of every seed."""
    results = [json.loads(path.read_text("utf-8")) for path in Path(output).rglob("result.json")]
    return {result["seed"]: result["score"] for result in results}
