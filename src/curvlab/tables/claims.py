"""The papers' main claims that one method is better than another, judged by our runs."""

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.statistics import FEWEST, LEVEL, holm, paired_by_seed
from curvlab.tables.boards import seed_scores
from curvlab.tables.report import Report

CLAIMS_LEGEND = (
    "Published and ours: in how many columns of the table the first method is better. *Confirmed* "
    "and *contradicted*: columns in which the paper prints it as better and our runs, paired by "
    "seed "
    f"at the table's protocol, differ at {1 - LEVEL:.0%} (t test, Holm's correction within a "
    f"line). *Open*: the others, also those that are not run or have fewer than {FEWEST} common "
    "seeds. Hours: those of the two methods."
)


def claims(reports: Callable[[str], Sequence[Report]]) -> pd.DataFrame:
    """Judge each claim by the first report of its table; return text."""
    listed = pd.read_csv(Path(__file__).with_name("claims.csv"), dtype=str).to_dict("records")
    return pd.DataFrame([judge(claim, reports(claim["table"])[0]) for claim in listed])


def judge(claim: dict[Any, str], report: Report) -> dict[str, str]:
    """The paper's differences on each data set, ours, and how many of them agree."""
    methods = claim["method"], claim["other"]
    sign = -1 if report.better == "lower" else 1
    cells = report.cells.set_index(["row", "column"])
    first, second = (cells.loc[method] for method in methods)
    published = (sign * (first["paper_mean"] - second["paper_mean"])).dropna()
    runs = report.runs[report.runs["row"].isin(methods)]
    finished = runs[(runs["status"] == "finished") & (runs["deviation"] == "")]
    pairs = {
        column: paired_by_seed(*(seed_scores(finished, method, str(column)) for method in methods))
        for column in report.columns
    }
    ours = {c: pair for c, pair in pairs.items() if pair.pairs >= FEWEST and isfinite(pair.p_t)}
    better = {column: sign * pair.mean > 0 for column, pair in ours.items()}
    clear = [p < LEVEL for p in holm([pair.p_t for pair in ours.values()])]
    claimed = set(published.index[published > 0])
    found = [
        better[c] for c, is_clear in zip(ours, clear, strict=True) if is_clear & (c in claimed)
    ]
    verdict = {
        "confirmed": sum(found),
        "contradicted": len(found) - sum(found),
        "open": len(claimed) - len(found),
    }
    return {
        "paper": claim["paper"],
        "claim": f"[{claim['claim']}]({claim['link']})",
        "published": f"{len(claimed)} of {len(published)}",
        "ours": f"{sum(better.values())} of {len(better)}",
        "verdict": ", ".join(f"{count} {word}" for word, count in verdict.items() if count),
        "hours": f"{runs['seconds'].sum() / 3600:.1f}",
    }
