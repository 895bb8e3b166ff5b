"""Helpers of tests about tables: cells, stored results, configurations of splits and tasks."""

import json
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from curvlab.config.sources import complete
from curvlab.results.identity import identity_hash
from curvlab.results.result import Result
from curvlab.tables.report import Report


def result(config: dict[str, Any], **values: Any) -> Result:
    """A finished run of a configuration."""
    what = {"model": "gcn", "dataset": "web_edu", "task": "reconstruction", "manifold": "euclidean"}
    what |= {"status": "finished", "seed": 0, "experiment": None}
    return Result(config=config, **(what | {"config_hash": identity_hash(config)} | values))


def cell(report: Report, row: str, column: str | float = "web_edu") -> Any:
    """One row of a report's cells."""
    cells = report.cells
    return cells[(cells["row"] == row) & (cells["column"] == column)].iloc[0]


def extend(path: Path, **fields: Any) -> Path:
    """Set fields of a stored result."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def config_of(configs, name, group="split"):
    config = OmegaConf.load(configs / group / f"{name}.yaml")
    base = config.pop("defaults", [None])[0]
    if isinstance(base, str):
        config = OmegaConf.merge(OmegaConf.load(configs / group / f"{base}.yaml"), config)
    complete(config)
    return OmegaConf.to_container(config, resolve=False)
