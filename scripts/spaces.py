#!/usr/bin/env python
"""Show the share of right answers of `study=spaces` on graphs whose answer is known.

scripts/spaces.py outputs/study                                      the share, and each answer
scripts/spaces.py outputs/study --output docs/results/spaces.csv     the answers as a file
"""

import argparse
import sys
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.files import atomic_write
from curvlab.study.grid import answers


def main() -> None:
    """Print the share, or write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of studies")
    parser.add_argument("--output", type=Path, help="a CSV file")
    arguments = parser.parse_args()
    try:
        table = answers(arguments.folder)
    except UsageError as error:
        sys.exit(f"spaces.py: {error}")
    print(table[["dataset", "model", "seeds", "expected", "recommended"]].to_string(index=False))
    print(f"{table['right'].sum()} of {len(table)} recommendations are right")
    if arguments.output:
        atomic_write(arguments.output, table.to_csv(index=False))


if __name__ == "__main__":
    main()
