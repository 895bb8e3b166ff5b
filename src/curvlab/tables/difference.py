"""How two rows of a table differ, seed by seed: what a sentence about them may claim."""

from math import isnan
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.statistics import paired_by_seed
from curvlab.tables.collect import collect
from curvlab.tables.departures import with_departures
from curvlab.tables.protocols import one_protocol_per_cell
from curvlab.tables.spec import TableSpec


def difference(spec: TableSpec, results: Path, row: str, other: str, column: str) -> str:
    """The mean of row - other over the seeds that both have, with its 95 % interval.

    Args:
        spec: the table.
        results: the folder of all tables' results.
        row: coordinate of the first row, as the report names it.
        other: of the second.
        column: of the column.

    Raises:
        UsageError: they share fewer than two seeds.
    """
    runs, _ = one_protocol_per_cell(
        with_departures(spec, collect(results / spec.name, spec.report), results)
    )
    runs = runs[(runs["status"] == "finished") & (runs["column"].astype(str) == column)]
    of_rows = (runs[runs["row"].astype(str) == name] for name in (row, other))
    found = paired_by_seed(*(dict(zip(of["seed"], of["value"], strict=True)) for of in of_rows))
    if found.pairs < 2:
        raise UsageError(
            f"{spec.name}: {row} and {other} share {found.pairs} seeds of {column}; run more"
        )
    if isnan(found.pm):
        return f"{found.mean:+.1f} with each of {found.pairs} seeds"
    return f"{found.mean:+.1f} ({found.mean - found.pm:+.1f} to {found.mean + found.pm:+.1f})"
