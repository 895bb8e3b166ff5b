"""Studies over a grid of a data set's options: where a curved space beats the flat one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from curvlab.errors import UsageError
from curvlab.statistics import LEVEL
from curvlab.study.page import JSON


@dataclass(frozen=True)
class GridCell:
    """One model on one graph of the grid: a curved space less the flat one.

    Attributes:
        panel: value of the third option; empty without one.
        row: value of the option that goes up.
        column: value of the option that goes across.
        space: the curved one.
        flat: mean score in flat space.
        difference: mean paired difference over the seeds.
        pm: half of its 95 % interval.
        p_holm: of the paired t test, corrected for the spaces of the model.
        found: whether it is below 0.05.
        seeds: pairs.
        seconds: of a run, mean over spaces and seeds.
    """

    panel: Any
    row: Any
    column: Any
    space: str
    flat: float
    difference: float
    pm: float
    p_holm: float
    found: bool
    seeds: int
    seconds: float


def cells_of(
    folder: Path, x: str, y: str, panels: str = "", model: str = "", space: str = ""
) -> pd.DataFrame:
    """Read the studies below a folder that have said values for two or three options.

    Args:
        folder: of studies, such as outputs/study.
        x: key whose values go across, such as `dataset.source.exponent`.
        y: key whose values go up.
        panels: key with a panel a value; empty for one panel.
        model: of several, whose cells.
        space: the curved one; empty for that with the best mean in each cell.

    Returns:
        A row for each cell, with the fields of `GridCell`, ordered by panel, row and column.

    Raises:
        UsageError: no study has the keys, two have the same values, or the model or space is not
            there or has to be named.
    """
    keys = [key for key in (panels, y, x) if key]
    studies = [json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob(JSON))]
    said = [(_values(study["words"]), study) for study in studies]
    there = [(values, study) for values, study in said if all(key in values for key in keys)]
    if not there:
        raise UsageError(
            f"{folder} has no study whose words set {' and '.join(keys)}: run one for each value "
            f"by curvlab train -m study=spaces dataset=... {x}=A,B,... {y}=C,D,..."
        )
    found: dict[tuple[Any, ...], GridCell] = {}
    for values, study in there:
        place = tuple(values[key] for key in keys)
        if place in found:
            named = ", ".join(f"{key}={value}" for key, value in zip(keys, place, strict=True))
            raise UsageError(f"{folder} has two studies of {named}: name the folder of one grid")
        report = _report(study, model)
        found[place] = _cell(report, [None] * (3 - len(place)) + list(place), space)
    table = pd.DataFrame([asdict(cell) for cell in found.values()])
    return table.sort_values(["panel", "row", "column"], ignore_index=True)


def _values(words: Sequence[str]) -> dict[str, Any]:
    """What words of a command line set, by their keys."""
    pairs = (word.lstrip("+").partition("=") for word in words)
    return {key: yaml.safe_load(value) for key, _, value in pairs}


def _report(study: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    """What a study says of a model, the only one if none is named."""
    reports = {str(report["flat"]["model"]): report for report in study["reports"]}
    if (model or len(reports) == 1) and (model or next(iter(reports))) in reports:
        found: Mapping[str, Any] = reports[model or next(iter(reports))]
        return found
    raise UsageError(f"--model {model or 'MODEL'} must be one of {', '.join(reports)}")


def _cell(report: Mapping[str, Any], place: Sequence[Any], space: str) -> GridCell:
    others = {other["outcome"]["space"]: other for other in report["others"]}
    if space and space not in others:
        raise UsageError(f"--space {space} must be one of {', '.join(others)}")
    chosen = others[space] if space else max(others.values(), key=lambda o: o["paired"]["mean"])
    flat, paired = report["flat"], chosen["paired"]
    outcomes = [flat, *(other["outcome"] for other in others.values())]
    seconds = [outcome["seconds"] for outcome in outcomes if outcome["seconds"] is not None]
    return GridCell(
        panel=place[0],
        row=place[1],
        column=place[2],
        space=chosen["outcome"]["space"],
        flat=sum(flat["scores"]) / len(flat["scores"]),
        difference=paired["mean"],
        pm=nan if paired["pm"] is None else paired["pm"],
        p_holm=nan if chosen["corrected"] is None else chosen["corrected"],
        found=chosen["corrected"] is not None and chosen["corrected"] < LEVEL,
        seeds=paired["pairs"],
        seconds=sum(seconds) / len(seconds) if seconds else nan,
    )
