#!/usr/bin/env python
"""Try faults on real runs: kills, damaged files, full disks and shared memory, killed verbs.

scripts/faults.py --minutes 60                        every kind; prints what broke something
scripts/faults.py --trials 100 --kind kill --seed 7   the same seed tries the same faults
scripts/faults.py --minutes 0 --output FILE.csv       the counts of all that was tried
"""

import argparse
import json
import math
import sys
import time
from collections import Counter
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from curvlab.files import atomic_write

TESTS = Path(__file__).resolve().parents[1] / "tests"
KINDS = ("kill", "flip", "disk", "memory", "verb")


def main() -> int:
    """Try faults until the time is over; 1 if one broke something."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="of all kinds together")
    parser.add_argument("--trials", type=int, help="of each kind, in place of --minutes")
    parser.add_argument("--kind", choices=KINDS, action="append", help="all by default")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the clock")
    parser.add_argument("--log", type=Path, default=Path("outputs/faults.jsonl"))
    parser.add_argument("--output", type=Path, help="a CSV file of what the log has")
    arguments = parser.parse_args()
    kinds = arguments.kind or KINDS
    intact = True
    trials = arguments.trials
    seconds = math.inf if trials else 60 * arguments.minutes / len(kinds)
    if seconds:
        for kind in kinds:
            intact &= try_faults(kind, arguments.seed, seconds, trials, arguments.log)
    if arguments.output:
        tried = [json.loads(line) for line in arguments.log.read_text().splitlines()]
        atomic_write(arguments.output, counts(tried))
    return int(not intact)


def try_faults(kind: str, seed: int, seconds: float, most: int | None, log: Path) -> bool:
    """Try faults of one kind and write each to the log; whether all held."""
    sys.path[:0] = [str(TESTS), str(TESTS / "integration")]
    trials = import_module("fault_trials")
    log.parent.mkdir(parents=True, exist_ok=True)
    results: Counter[str] = Counter()
    with log.open("a", encoding="utf-8") as file:
        for outcome in trials.attempts(kind, seed, seconds, most):
            results["held" if outcome.held else "broken"] += 1
            line = json.dumps(asdict(outcome), ensure_ascii=False)
            print(line, file=file, flush=True)
            if not outcome.held:
                print(f"{outcome.kind}: {outcome.what}: {outcome.result}\n{outcome.detail}")
    print(f"{kind}, seed {seed}: {results.total()} tried, {results['broken']} broke something")
    return not results["broken"]


def counts(tried: list[dict[str, Any]]) -> str:
    """Number of trials of each fault and of each outcome, as CSV."""
    results = pd.DataFrame(tried)
    results["same_score"] = results["result"].isin(["same score", "accepted"])
    results["refused"] = results["result"].eq("refused")
    trials = results.groupby(["kind", "of"])
    table = trials[["same_score", "refused"]].sum()
    table.insert(0, "tried", trials.size())
    table["broken"] = table["tried"] - table["same_score"] - table["refused"]
    return table.reset_index(names=["fault", "of"]).to_csv(index=False)


if __name__ == "__main__":
    sys.exit(main())
