"""Stored runs that are run again: which ones, with which word, and what is kept."""

from dataclasses import replace

import numpy as np
import pytest

import stored_runs
from composing import CONFIGS, composed
from curvlab.cli.repeat import repeat
from curvlab.errors import UsageError
from curvlab.results.identity import identity_hash, revisions_of, stored_config
from curvlab.statistics import summarise
from curvlab.tables.repeat import (
    REPEATED,
    cheapest_runs,
    limit,
    read_repeated,
    repeat_row,
    summary,
    word_of,
    write_repeated,
)

TABLE, COLUMN = "hypformer/table2", "disease_synthetic"


@pytest.fixture
def store(tmp_path):
    """Write a run of a table; options are fields of its result."""
    results = tmp_path / "tables"

    def write(model, seed, score, column=COLUMN, **fields):
        words = f"table={TABLE}", f"model={model}", f"dataset={column}", f"seed={seed}"
        config = stored_config(composed(*words))
        revisions = revisions_of(config)
        values = {"model": model, "dataset": column, "experiment": TABLE, "seed": seed}
        values |= {"score": score, "device": "cpu", "wall_seconds": 1.0 + seed}
        values |= {"revisions": revisions, "task": "node_classification"}
        made = stored_runs.result(config, **values)
        made = replace(made, config_hash=identity_hash(config, revisions), **fields)
        folder = results / TABLE / column / model / f"seed{seed}"
        folder.mkdir(parents=True)
        made.save(folder)

    return results, write


@pytest.mark.parametrize(
    ("again", "most", "word"),
    [
        (80.0, 1.0, "to the digit"),
        (80.0, float("nan"), "to the digit"),
        (80.0000001, 1.0, "by rounding"),
        (79.1, 1.0, "by rounding"),
        (81.0, 1.0, "not"),  # not below the limit
        (78.0, 1.0, "not"),
        (80.0000001, float("nan"), "not"),  # no spread is known
        (80.0000001, 0.0, "not"),
    ],
)
def test_three_words(again, most, word):
    assert word_of(80.0, again, most) == word


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_two_more_draws_differ_by_more_than_the_limit_in_five_of_a_hundred(seeds):
    rng = np.random.default_rng(0)
    cells = rng.normal(80.0, 2.0, (4000, seeds))
    differences = np.abs(rng.normal(0.0, 2.0, (4000, 2)) @ [1, -1])
    limits = [limit(summarise(scores)) for scores in cells]
    assert np.mean(differences > limits) == pytest.approx(0.05, abs=0.01)


def test_the_cheapest_run_of_each_model_is_chosen(store):
    """Of cells with a spread; never one that is outdated, measures time, or ran elsewhere."""
    results, write = store
    for seed in (2, 0, 1):
        write("sgc", seed, 80.0 + seed)
    write("sgc", 0, 70.0, column="cora", wall_seconds=0.1)  # one run has no spread
    write("gcn", 0, 60.0, device="cuda:0")
    write("mlp", 0, None, status="diverged")
    write("gat", 0, 60.0, metrics={"test": {"inference_ms": 3.0}})
    write("hgcn", 0, 60.0, revisions={"curvlab.models.curved_gcn.HGCN": -1})
    write("hgnn", 3, 60.0)
    found = {run.model: run for run in cheapest_runs(results)}
    assert found.keys() >= {"sgc", "hgnn"}
    assert not found.keys() & {"gcn", "mlp", "gat"}
    assert (found["sgc"].run, found["sgc"].spread.std) == (f"{COLUMN}/sgc/seed0", 1.0)
    assert [run.seconds for run in cheapest_runs(results)] == sorted(
        run.seconds for run in found.values()
    )
    (cora,) = cheapest_runs(results, [f"{TABLE}/cora/sgc"])
    with pytest.raises(UsageError, match="there is no stored run of fpst/fig9: name a table"):
        cheapest_runs(results, [f"{TABLE}/cora/sgc", "fpst/fig9"])
    assert cora.run == "cora/sgc/seed0"


@pytest.mark.nightly
def test_a_run_is_repeated_whatever_its_stored_score(store):
    """What comes out is the command's score; the word compares it with what is stored."""
    results, write = store
    for seed, score in enumerate((80.0, 82.0, 84.0)):
        write("sgc", seed, score)
    (one,) = cheapest_runs(results)
    (row,) = repeat(CONFIGS, [one])
    again = float(row["again"])
    assert 0 < again <= 100
    assert again != one.score
    for stored, word in ((again, "to the digit"), (again + 12, "by rounding"), (again - 13, "not")):
        (other,) = repeat(CONFIGS, [replace(one, score=stored)])
        assert (float(other["again"]), other["word"]) == (again, word)
    changed = replace(one, result={**one.result, "config_hash": "0" * 16})
    assert not list(repeat(CONFIGS, [changed]))  # the command would build something else


def test_the_table_keeps_one_row_of_a_cell(store):
    results, write = store
    for seed in range(3):
        write("sgc", seed, 80.0 + seed)
    (one,) = cheapest_runs(results)
    write_repeated(results, [repeat_row(one, 80.0)])
    write_repeated(results, [repeat_row(one, 80.5)])
    (row,) = read_repeated(results)
    assert (row["stored"], row["again"], row["word"]) == ("80.0", "80.5", "by rounding")
    assert (row["std"], row["seeds"], row["limit"]) == ("1", "3", "6.085")  # 4.303 sqrt(2)
    assert summary(read_repeated(results), 3) == (
        "1 of 3 pairs of a table and a model were repeated, in 1 runs: 0 to the digit, 1 by "
        "rounding, 0 not"
    )
    (results.parent / REPEATED).write_text("table,word\nfpst/fig3,not\n")
    with pytest.raises(UsageError, match="tables repeat"):
        read_repeated(results)


def test_the_stored_table_has_the_words_of_its_numbers():
    for row in read_repeated(CONFIGS.parent / "docs/results/tables"):
        most = float(row["limit"] or "nan")
        assert row["word"] == word_of(float(row["stored"]), float(row["again"]), most)
