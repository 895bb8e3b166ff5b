"""A stored result is what its command runs today, or is listed as outdated, with the reason."""

import csv
import json
from copy import deepcopy

import pytest

from curvlab.results.identity import identity_hash, revisions_of
from curvlab.results.result import SCHEMA, load, result_files
from curvlab.tables.planning import outdated_cells

EVERY = 11
"""Cells, and the listed: all take minutes, and `scripts/tables.py outdated` looks at them."""


@pytest.mark.nightly
def test_results_have_the_identity_of_their_command_or_are_listed_as_outdated(configs):
    results = configs.parent / "docs" / "results" / "tables"
    with (results.parent / "outdated.csv").open(encoding="utf-8") as file:
        listed = {row["cell"]: row["why"] for row in csv.DictReader(file)}
    cells = sorted({path.parents[1] for path in result_files(results)})[::EVERY]
    sample = {cell.relative_to(results).as_posix() for cell in cells}
    assert len(sample) > 30
    found = outdated_cells(configs, results, sample | listed.keys())
    assert {cell: why for cell, _, why in found} == listed


@pytest.mark.slow
def test_stored_results_are_of_todays_schema_and_named_after_what_they_built(configs):
    files = result_files(configs.parent / "docs" / "results" / "tables")
    assert len(files) > 1900
    for path in files:
        result = load(path)
        assert result["schema"] == SCHEMA
        assert result["config_hash"] == identity_hash(result["config"], result["revisions"]), path


def test_null_is_not_the_default(configs, tmp_path):
    """An option that was null, and is something by default, has made another result."""
    cell = "hypformer/table2/airport/hypformer/seed0"
    stored = deepcopy(load(configs.parent / "docs" / "results" / "tables" / cell / "result.json"))
    for name, value in (("same", "per_branch"), ("outdated", None)):
        stored["config"]["model"]["linear_maps"] = value
        stored["revisions"] = revisions_of(stored["config"])
        path = tmp_path / name / cell / "result.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(stored))
    assert outdated_cells(configs, tmp_path / "same") == []
    ((_, runs, why),) = outdated_cells(configs, tmp_path / "outdated")
    assert (runs, why) == (1, "model.linear_maps null -> default")
