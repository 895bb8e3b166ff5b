#!/usr/bin/env python
"""Rewrite stored tables of runs as this version would store them.

scripts/migrate.py [FOLDER ...]     default: docs/results
"""

import sys
from pathlib import Path

from curvlab.results.migrations import migrate_table
from curvlab.results.run_tables import SUFFIX

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def main(folders: list[str]) -> int:
    """Rewrite every table below the folders and print how many rows changed."""
    for folder in map(Path, folders or [str(RESULTS)]):
        for table in sorted(folder.rglob(f"*{SUFFIX}")):
            if count := migrate_table(table):
                print(f"{table}: {count} rows rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
