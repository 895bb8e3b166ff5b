"""Sweeps: tables, failing cells, several processes, a killed sweep started again."""

import os
import re

from forked import Process
from tiny_runs import ROOT, TINY

TABLE = ("-m", "table=fpst/fig3", "dataset=synthetic_web", "model=mlp,gcn", "seed=0,1")
CELLS = [
    f"tables/fpst/fig3/synthetic_web/{model}/seed{s}" for model in ("gcn", "mlp") for s in (0, 1)
]


def test_a_table_is_filled_once_and_rendered(command):
    words = (*TABLE, *TINY, "trainer.plots=false")
    done = command(*words)
    assert done.returncode == 0
    results = command.results()
    assert list(results) == CELLS
    assert {result["experiment"] for result in results.values()} == {"fpst/fig3"}
    assert "sweep of 4 cells: 4 finished" in done.stdout
    changed = {word.partition("=")[0] for result in results.values() for word in result["changed"]}
    assert "trainer.max_steps" in changed
    assert not changed & {"table", "model", "dataset", "seed", "trainer.plots", "paths.output_dir"}
    hint = re.search(r"its table: curvlab (.*)", done.stdout)

    again = command(*words)
    assert again.returncode == 0
    assert again.stdout.count("already") == 4
    assert command.results() == results

    line = ["-m", "curvlab", *hint[1].split(), "--format", "csv"]
    table, _ = Process(line, ROOT, os.environ).communicate()
    for model in ("mlp", "gcn"):
        scores = [results[cell]["score"] for cell in CELLS if f"/{model}/" in cell]
        assert f"{sum(scores) / 2:.2f}"[:4] in table
    assert not list(command.outputs.rglob("*.lease*"))
