#!/usr/bin/env python
"""How often `study=spaces` is right on graphs whose answer is known.

scripts/spaces.py outputs/study                                      the share, and each answer
scripts/spaces.py outputs/study --output docs/results/spaces.csv     the answers as a file
"""

import argparse
import sys
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.results.files import atomic_write
from curvlab.study.known import answers, as_csv


def main() -> None:
    """Print the share, or write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of studies")
    parser.add_argument("--output", type=Path, help="a CSV file")
    arguments = parser.parse_args()
    try:
        found = answers(arguments.folder)
    except UsageError as error:
        sys.exit(f"spaces.py: {error}")
    for answer in found:
        word = "right" if answer.right else f"not {answer.expected}"
        runs = f"{answer.dataset}, {answer.model}, {answer.seeds} seeds"
        print(f"{runs}: {answer.recommended}, {word}")
    print(f"{sum(answer.right for answer in found)} of {len(found)} recommendations are right")
    if arguments.output:
        atomic_write(arguments.output, as_csv(found))


if __name__ == "__main__":
    main()
