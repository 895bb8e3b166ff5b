"""How two cells of a table differ, seed by seed: what a sentence about them may claim."""

from math import isnan
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.statistics import paired_by_seed
from curvlab.tables.collect import collect
from curvlab.tables.departures import with_departures
from curvlab.tables.protocols import one_protocol_per_cell
from curvlab.tables.spec import TableSpec


def difference(
    spec: TableSpec, results: Path, cell: tuple[str, str], other: tuple[str, str]
) -> str:
    """The mean of cell - other over the seeds that both have, with its 95 % interval.

    Args:
        spec: the table.
        results: the folder of all tables' results.
        cell: its row and column, as the report names them.
        other: those of the other cell.

    Raises:
        UsageError: they share fewer than two seeds.
    """
    runs, _ = one_protocol_per_cell(
        with_departures(spec, collect(results / spec.name, spec.report), results)
    )
    finished = runs[runs["status"] == "finished"]
    names = finished["row"].astype(str), finished["column"].astype(str)
    of_cells = (finished[(names[0] == r) & (names[1] == c)] for r, c in (cell, other))
    found = paired_by_seed(*(dict(zip(of["seed"], of["value"], strict=True)) for of in of_cells))
    if found.pairs < 2:
        both = " and ".join(", ".join(names) for names in (cell, other))
        raise UsageError(f"{spec.name}: {both} share {found.pairs} seeds; run more")
    if isnan(found.pm):
        return f"{found.mean:+.1f} with each of {found.pairs} seeds"
    return f"{found.mean:+.1f} ({found.mean - found.pm:+.1f} to {found.mean + found.pm:+.1f})"
