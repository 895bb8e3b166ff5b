"""Published numbers of a table."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.errors import UsageError
from curvlab.tables.spec import Coordinate, ReportBlock

COLUMNS = (
    "paper", "table", "model", "dataset", "metric", "mean", "pm", "pm_kind", "runs", "note",
)  # fmt: skip

REQUIRED = ("model", "dataset", "mean")  # columns of every file; other columns may be missing
PAPERS = "curvlab/tables/papers"  # the package's files of published numbers


def paper_numbers(report: ReportBlock, folder: Path | None = None) -> pd.DataFrame:
    """Published numbers of a table, as the strings of the paper."""
    if report.paper is None:
        return pd.DataFrame(columns=[*COLUMNS, "row", "column"], dtype=object)
    numbers = _read_numbers(report.paper, folder)
    for key, value in report.select.items():
        if key not in numbers:
            raise UsageError(f"report.select.{key}: {report.paper} has no column {key}")
        numbers = numbers[numbers[key].isin(value if isinstance(value, list) else [value])]
    has_names = (report.rows, report.columns) == ("model.name", "dataset.name")
    cells: list[tuple[Coordinate, Coordinate]] = []
    for model, dataset in zip(numbers["model"], numbers["dataset"], strict=True):
        if model not in report.paper_cells and not has_names:
            raise UsageError(f"{report.paper}: say in report.paper_cells where '{model}' stands")
        cells.append(report.paper_cells.get(model, (model, dataset)))
    places = pd.DataFrame(cells, numbers.index, ["row", "column"], dtype=object)
    numbers = pd.concat([numbers, places], axis=1)
    copies = [
        numbers[numbers["column"] == original].assign(column=copy)
        for copy, original in report.paper_columns.items()
    ]
    return pd.concat([numbers, *copies]).sort_index(kind="stable").reset_index(drop=True)


def _read_numbers(name: str, folder: Path | None) -> pd.DataFrame:
    """Read a file of published numbers; missing columns are empty."""
    places: list[Any] = [files("curvlab.tables") / "papers" / name]
    folders = PAPERS
    if folder is not None:
        places.insert(0, folder / name)
        folders = f"{folder}, nor {PAPERS}"
    source = next((place for place in places if place.is_file()), None)
    if source is None:
        raise UsageError(f"no file {name} in {folders}")
    try:
        with source.open(encoding="utf-8") as lines:
            numbers = pd.read_csv(lines, dtype=str, keep_default_na=False)
        pd.to_numeric(numbers[list(REQUIRED)]["mean"])
    except (ValueError, KeyError) as error:
        raise UsageError(
            f"{source} must be a table in CSV with the columns {', '.join(REQUIRED)}, and numbers "
            f"in the column mean: {error.args[0]}"
        ) from None
    defaults = dict.fromkeys(COLUMNS, "") | {"pm_kind": "unknown"}
    return numbers.assign(**{k: v for k, v in defaults.items() if k not in numbers})
