from math import isnan
from pathlib import Path

import pytest

from curvlab.tables.compare import compare, comparison


@pytest.fixture
def folders(write_run, tmp_path, monkeypatch):
    """Two folders of results: FPS-T moves from 98 to 99, GCN gains a run, SGC stays, MLP is new."""
    before, now = tmp_path / "before", tmp_path / "now"

    def write(folder: Path, *run) -> None:
        (folder / "fpst" / "fig3").parent.mkdir(parents=True, exist_ok=True)
        path = write_run(*run)
        target = folder / path.relative_to(tmp_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)

    for folder, score in ((before, 97.0), (now, 98.5)):
        write(folder, "fpst", "web_edu", 0, score)
        write(folder, "fpst", "web_edu", 1, score + 1)
        write(folder, "gcn", "power", 0, 50.0)
        write(folder, "sgc", "power", 0, 40.0)
    write(now, "gcn", "power", 1, 50.0)
    write(now, "mlp", "power", 0, 30.0)
    return before, now


def test_cells_that_differ_are_found_and_no_others(spec, folders):
    cells = compare([spec], *folders).set_index("row")
    assert sorted(cells.index) == ["FPS-T", "GCN", "MLP"]
    moved = cells.loc["FPS-T"]
    assert (moved["before_mean"], moved["now_mean"], moved["change"]) == (97.5, 99.0, 1.5)
    assert moved["paper"] == 99.0
    assert (cells.loc["GCN", "before_runs"], cells.loc["GCN", "now_runs"]) == (1, 2)
    assert cells.loc["GCN", "change"] == 0
    assert cells.loc["MLP", "before_runs"] == 0
    assert isnan(cells.loc["MLP", "change"])


def test_the_table_has_a_line_a_cell(spec, folders):
    lines = comparison([spec], *folders).splitlines()
    assert "| fpst/fig3 | FPS-T | Web-Edu | 97.50 (2) | 99.00 (2) | +1.50 | 99.00 |" in lines
    assert any("| - | 30.00 (1) |  |" in line for line in lines)


def test_equal_folders_have_no_difference(spec, folders):
    assert comparison([spec], folders[0], folders[0]) == "No cell differs.\n"
