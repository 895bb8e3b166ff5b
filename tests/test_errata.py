"""The errata name tests that exist, in tables that are whole."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "errata.md").read_text()


def test_every_test_that_the_errata_name_exists():
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE))
    assert len(named) > 50
    assert PAGE.count("`tests/") == len(re.findall(r"`tests/[\w/]+\.py::\w+`", PAGE))
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert missing == []


def test_every_row_has_four_cells_and_says_what_shows_it():
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert all(cells), row
