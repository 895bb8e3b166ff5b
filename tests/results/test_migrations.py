"""Results of earlier versions are those that today's commands would store."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from composing import CONFIGS
from curvlab.cli.table_texts import block
from curvlab.config.compose import compose
from curvlab.data.transforms.graph import normalised_adjacency_matrix
from curvlab.results.folder import CONFIG, RunDirectory
from curvlab.results.migrations import (
    OLDEST,
    SCHEMA,
    SIMPLE_EIGENVALUES,
    SchemaError,
    migrate_table,
    migrated,
)
from curvlab.results.result import FILE, load, read_result
from curvlab.results.run_tables import RUN, SUFFIX, read_rows
from curvlab.run.parts import build_source
from curvlab.tables.add import add_runs
from curvlab.tables.planning import outdated_cells

STORED = Path(__file__).with_name("schema6.jsonl.gz")
"""Rows that version 6 wrote: one for each model, task and what the model required of its graph."""

ROWS = {row[RUN]: row for row in map(json.loads, gzip.decompress(STORED.read_bytes()).splitlines())}
RESULTS = CONFIGS.parent / "docs" / "results" / "tables"
REPEATING = "polyformer/table6/minesweeper/nagphormer/seed0"
"""A run on a grid, whose eigenvalues repeat: its features were of another basis."""

RETRAINED = ("complex__published", "distmult__published", "rotate__published", "transe__published")
"""Models whose published training was another one: those rows are called after LibKGE today."""

FIELDS = ("metrics", "score", "val_score", "steps", "ms_per_step", "wall_seconds", "git_commit")
WEB = "fpst/fig3/power/gcn/seed0"


def leave(row, folder):
    """A run's folder as its version left it."""
    folder.mkdir(parents=True)
    (folder / FILE).write_text(
        json.dumps({k: v for k, v in row.items() if k not in (RUN, "files")})
    )
    return folder


@pytest.mark.sampled(3)
@pytest.mark.parametrize("run", ROWS)
def test_a_migrated_result_is_what_its_command_runs_today(run, tmp_path):
    leave(ROWS[run], tmp_path / run)
    why = [reason for _, _, reason in outdated_cells(CONFIGS, tmp_path)]
    retrained = run.split("/")[-2] in RETRAINED
    assert len(why) == (run == REPEATING or retrained)
    assert retrained or all(reason == "model.revision 2 -> 3" for reason in why), why


def test_a_migration_changes_names_and_keeps_what_was_measured():
    for row in ROWS.values():
        new = migrated(row)
        assert (row["schema"], new["schema"]) == (OLDEST, SCHEMA)
        assert [new.get(key) for key in FIELDS] == [row.get(key) for key in FIELDS]
        assert migrated(new) is new


@pytest.mark.nightly
@pytest.mark.parametrize("graph", ["bio_worm", "cora", "citeseer", "airport_hgcn"])
def test_graphs_whose_eigenvectors_kept_their_basis_have_simple_eigenvalues(
    graph, mirror, tmp_path
):
    config = compose([f"dataset={graph}", f"paths.data_dir={tmp_path}", f"paths.mirror={mirror}"])
    data = build_source(config.dataset, config.paths).load()
    adjacency = normalised_adjacency_matrix(data.edge_index, data.num_nodes)
    count, component = connected_components(adjacency, directed=False)
    sizes = np.bincount(component, minlength=count)
    assert (sizes > 512).any()
    for large in np.flatnonzero(sizes > 512):
        nodes = np.flatnonzero(component == large)
        last = len(nodes) - 1
        part = adjacency[nodes][:, nodes].toarray()
        ends = (last - SIMPLE_EIGENVALUES[graph], last)
        values = eigh(part, eigvals_only=True, subset_by_index=ends)
        assert np.diff(values).min() > 1e-5


@pytest.mark.parametrize("schema", [OLDEST - 1, SCHEMA + 1, "6", None])
def test_another_schema_is_refused(schema):
    with pytest.raises(SchemaError, match=f"it is of schema {schema}, and curvlab reads"):
        migrated({**ROWS[WEB], "schema": schema})


def test_a_table_of_earlier_rows_is_rendered_as_after_its_migration(tmp_path):
    rows = [row for run, row in ROWS.items() if run.startswith("fpst/fig3/")]
    table = tmp_path / "old" / "tables" / "fpst" / f"fig3{SUFFIX}"
    table.parent.mkdir(parents=True)
    named = [{**row, RUN: row[RUN].removeprefix("fpst/fig3/")} for row in rows]
    text = "".join(f"{json.dumps(row)}\n" for row in named)
    table.write_bytes(gzip.compress(text.encode(), mtime=0))
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    rewritten = tmp_path / "new" / "tables" / "fpst" / table.name
    assert (migrate_table(rewritten), migrate_table(rewritten)) == (len(rows), 0)
    assert {row["schema"] for row in read_rows(rewritten).values()} == {SCHEMA}
    old, new = (block(tmp_path / name / "tables", "fpst/fig3") for name in ("old", "new"))
    assert "(1)" in old
    assert old == new


def test_runs_of_an_earlier_version_are_added_as_todays(tmp_path):
    source, into = tmp_path / "source", tmp_path / "into"
    leave(ROWS[WEB], source / WEB)
    done = add_runs(source, into)
    assert (done.added, done.refused) == ([WEB], {})
    run = WEB.removeprefix("fpst/fig3/")
    (row,) = read_rows(into / f"fpst/fig3{SUFFIX}").values()
    assert row["config_hash"] == read_rows(RESULTS / f"fpst/fig3{SUFFIX}")[run]["config_hash"]
    assert add_runs(source, into).added == []


def test_an_earlier_version_has_finished_a_run_already(tmp_path):
    today = load(RESULTS / WEB / FILE)["config_hash"]
    assert today != ROWS[WEB]["config_hash"]
    elsewhere, here = tmp_path / "a" / "seed0", tmp_path / "b" / "seed0"
    finished = RunDirectory(leave(ROWS[WEB], elsewhere))
    kept = {key: ROWS[WEB][key] for key in ("config_hash", "schema", "revisions")}
    text = yaml.safe_dump({**kept, **ROWS[WEB]["config"]}, sort_keys=False)
    (elsewhere / CONFIG).write_text(text)
    assert finished.config_hash == today
    assert finished.conclusion(today).score == ROWS[WEB]["score"]
    assert finished.conclusion(ROWS[WEB]["config_hash"]) is None
    found = RunDirectory(here).elsewhere(tmp_path, today)
    assert found.path == elsewhere
    assert read_result(found.path).config_hash == today
