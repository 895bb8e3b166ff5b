"""Add the finished runs of a folder to tables of runs, after a check of each run."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from curvlab.results.costs import FILE as COSTS
from curvlab.results.costs import write_costs
from curvlab.results.identity import identity_hash, outdated_classes
from curvlab.results.migrations import migrated
from curvlab.results.result import CONCLUSIVE, Result, load, read_result, result_files
from curvlab.results.run_tables import FILES, RUN, SUFFIX, read_rows, text_of, write_rows

ROW_FILES = ("metrics.csv", "routing.csv")  # files that a row keeps of a run's folder


@dataclass
class Added:
    """Added runs, `PAPER/TABLE/RUN`, and refused ones with their reasons.

    Attributes:
        added: runs that are in the tables now.
        replaced: added runs in whose place another one was.
        refused: reasons by run.
    """

    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """One line for each table, and one for each refused run."""
        tables = Counter("/".join(run.split("/")[:2]) for run in self.added)
        lines = []
        for table, count in sorted(tables.items()):
            line = f"{table}: {count} run{'s' * (count > 1)} added"
            old = sum(run.startswith(f"{table}/") for run in self.replaced)
            lines.append(f"{line}, {old} in place of stored ones" if old else line)
        lines += [f"{run}: not added, {reason}" for run, reason in self.refused.items()]
        return "\n".join(lines or ["nothing was added"]) + "\n"


def add_runs(source: Path, target: Path) -> Added:
    """Add the runs of a folder to tables of runs.

    A stored run of the same identity stays. Another one is replaced, unless the new run leaves the
    table's protocol where the stored one does not.
    """
    result = Added()
    runs = (path.parent for path in result_files(source) if path.is_file())
    for table, folders in groupby(runs, key=lambda run: Path(*run.relative_to(source).parts[:2])):
        file = target / f"{table}{SUFFIX}"
        rows = {run: migrated(row) for run, row in read_rows(file).items()}
        added = []
        for folder in folders:
            run = folder.relative_to(source / table).as_posix()
            new = read_result(folder)
            stored = rows.get(run)
            reason = _objection(new, table.as_posix()) or _other_device(new, run, rows)
            reason = reason or _deviates(new, stored)
            if new is None or reason:
                result.refused[f"{table}/{run}"] = reason
            elif stored is None or stored["config_hash"] != new.config_hash:
                texts = {name: text_of(folder / name) for name in ROW_FILES}
                files = {name: text for name, text in texts.items() if text is not None}
                rows[run] = {RUN: run, **asdict(new), FILES: files}
                added.append(f"{table}/{run}")
                if stored is not None:
                    result.replaced.append(f"{table}/{run}")
        if added:
            write_rows(file, rows.values())
        result.added += added
    if result.added:
        update_costs(target)
    return result


def update_costs(results: Path) -> None:
    """Write the costs of steps in these tables of runs, next to their folder."""
    runs = (load(path) for path in result_files(results))
    write_costs(results.resolve().parent / COSTS, runs)


def _objection(result: Result | None, table: str) -> str:
    if result is None:
        return "its result cannot be read"
    if result.status not in CONCLUSIVE:
        return f"it ended as {result.status}: {result.error}"[:300]
    if result.experiment != table:
        return f"it is a run of {result.experiment}"
    if identity_hash(result.config, result.revisions) != result.config_hash:
        return "its identity is not that of its configuration"
    outdated = outdated_classes(result.config, result.revisions)
    if outdated:
        return f"it is of {', '.join(outdated)}, which has changed"
    return ""


def _deviates(result: Result | None, stored: Mapping[str, Any] | None) -> str:
    """Why a run may not replace a stored one: by overrides of the protocol that are its own."""
    if result is None or stored is None:
        return ""
    new = OmegaConf.create(result.config)
    old = OmegaConf.create(stored["config"])
    changed = []
    for override in result.changed:
        key = override.partition("=")[0]
        if OmegaConf.select(new, key) != OmegaConf.select(old, key):
            changed.append(override)
    if not changed:
        return ""
    return f"it has {' '.join(changed)}, which the stored run in its place does not have"


def _other_device(result: Result | None, run: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Why a run cannot share a mean with the stored ones of its cell; empty if it can."""
    cell = Path(run).parent
    others = [row for name, row in rows.items() if name != run and Path(name).parent == cell]
    devices = {_kind(row["device"]) for row in others if row["device"]}
    if result is None or not result.device or devices <= {_kind(result.device)}:
        return ""
    kinds = " and ".join(sorted(devices))
    return (
        f"it ran on {_kind(result.device)} and stored runs of its cell on {kinds}, whose scores "
        "do not share a mean"
    )


def _kind(device: str) -> str:
    return device.partition(":")[0]
