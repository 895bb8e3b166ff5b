"""Results as runs write them, into a folder of the test."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from composing import CONFIGS
from curvlab.tables.spec import TableSpec, load_table

WriteRun = Callable[..., Path]


@pytest.fixture
def configs() -> Path:
    """The folder of configurations."""
    return CONFIGS


@pytest.fixture
def spec() -> TableSpec:
    (table,) = load_table(CONFIGS, "fpst/fig3")
    return table


@pytest.fixture
def table1() -> TableSpec:
    (table,) = load_table(CONFIGS, "fpst/table1")
    return table


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Write one run's result.json below `tmp_path / table`; `value=None` is an unfinished run."""

    def write(
        model: str,
        dataset: str,
        seed: int,
        value: float | None,
        status: str = "finished",
        steps: int = 10_000,
        table: str = "fpst/fig3",
        metric: str = "map",
        folder: str | None = None,
        **config: Any,
    ) -> Path:
        folder = folder or f"{dataset}/{model}/{config.get('dim', '')}/seed{seed}"
        path = tmp_path / table / folder / "result.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        result = {
            "status": status,
            "metrics": {} if value is None else {"test": {metric: value}, "val": {metric: 0.0}},
            "seed": seed,
            "steps": steps,
            "config": {
                "seed": seed,
                "experiment": table,
                "model": {"name": model, "dim": config.pop("dim", 16)},
                "dataset": {"name": dataset, "noise_seed": seed},
                "trainer": {"max_steps": steps if status == "finished" else 10_000},
                "paths": {"output_dir": str(path.parent)},
                **config,
            },
        }
        path.write_text(json.dumps(result), encoding="utf-8")
        return path

    return write
