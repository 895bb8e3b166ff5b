#!/usr/bin/env python
"""Rewrite stored tables of runs and shipped weights as this version would store them.

scripts/migrate.py [FOLDER ...]     default: docs/results and src/curvlab/weights
"""

import sys
from pathlib import Path

import torch

from curvlab.results.migrations import migrate_table, migrated
from curvlab.results.run_tables import SUFFIX

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "docs" / "results", ROOT / "src" / "curvlab" / "weights")


def main(folders: list[str]) -> int:
    """Rewrite all tables and weights below the folders and print what has changed."""
    for folder in map(Path, folders or FOLDERS):
        for table in sorted(folder.rglob(f"*{SUFFIX}")):
            count = migrate_table(table)
            if count:
                print(f"{table}: {count} rows rewritten")
        for weights in sorted(folder.rglob("*.ckpt")):
            stored = torch.load(weights, weights_only=True)
            new = migrated(stored)
            if new is not stored:
                torch.save(new, weights)
                print(f"{weights}: rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
