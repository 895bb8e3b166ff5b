"""Studies of graphs whose answer is known: the share of right recommendations."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from math import nan
from pathlib import Path

from curvlab.errors import UsageError
from curvlab.study.page import JSON

KNOWN = {
    "balanced_tree": "hyperbolic",
    "noisy_tree": "hyperbolic",
    "sphere_points": "spherical",
    "grid": "flat",
    "random_geometric": "flat",
    "ring_of_trees": "product",
}
"""The space that a data set's graph fits into."""


@dataclass(frozen=True)
class Answer:
    """What a study said of a graph and a model, beside what is known.

    Attributes:
        dataset: choice of `dataset=`.
        model: choice of `model=`.
        seeds: runs in each space.
        spaces: that flat was compared with.
        expected: the space that the graph fits into.
        recommended: by the study.
        right: whether they are the same.
        alike: spaces that the study does not tell from the recommended one.
        flat: mean score of the flat twin.
        best_curved: the curved space with the best mean.
        difference: its mean difference from flat.
        pm: half of the 95 % interval.
        p_holm: of that difference, corrected.
    """

    dataset: str
    model: str
    seeds: int
    spaces: str
    expected: str
    recommended: str
    right: bool
    alike: str
    flat: float
    best_curved: str
    difference: float
    pm: float
    p_holm: float


def answers(folder: Path) -> list[Answer]:
    """Read the studies of known graphs below a folder, in the order of their paths.

    Raises:
        UsageError: there are none.
    """
    found = [answer for path in sorted(folder.rglob(JSON)) for answer in _answers(path)]
    if not found:
        raise UsageError(f"{folder} has no study of {', '.join(KNOWN)}: run study=spaces on them")
    return found


def _answers(path: Path) -> Iterator[Answer]:
    study = json.loads(path.read_text(encoding="utf-8"))
    expected = KNOWN.get(study["dataset"])
    if expected is None:
        return
    for report in study["reports"]:
        scores = report["flat"]["scores"]
        best = max(report["others"], key=lambda other: sum(other["outcome"]["scores"]))
        recommended = report["verdict"]["space"]
        yield Answer(
            dataset=study["dataset"],
            model=report["flat"]["model"],
            seeds=len(scores),
            spaces=" ".join(other["outcome"]["space"] for other in report["others"]),
            expected=expected,
            recommended=recommended,
            right=recommended == expected,
            alike=" ".join(report["verdict"]["alike"]),
            flat=round(sum(scores) / len(scores), 2),
            best_curved=best["outcome"]["space"],
            difference=round(best["paired"]["mean"], 2),
            pm=nan if best["paired"]["pm"] is None else round(best["paired"]["pm"], 2),
            p_holm=float(f"{best['corrected']:.2g}"),
        )


def as_csv(found: list[Answer]) -> str:
    """Answers as CSV, a line each."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(Answer)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(answer) for answer in found)
    return text.getvalue()
