"""Runs of a table, read from the result files below its directory."""

import logging
from collections.abc import Mapping
from functools import cache
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.results.identity import built, older
from curvlab.results.result import INTERRUPTED, load, result_files
from curvlab.results.run_tables import source_of
from curvlab.tables.spec import LARGEST_CURVATURE, SCORE, Coordinate, ReportBlock

log = logging.getLogger(__name__)

STATUSES = ("finished", "diverged", "failed", "out_of_memory")
COLUMNS = (
    "row", "column", "seed", "status", "value", "second", "val", "steps", "patience", "device",
    "seconds", "parameters", "curvatures", "commit", "config", "built", "older", "changed", "path",
)  # fmt: skip

NUMBER = int | float
KINDS: dict[str, Any] = {
    "seed": int, "steps": int | None, "val_score": NUMBER | None,
    "wall_seconds": NUMBER | None, "device": str | None,
    "changed": list | None, "revisions": dict | None, "config": dict, "config.trainer": dict,
    "parameters": int | None, "curvatures": dict | None, "git_commit": str | None,
    "config.trainer.max_steps": int, "config.trainer.epochs": int,
    "config.trainer.patience": NUMBER | None, "config.trainer.precision": str,
    "config.task": dict | None, "config.task.split": dict | None,
    "config.task.split.val": NUMBER, "config.task.split.test": NUMBER,
    "config.task.split.draw": int | None, "config.task.split._target_": str,
    "config.split": dict | None, "config.split.name": str, "config.split.draw": int | None,
    "config.split._target_": str,
}  # fmt: skip
"""What values are that tables read of every result, where it has them."""


class NotAResultError(ValueError):
    """A file that is called result.json and is no result of this table."""


def collect(directory: Path, report: ReportBlock) -> pd.DataFrame:
    """All runs of a report block below a table's directory, also of a half-done sweep.

    Half-written and foreign files are left out; one line in the log names them. So are results
    that a later run set aside.

    Args:
        directory: The table's directory; one that does not exist holds no runs.
        report: Says which values of a result are its row, its column and its number.

    Returns:
        One row a run: `row`, `column`, `seed`, `status`, `value` (NaN unless finished), `second`
        (the second number; NaN also for results that lack it), `val` (what validation said of the
        weights; NaN without one), `steps`, `patience`, `device`,
        `seconds` (that it took), `parameters` (their number), `curvatures` (by name), `commit`,
        `config` (nested dict), `built` (what it built of that), `older` (classes whose revision was
        raised since), `changed` (words of its command line against the table), `path`. A finished
        run that validation could end has as its steps those that it was given; its patience is NaN
        for runs that have none.
    """
    runs, ignored = [], []
    for path in result_files(directory):
        try:
            run = _read_run(path, report)
            if run is not None:
                runs.append({**run, "path": str(path.relative_to(directory))})
        except NotAResultError as error:
            ignored.append(f"{path.relative_to(directory)} ({error})")
    if ignored:
        log.warning("ignored in %s, no results of this table: %s", directory, ", ".join(ignored))
    return pd.DataFrame(runs, columns=list(COLUMNS)).astype({"row": object, "column": object})


def lookup(tree: Mapping[str, Any], path: str) -> Any:
    """Value at a dotted path in nested mappings.

    Raises:
        KeyError: The path leads nowhere; the message is the path.
    """
    value: Any = tree
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise KeyError(path)
        value = value[key]
    return value


def _read_run(path: Path, report: ReportBlock) -> dict[str, Any] | None:
    """A run; None for one of another block of the table, or that has not ended."""
    try:
        version = source_of(path).stat().st_mtime_ns
        result = _loaded(path, version)
    except (OSError, ValueError):
        raise NotAResultError("not readable as JSON") from None
    if isinstance(result, dict) and result.get("status") == INTERRUPTED:
        return None  # the same sweep goes on with it
    if not isinstance(result, dict) or result.get("status") not in STATUSES:
        raise NotAResultError("no known status")
    try:
        _check_kinds(result)
        config = lookup(result, "config")
        if any(lookup(config, key) != value for key, value in report.where.items()):
            return None
        run = {
            "row": _coordinate(config, report.rows),
            "column": _coordinate(config, report.columns),
            "seed": result["seed"],
            "status": result["status"],
            "value": nan,
            "second": nan,
            "val": float(nan if result.get("val_score") is None else result["val_score"]),
            "steps": result.get("steps") or 0,
            "patience": config.get("trainer", {}).get("patience") or nan,
            "device": result.get("device") or "",
            "seconds": float(result.get("wall_seconds") or nan),
            "parameters": float(result.get("parameters") or nan),
            "curvatures": result.get("curvatures") or {},
            "commit": result.get("git_commit") or "",
            "config": config,
            **_identity(path, version),
            "changed": ", ".join(map(str, result.get("changed") or ())),
        }
        if run["status"] == "finished":
            run["value"] = report.scale * _number(result, report.metric)
            run["second"] = _second(result, report)
            if not isnan(run["patience"]):
                run["steps"] = lookup(config, "trainer.max_steps")
    except KeyError as error:
        raise NotAResultError(f"no valid {error.args[0]}") from None
    if run["status"] == "finished" and not isfinite(run["value"]):
        run |= {"status": "diverged", "value": nan}
    return run


@cache
def _loaded(path: Path, changed: int) -> Any:  # noqa: ARG001 - a file that changes is another one
    """A file's result, read once for all tables of a page."""
    return load(path)


@cache
def _identity(path: Path, changed: int) -> dict[str, Any]:
    """What a result built, and the classes whose revision was raised since."""
    result = _loaded(path, changed)
    config, revisions = result["config"], result.get("revisions") or {}
    return {"built": built(config, revisions), "older": ", ".join(older(config, revisions))}


def _check_kinds(result: Mapping[str, Any]) -> None:
    """Raise a KeyError of the first value that is of another kind than it must be."""
    for path, kind in KINDS.items():
        try:
            value = lookup(result, path)
        except KeyError:
            continue
        if isinstance(value, bool) or not isinstance(value, kind):
            raise KeyError(path)


def _number(result: Mapping[str, Any], metric: str) -> float:
    if metric == LARGEST_CURVATURE:
        sizes = [
            abs(kappa) for layer in (result.get("curvatures") or {}).values() for kappa in layer
        ]
        return max(sizes, default=nan)
    path = SCORE if metric == SCORE else f"metrics.{metric}"
    value = lookup(result, path)
    if isinstance(value, bool) or not isinstance(value, NUMBER):
        raise KeyError(path)
    return float(value)


def _second(result: Mapping[str, Any], report: ReportBlock) -> float:
    """The second number of a finished run; NaN for a result that was written without it."""
    if report.second is None:
        return nan
    try:
        return report.scale * _number(result, report.second.metric)
    except KeyError:
        return nan


def _coordinate(config: Mapping[str, Any], path: str) -> Coordinate:
    value = lookup(config, path)
    if not isinstance(value, str | int | float):
        raise KeyError(path)
    return value
