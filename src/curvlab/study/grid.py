"""Tables of finished studies: grids of options, and graphs of known geometry."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from curvlab.errors import UsageError
from curvlab.files import find_below
from curvlab.results.result import SET_ASIDE
from curvlab.statistics import LEVEL

JSON = "study.json"

GEOMETRIES = {
    "balanced_tree": "hyperbolic",
    "noisy_tree": "hyperbolic",
    "sphere_points": "spherical",
    "grid": "flat",
    "random_geometric": "flat",
    "ring_of_trees": "product",
}
"""The space that fits the graph, by data set."""


def grid_cells(folder: Path, x: str, y: str, model: str = "", space: str = "") -> pd.DataFrame:
    """Read the studies below a folder whose commands set the options x (across) and y (up).

    Raises:
        UsageError: there is none, or they also differ in something else.
    """
    rows = []
    others: dict[str, list[str]] = {}  # texts of each further setting
    for study in _studies(folder):
        values = {}
        for override in _overrides(study):
            key, _, value = override.lstrip("+").partition("=")
            values[key] = yaml.safe_load(value)
        if x not in values or y not in values:
            continue
        settings = {key: value for key, value in values.items() if key not in (x, y)}
        settings |= {key: study.get(key) for key in ("dataset", "task", "steps", "seeds")}
        for key, value in settings.items():
            others.setdefault(key, []).append(str(value))
        reports = dict(zip(study["models"], study["reports"], strict=True))
        name = model or "MODEL"
        if not model and len(reports) == 1:
            (name,) = reports
        if name not in reports:
            raise UsageError(f"--model {name} must be one of {', '.join(reports)}")
        cell = _cell(reports[name], space)
        rows.append({"row": values[y], "column": values[x], **cell})
    if not rows:
        raise UsageError(
            f"{folder} has no study whose overrides set {y} and {x}: run one for each value "
            f"by curvlab train -m study=spaces dataset=... {x}=A,B,... {y}=C,D,..."
        )
    for key, texts in others.items():
        if len(texts) < len(rows):
            texts.append("default")
        if len({*texts}) > 1:
            raise UsageError(
                f"the studies in {folder} also differ in {key}, {', '.join(dict.fromkeys(texts))}: "
                "name the folder of one grid"
            )
    table = pd.DataFrame(rows).sort_values(["row", "column"], ignore_index=True)
    duplicates = table[table.duplicated(["row", "column"])]
    if duplicates.size:
        duplicate: Any = duplicates.iloc[0]
        values_text = f"{y}={duplicate['row']}, {x}={duplicate['column']}"
        raise UsageError(f"{folder} has two studies of {values_text}: name the folder of one grid")
    return table


def answers(folder: Path) -> pd.DataFrame:
    """Read the studies of graphs of known geometry: a row for each graph and model."""
    rows = []
    for study in _studies(folder):
        expected = GEOMETRIES.get(study["dataset"])
        if expected is None:
            continue
        for model, report in zip(study["models"], study["reports"], strict=True):
            cell = _cell(report)
            recommended = report["space"]
            rows.append(
                {
                    "dataset": study["dataset"],
                    "model": model,
                    "seeds": cell["seeds"],
                    "spaces": " ".join(row["space"] for row in report["table"][1:]),
                    "expected": expected,
                    "recommended": recommended,
                    "right": recommended == expected,
                    "alike": " ".join(report["alike"]),
                    "flat": round(cell["flat"], 2),
                    "best_curved": cell["space"],
                    "difference": round(cell["difference"], 2),
                    "pm": round(cell["pm"], 2),
                    "p_holm": float(f"{cell['p_holm']:.2g}"),
                }
            )
    if not rows:
        raise UsageError(
            f"no study of {', '.join(GEOMETRIES)} in {folder}: run study=spaces on them"
        )
    return pd.DataFrame(rows)


def _studies(folder: Path) -> Iterator[dict[str, Any]]:
    for path in find_below(folder, JSON):
        if SET_ASIDE not in path.relative_to(folder).parts:
            yield json.loads(path.read_text("utf-8"))


def _overrides(study: Mapping[str, Any]) -> list[str]:
    """The overrides of a study; earlier versions stored them as `words`."""
    key = "overrides" if "overrides" in study else "words"
    overrides: list[str] = study[key]
    return overrides


def _cell(report: Mapping[str, Any], space: str = "") -> dict[str, Any]:
    """Compare a space, by default the best curved space, with flat space."""
    # Earlier studies have rows of narrower models after the rows of full width.
    table = pd.DataFrame(report["table"]).drop_duplicates("space").set_index("space")
    table = table.dropna(subset="scores")
    flat = table.iloc[0]
    curved = table.iloc[1:]
    if space and space not in curved.index:
        raise UsageError(f"--space {space} must be one of {', '.join(curved.index)}")
    numbers = curved[["difference", "pm", "p_holm", "pairs"]].astype(float)  # null is NaN
    space = space or str(numbers["difference"].idxmax())
    row: Any = numbers.loc[space]
    return {
        "space": space,
        "flat": flat["mean"],
        "difference": float(row["difference"]),
        "pm": float(row["pm"]),
        "p_holm": float(row["p_holm"]),
        "found": bool(row["p_holm"] < LEVEL),
        "seeds": int(row["pairs"]),
        "seconds": float(table["seconds"].mean()),
    }
