"""Claims of the papers and their verdicts, as tables and sentences."""

from collections.abc import Iterator, Sequence
from math import inf, isnan

import pandas as pd

from curvlab.statistics import FEWEST_SPREAD, LEVEL, NOT_RUN, VERDICTS, count_of_runs
from curvlab.tables.claims import SECONDS, Claim, Comparison, agenda
from curvlab.tables.overview import MARGINS
from curvlab.tables.render import decimal, listed

CLAIMS_LEGEND = (
    "Each published comparison counts once, where the paper prints the first method as better. Our "
    "runs at the table's protocol are paired by seed. Seeds that share one of several published "
    "splits are one pair, by their mean; where all seeds share one split, each is a pair, and the "
    "interval is over initialisations alone. *Confirmed* and *contradicted*: they differ at "
    f"{1 - LEVEL:.0%} (t test, Holm's correction over the comparisons of a line that have "
    f"{FEWEST_SPREAD} seeds). *Level*: neither after the correction, and the 95 % interval of the "
    f"difference lies within the margin. The margin is {MARGINS}, and never less than half of the "
    "published difference. *Undecided*: the interval is wider, or of fewer than "
    f"{FEWEST_SPREAD} seeds. *Not run*: no common seed. Hours are those that would decide the open "
    "comparisons on this machine, by the cost of stored runs and the spread so far. A plus sign: "
    "some comparisons have no stored run and are not in the hours; a question mark: none has one. "
    "Some comparisons were undecided with the planned seeds and judged again with more, some of "
    "them several times. The 95 % do not allow for that: with k looks the rate of errors is up to "
    "k times 5 %. Where the planned seeds alone lead to another verdict, the paper's page says so. "
    "`curvlab tables decide NAME` with a name of the last column prints the commands. Lines that "
    "begin with ↳ do not count. They repeat a comparison on another split, have no published "
    "number, have both methods off the table's protocol in the same way, or the paper prints the "
    "second method as better."
)
BELOW = "↳"
UNKNOWN = "?"
MOST_NAMED = 3  # data sets that were not run, in a sentence


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """A row of text for each claim, and a row below it for comparisons that do not count."""
    rows = []
    for claim in claims:
        rows.append(_row(claim, claim.counted))
        rows[-1] |= {"paper": claim.paper, "claim": f"[{claim.claim}]({claim.link})"}
        uncounted = [one for one in claim.comparisons if not one.counted]
        if uncounted:
            rows.append(_row(claim, uncounted) | {"claim": BELOW, "decide": "", "hours": ""})
    return pd.DataFrame(rows)


def _row(claim: Claim, comparisons: Sequence[Comparison]) -> dict[str, str]:
    words = [one.verdict.word for one in comparisons]
    open_ones = [one for one in comparisons if one.is_open]
    known = [one.hours for one in open_ones if one.hours < inf]
    some_unknown = len(known) < len(open_ones)
    hours = f"{sum(known):.1f}" + "+" * some_unknown if known else UNKNOWN
    return {
        "paper": "",
        "claim": "",
        "comparisons": str(len(comparisons)),
        **{word: str(words.count(word) or "") for word in VERDICTS},
        "hours": hours if open_ones else "",
        "decide": f"`{claim.name}`" if open_ones else "",
    }


def comparison_table(claim: Claim) -> pd.DataFrame:
    """A row of text for each comparison of a claim."""
    rows = [
        {
            "dataset": one.label if one.counted else f"{BELOW} {one.label}",
            "published": decimal(one.published, claim.digits, "+"),
            "ours": one.in_words(claim.digits),
            "seeds": count_of_runs(one.pairs.runs, one.pairs.pairs) if one.pairs.pairs else "",
            "margin": f"±{one.margin:.{claim.digits}f}",
            "verdict": one.verdict_in_words,
        }
        for one in claim.comparisons
    ]
    return pd.DataFrame(rows)


def agenda_in_words(claims: Sequence[Claim]) -> Iterator[str]:
    """Two lines for each item of the agenda, with its cost and command, and a last line on all."""
    comparisons = agenda(claims)
    for one in comparisons:
        yield f"{_hours(one.seconds):>12}  {one.claim.claim}, {one.label}: {one.verdict_and_splits}"
        yield f"{'':>12}  {one.command}"
    hours = sum(one.hours for one in comparisons if one.hours < inf)
    unknown = sum(not one.hours < inf for one in comparisons)
    remark = f"; no stored run tells the time of {unknown} of them" if unknown else ""
    count = len(comparisons)
    yield f"open comparisons: {count}, about {hours:.1f} hours on this machine{remark}"


def _hours(seconds: float) -> str:
    if isnan(seconds):
        return "hours: ?"
    return f"{seconds / SECONDS:.2f} hours" if seconds < inf else "no number"


def summary_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """Number of published comparisons of each paper with each of the five words, as text."""
    rows = []
    for paper in dict.fromkeys(claim.paper for claim in claims):
        of_paper = [claim for claim in claims if claim.paper == paper]
        counts = {word: sum(claim.counts[word] for claim in of_paper) for word in VERDICTS}
        page = f"[{paper}](docs/results/{of_paper[0].folder}.md)"
        words = {word: str(count or "") for word, count in counts.items()}
        rows.append({"paper": page, "comparisons": str(sum(counts.values())), **words})
    return pd.DataFrame(rows)


def verdict_in_words(claim: Claim, counted: bool = True) -> str:
    """Verdicts of a claim's comparisons: the data sets of each word.

    Of many data sets that were not run, only the number is given: the claim's table has them.
    """
    labels_by_word: dict[str, list[str]] = {word: [] for word in VERDICTS}
    for one in claim.comparisons:
        if one.counted == counted:
            labels_by_word[one.verdict.word].append(one.label)
    parts = [f"{word} on {listed(labels)}" for word, labels in labels_by_word.items() if labels]
    missing = len(labels_by_word[NOT_RUN])
    if missing > MOST_NAMED:
        which = f"{missing} others" if parts[1:] else f"any of {missing} data sets"
        parts[-1] = f"{NOT_RUN} on {which}"
    return ", ".join(parts) or "without a published comparison"
