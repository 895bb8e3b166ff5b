"""Runs of a table as a DataFrame: one row for each run, with its deviation from the protocol."""

import json
import logging
import re
from collections.abc import Mapping
from functools import cache
from itertools import count
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.config.schema import attribute
from curvlab.errors import UsageError
from curvlab.results.identity import built, canonical, outdated_classes
from curvlab.results.result import INTERRUPTED, load, result_files
from curvlab.results.settings import flatten
from curvlab.results.splits import CYCLE, drawn, split_of
from curvlab.tables.spec import LARGEST_CURVATURE, LENGTHS, SCORE, ReportBlock, TableSpec

log = logging.getLogger(__name__)

LOST = {"diverged": "diverged", "failed": "failed", "out_of_memory": "out of memory"}
STATUSES = ("finished", *LOST)
CELL = ["row", "column"]
COLUMNS = (
    *CELL, "seed", "status", "value", "second", "val", "steps", "patience", "device", "seconds",
    "parameters", "curvatures", "commit", "config", "built", "protocol", "outdated", "changed",
    "references", "path", "deviation", "split", "draw", "drawn",
)  # fmt: skip
OUTDATED = "outdated.csv"
"""The cells whose results are outdated, next to the folder of all tables' results."""

DEFAULT = "default"  # the value of an argument that is not set; null is another value
_NUMBERS = count()
PUBLISHED_EACH = "published_each"  # draw of a split: one of the published ones for each seed
PUBLISHED_SPLITS = 10  # number of these, of each graph in the papers' tables that has them
VARYING = (PUBLISHED_EACH, "own_each")  # draws of a split that differ from seed to seed


def table_runs(spec: TableSpec, results: Path, report: ReportBlock | None = None) -> pd.DataFrame:
    """All runs of a table, also of an unfinished sweep, with a row of `COLUMNS` for each.

    `protocol` is a number that configurations share if they differ only in the seed. `deviation`
    is the difference from the table's protocol.
    """
    report = report or spec.report
    listed = outdated_cells(results)
    runs: list[dict[str, Any]] = []
    ignored: list[str] = []
    for path in result_files(results / spec.name):
        name = str(path.relative_to(results / spec.name))
        try:
            result = load(path)
            status = result["status"]
            if status not in (*STATUSES, INTERRUPTED):
                raise KeyError("status")
            config = result["config"]
            matches = all(lookup(config, key) == value for key, value in report.where.items())
            if status != INTERRUPTED and matches:
                runs.append({**_run(result, report), "path": name})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            ignored.append(f"{name} ({' '.join(str(error).split())})")
        except KeyError as error:
            ignored.append(f"{name} (no or another kind of {error.args[0]})")
    if ignored:
        where = results / spec.name
        log.warning("ignored in %s, no results of this table: %s", where, ", ".join(ignored))
    for run in runs:
        reason = listed.get(Path(spec.name, run["path"]).parents[1].as_posix(), "")
        run["deviation"] = _deviation(spec, run, reason)
        run["split"] = _split_name(run["config"])
        run["draw"] = draw(run["config"])
    return pd.DataFrame(runs, columns=list(COLUMNS)).astype({"row": object, "column": object})


def lookup(tree: Mapping[str, Any], path: str) -> Any:
    """Value at a dotted path in nested mappings.

    Raises:
        KeyError: there is no value at the path, which is the message.
    """
    value: Any = tree
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise KeyError(path)
        value = value[key]
    return value


def _run(result: Mapping[str, Any], report: ReportBlock) -> dict[str, Any]:
    config = result["config"]
    trainer = result["config"].get("trainer") or {}
    status = result["status"]
    steps = result.get("steps") or 0
    value = nan
    second = nan
    if status == "finished":
        value = report.scale * _number(result, report.metric)
        if report.second is not None:
            try:
                second = report.scale * _number(result, report.second.metric)
            except KeyError:  # results of earlier versions lack it
                second = nan
        if not isfinite(value):
            status = "diverged"
            value = nan
        if trainer.get("patience") is not None and "max_steps" in trainer:
            steps = trainer["max_steps"]
    patience = trainer.get("patience")
    val = result.get("val_score")
    # Further runs on the splits of a protocol do not deviate from it.
    split = {k: v for k, v in (config.get("split") or {}).items() if k != "cycle"}
    text = json.dumps({**config, "seed": None, "split": split})
    built, outdated, number = _identity(text, json.dumps(result.get("revisions") or {}))
    seed = {"seed": config["seed"]} if "seed" in config else {}
    changed = [word for word in result.get("changed") or () if not word.startswith(f"{CYCLE}=")]
    return {
        "row": lookup(config, report.rows),
        "column": lookup(config, report.columns),
        "seed": int(result["seed"]),
        "status": status,
        "value": value,
        "second": second,
        "val": nan if val is None else float(val),
        "steps": steps,
        "patience": nan if patience is None else float(patience),
        "device": result.get("device") or "",
        "seconds": float(result.get("wall_seconds") or nan),
        "parameters": float(result.get("parameters") or nan),
        "curvatures": result.get("curvatures") or {},
        "commit": result.get("git_commit") or "",
        "config": config,
        "built": built | seed,
        "protocol": number,
        "outdated": outdated,
        "changed": ", ".join(changed),
        "references": _references(result, report),
        "drawn": drawn(config, int(result["seed"])),
    }


@cache
def _identity(config: str, revisions: str) -> tuple[dict[str, Any], str, int]:
    node = json.loads(config)
    stored = json.loads(revisions)
    outdated = ", ".join(outdated_classes(node, stored))
    return flatten(built(node, stored)), outdated, next(_NUMBERS)


def _references(result: Mapping[str, Any], report: ReportBlock) -> dict[str, float]:
    """Reference points of a run, if they have the score that the report shows."""
    references = result.get("references") or {}
    if result["status"] != "finished" or _number(result, report.metric) != result.get("score"):
        return {}
    return {str(name): report.scale * float(value) for name, value in references.items()}


def _number(result: Mapping[str, Any], metric: str) -> float:
    if metric == LARGEST_CURVATURE:
        layers = (result.get("curvatures") or {}).values()
        return max((abs(kappa) for layer in layers for kappa in layer), default=nan)
    path = SCORE if metric == SCORE else f"metrics.{metric}"
    value = lookup(result, path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise KeyError(path)
    return float(value)


def outdated_cells(results: Path) -> dict[str, str]:
    """Reasons why cells are outdated, from the file next to the results; empty without it."""
    path = results.resolve().parent / OUTDATED
    if not path.exists():
        return {}
    try:
        listed = pd.read_csv(path, dtype=str, keep_default_na=False, index_col="cell")
        return {str(cell): reason for cell, reason in listed["why"].items()}
    except (OSError, KeyError, ValueError) as error:
        message = f"{path} must be a file that `tables outdated` has written: {error}"
        raise UsageError(message) from None


def _deviation(spec: TableSpec, run: Mapping[Any, Any], reason: str) -> str:
    trainer = run["config"].get("trainer") or {}
    lengths: dict[str, str] = {}
    for key, planned in spec.planned_length.items():
        length = trainer.get(key)
        if length is not None and (length < planned or f"trainer.{key}=" in run["changed"]):
            text = f"{length:,.0f} {LENGTHS[key]} where the table's has {planned:,}"
            lengths[f"trainer.{key}"] = text if length != planned else ""
    listed = _reasons(reason, run["built"])
    words = [text for key, text in listed.items() if key not in lengths]
    if not listed:
        words = [f"{run['outdated']} (commit {run['commit'][:8]})"] if run["outdated"] else []
    words += filter(None, lengths.values())
    length_keys = tuple(f"trainer.{key}=" for key in spec.planned_length)
    changed: list[str] = run["changed"].split(", ")
    words += [word for word in changed if word and not word.startswith(length_keys)]
    return ", ".join(words) or ", ".join(listed.values())


def _reasons(reason: str, built: Mapping[str, Any]) -> dict[str, str]:
    """The listed reasons that apply to a run, by key; a newer run has none."""
    reasons = {}
    for part in filter(None, reason.split("; ")):
        differing = re.fullmatch(r"(\S+) (.*) -> (.*)", part)
        if differing is None:  # the reason why its command can no longer be composed
            return {"": reason}
        key, then, now = differing.groups()
        if format_option(built.get(key, DEFAULT)) == then:
            reasons[key] = f"{key}={then} where the table's has {now}"
    return reasons


def format_option(value: Any) -> str:
    """Format a value as in the list of outdated cells."""
    text = "null" if value is None else str(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def draw(config: Mapping[str, Any]) -> str:
    """Kind of split of a run: `published` or `own`, with `_each` if each seed has a draw.

    Runs without a split have the kind `none`. A mean over runs of one own draw is not comparable.
    """
    split = split_of(config)
    if not split:
        return "none"
    number = split.get("draw", 0)  # some splits, such as split=fit, are never drawn
    published = attribute(str(split.get("_target_", "")), "published", False)
    is_published = published is True or (published is not False and published == number)
    name = "published" if is_published else "own"
    return f"{name}_each" if number is None else name


def _split_name(config: Mapping[str, Any]) -> str:
    split = split_of(config)
    is_per_seed = draw(config) in VARYING
    if "name" in split:
        name = str(split["name"])
        return f"{name} (another for each seed)" if is_per_seed else name
    if not {"val", "test"} <= split.keys():
        return ""
    held_out = split["val"], split["test"]
    parts = "/".join(f"{100 * part:.4g}" for part in (1 - sum(held_out), *held_out))
    draws = "another for each seed" if is_per_seed else "one for all runs"
    return f"edges {parts} ({draws})"


def one_protocol_per_cell(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Keep one protocol in each cell: the table's, else the one with most seeds, then most steps.

    Runs that diverged count, since a choice by outcomes would prefer protocols that hide them.
    """
    several = runs.groupby(CELL)["protocol"].transform("nunique") > 1
    left_out = []
    rows = runs
    for cell, of_cell in runs[several].groupby(CELL, sort=False):
        best, reasons = _choose_protocol(of_cell)
        rows = rows.drop(index=of_cell.index.difference(best.index))
        left_out += [(*cell, count, reason) for count, reason in reasons]
    repeats = rows.sort_values("steps").duplicated([*CELL, "seed"], keep="last").sort_index()
    for cell, copies in rows[repeats].groupby(CELL, sort=False):
        left_out.append((*cell, len(copies), "a seed that is there already"))
    return rows[~repeats], pd.DataFrame(left_out, columns=[*CELL, "runs", "reason"])


def _choose_protocol(runs: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[int, str]]]:
    descriptions = pd.Series(protocols(runs), runs.index)
    groups = [group for _, group in runs.groupby(descriptions.map(canonical), sort=False)]
    groups.sort(key=_precedence, reverse=True)
    reasons = []
    for group in groups[1:]:
        description = descriptions[group.index[0]]
        kept_description = descriptions[groups[0].index[0]]
        values = description | flatten(group["config"].iloc[0])  # with defaults
        kept_values = kept_description | flatten(groups[0]["config"].iloc[0])
        words = []
        for key in sorted(description.keys() | kept_description.keys()):
            value = values.get(key, "nothing")
            kept_value = kept_values.get(key, "nothing")
            if value != kept_value:
                words.append(f"{key} {value} instead of {kept_value}")
        further = f" and {len(words) - 3} more" if len(words) > 3 else ""
        reasons.append((len(group), ", ".join(words[:3]) + further))
    return groups[0], reasons


def _precedence(runs: pd.DataFrame) -> tuple[bool, int, int]:
    at_protocol = bool((runs["deviation"] == "").all())
    return at_protocol, runs["seed"].nunique(), int(runs["steps"].max())


def protocols(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Descriptions of the objects that each run of a cell built, without the seed."""
    descriptions = list(runs["built"])
    names = {key for run in descriptions for key in run if key.endswith("seed")}
    follow = {key for key in names if all(run.get(key) == run.get("seed") for run in descriptions)}
    return [{key: value for key, value in run.items() if key not in follow} for run in descriptions]
