"""Add the finished runs of a folder to tables of runs, after a check of each run."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path

from curvlab.results.costs import FILE as COSTS
from curvlab.results.costs import write_costs
from curvlab.results.identity import identity_hash, outdated_classes
from curvlab.results.migrations import migrated
from curvlab.results.result import CONCLUSIVE, Result, load, read_result, result_files
from curvlab.results.run_tables import FILES, RUN, SUFFIX, read_rows, text_of, write_rows

ROW_FILES = ("metrics.csv", "routing.csv")  # files that a row keeps of a run's folder


@dataclass
class Added:
    """Added runs, `PAPER/TABLE/RUN`, and refused ones with their reasons."""

    added: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """One line for each table, and one for each refused run."""
        tables = Counter("/".join(run.split("/")[:2]) for run in self.added)
        lines = [f"{table}: {count} runs added" for table, count in sorted(tables.items())]
        lines += [f"{run}: not added, {reason}" for run, reason in self.refused.items()]
        return "\n".join(lines or ["nothing was added"]) + "\n"


def add_runs(source: Path, target: Path) -> Added:
    """Add the runs of a folder to tables of runs; a stored run of the same identity stays."""
    result = Added()
    runs = (path.parent for path in result_files(source) if path.is_file())
    for table, folders in groupby(runs, key=lambda run: Path(*run.relative_to(source).parts[:2])):
        file = target / f"{table}{SUFFIX}"
        rows = {run: migrated(row) for run, row in read_rows(file).items()}
        added = []
        for folder in folders:
            run = folder.relative_to(source / table).as_posix()
            new = read_result(folder)
            reason = _objection(new, table.as_posix())
            if new is None or reason:
                result.refused[f"{table}/{run}"] = reason
            elif rows.get(run, {}).get("config_hash") != new.config_hash:
                texts = {name: text_of(folder / name) for name in ROW_FILES}
                files = {name: text for name, text in texts.items() if text is not None}
                rows[run] = {RUN: run, **asdict(new), FILES: files}
                added.append(f"{table}/{run}")
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
