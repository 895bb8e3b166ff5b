"""Reference points of scores, in words."""

from collections.abc import Iterable, Mapping

import pandas as pd

from curvlab.results.result import Result


def mean_references(results: Iterable[Result]) -> dict[str, float]:
    """Reference points of runs on one data set, averaged over seeds; empty without any."""
    points = {result.seed: result.references for result in results if result.references}
    means = pd.DataFrame.from_dict(points, orient="index").mean()
    return {str(name): float(value) for name, value in means.items()}


def format_references(references: Mapping[str, float]) -> str:
    """Reference points in words: `majority 15.8, neighbours' vote 87.5`."""
    return ", ".join(f"{name} {format_score(value)}" for name, value in references.items())


def format_score(value: float) -> str:
    """Format a score: one digit for a percentage, four for a fraction."""
    digits = 4 if 0 < abs(value) < 1 else 1
    return f"{value:.{digits}f}"
