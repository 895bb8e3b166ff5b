"""Which runs have another protocol than their table's: they are neither ranked nor compared."""

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf

from curvlab.config.folder import find
from curvlab.config.sources import complete
from curvlab.tables.spec import LENGTHS, TableSpec
from curvlab.tables.standing import listed_as_older, reasons

LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
"""Marks of protocols."""


def with_departures(spec: TableSpec, runs: pd.DataFrame, results: Path) -> pd.DataFrame:
    """Add `departure`, in words, where each run departs from the table's protocol.

    A run departs if it was to be shorter than the table says, or if its command line has options
    beyond the cells to run. It also departs if `older.csv` beside the results lists its cell, if
    its split has another draw than the split's configuration, or if a class that it built has
    another revision today. The table's own protocol is an empty text.

    Args:
        spec: The table.
        runs: As `collect` returns them.
        results: The folder of all tables' results.

    Raises:
        UsageError: `older.csv` is there and is no such list.
    """
    listed = listed_as_older(results)
    cells = (Path(spec.name, path).parents[1].as_posix() for path in runs["path"])
    return runs.assign(
        departure=[
            _departure(spec, run, listed.get(cell, ""))
            for cell, (_, run) in zip(cells, runs.iterrows(), strict=True)
        ]
    )


def letters(runs: pd.DataFrame) -> dict[str, str]:
    """The mark of each protocol that is not the table's, by its words."""
    words = sorted({text for text in runs["departure"] if text})
    return {
        text: LETTERS[i % len(LETTERS)] * (1 + i // len(LETTERS)) for i, text in enumerate(words)
    }


def departures(runs: pd.DataFrame) -> dict[str, str]:
    """For each mark, a sentence on the runs that have not the table's protocol."""
    sentences = {}
    for text, mark in letters(runs).items():
        count = int((runs["departure"] == text).sum())
        which = "" if count == len(runs) else f", {count} of {len(runs)} runs"
        sentences[mark] = f"Not the table's protocol{which}: {text}."
    return sentences


def _departure(spec: TableSpec, run: "pd.Series[Any]", why: str) -> str:
    """In words. `why` is what the list of older cells says of its cell; empty where it is not."""
    trainer = run["config"].get("trainer") or {}
    lengths: dict[str, str] = {}
    for key, planned in spec.planned_length.items():
        length = trainer.get(key)
        if length is not None and (length < planned or f"trainer.{key}=" in run["changed"]):
            lengths[f"trainer.{key}"] = (
                _length(length, planned, LENGTHS[key]) if length != planned else ""
            )
    listed = reasons(why, run["built"]) if why else {}
    words = [text for key, text in listed.items() if key not in lengths]
    words = words if listed else _older(spec, run)
    words += filter(None, lengths.values())
    said = tuple(f"trainer.{key}=" for key in spec.planned_length)
    words += [word for word in run["changed"].split(", ") if word and not word.startswith(said)]
    return ", ".join(words) or ", ".join(listed.values())


def _older(spec: TableSpec, run: "pd.Series[Any]") -> list[str]:
    """What makes a run older, as far as its own result says: revisions and the split's draw."""
    words = [f"{run['older']} (commit {run['commit'][:8]})"] if run["older"] else []
    split = run["config"].get("split") or {}
    file = find(spec.configs, f"split/{split.get('name')}.yaml")
    if "draw" in split and "split.draw=" not in run["changed"] and file.is_file():
        draw = _draw(file, file.stat().st_mtime_ns)
        if draw != split["draw"]:
            words.append(f"split.draw={_yaml(split['draw'])} where the table's has {_yaml(draw)}")
    return words


def _length(length: float, planned: int, unit: str) -> str:
    return f"{length:,.0f} {unit} where the table's has {planned:,}"


def _yaml(value: Any) -> str:
    return "null" if value is None else str(value)


@cache
def _draw(path: Path, modified: int) -> Any:  # noqa: ARG001  (a changed file is read anew)
    """The draw in a split's configuration."""
    split = OmegaConf.load(path)
    complete(split)
    return OmegaConf.select(split, "draw")
