"""Runs on knowledge graphs: what they leave, who beats the floors, what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_runs import TREE, TRIPLES

from curvlab.config.resolvers import steps_of_pass
from curvlab.results.result import read_result
from curvlab.tasks import triple_ranking
from curvlab.tasks.kg_completion import KnowledgeGraphCompletion

KG = (*TRIPLES, "optimizer.lr=0.01", "trainer.plots=false")
SHORT = (*KG, "model=distmult", "trainer.epochs=3")
BEATING = ["cat", "distmult", "transe", "murp", "roth"]


def test_a_run_leaves_result_curves_and_a_picture(run_here, folder):
    result = run_here(*KG[:-1], "model=distmult", "trainer.epochs=3")
    assert result == read_result(folder)
    assert (result.status, result.task) == ("finished", "kg_completion")
    names = ["mrr", "mean_rank", "hits1", "hits3", "hits10", "raw_mrr", "raw_hits10", "at_rim"]
    assert {part: list(scores) for part, scores in result.metrics.items()} == {
        "val": names,
        "test": names,
    }
    test = result.metrics["test"]
    assert result.score == test["mrr"] > test["raw_mrr"] > 0
    assert test["at_rim"] == 0  # there is none in flat space
    assert test["hits1"] <= test["hits3"] <= test["hits10"] <= 1 <= test["mean_rank"]
    assert result.steps == 3 * steps_of_pass(224, 32, False) == 21
    curves = pd.read_csv(folder / "metrics.csv")
    assert curves["step"].tolist() == [7, 14, 21]
    assert curves["val/mrr"].max() == pytest.approx(result.val_score, abs=1e-6)
    assert {path.name for path in (folder / "plots").iterdir()} == {"curves.png", "relations.png"}
    assert not (folder / "embeddings.npz").exists()
    rankings = pd.read_csv(folder / "rankings.csv").query("by == 'all' and ties == 'realistic'")
    for prefix, kind in (("", "filtered"), ("raw_", "raw")):
        assert rankings.set_index("type").loc[kind, ["mrr", "hits10"]].tolist() == pytest.approx(
            [test[f"{prefix}mrr"], test[f"{prefix}hits10"]], rel=1e-5
        )
    relations = pd.read_csv(folder / "relations.csv")
    mean = np.average(relations["mrr"], weights=relations["queries"])
    assert mean == pytest.approx(test["mrr"], rel=1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", ["murp", "roth", "atth"])
def test_ball_models_compute_in_double_precision_and_say_what_is_at_the_rim(
    run_here, folder, model, capsys
):
    result = run_here(*KG, f"model={model}", "trainer.epochs=2")
    assert result.config["trainer"]["precision"] == "64-true"
    assert result.metrics["test"]["at_rim"] == 0
    assert "the rim of the ball" not in capsys.readouterr().out
    far = run_here(*KG, f"model={model}", "trainer.epochs=2", "optimizer.lr=3", folder="far")
    assert 0.01 < far.metrics["test"]["at_rim"] <= 1
    curves = pd.read_csv(folder.parent / "far" / "metrics.csv")
    assert curves["val/at_rim"].between(0, 1).all()
    said = " ".join(capsys.readouterr().out.split())
    assert "of the test triples' points are stopped at the rim of the ball" in said
    assert "lower optimizer.lr" in said
    assert "64-true" not in said


def test_both_sides_are_ranked_with_inverse_relations(run_here):
    result = run_here(*SHORT, "task.inverse_relations=true", "task.hits=[5]", "model.dim=8")
    test = result.metrics["test"]
    assert test["hits3"] <= test["hits5"] <= test["hits10"]
    assert test["mrr"] == pytest.approx((test["tail_mrr"] + test["head_mrr"]) / 2, abs=1e-6)
    assert result.steps == 3 * 14
    assert result.parameters == 8 * (30 + 2 * 6)


@pytest.mark.smoke
def test_the_test_triples_are_ranked_once_with_the_best_weights(run_here, watch):
    ranked = []

    def note(task, batch, part):
        ranked.append((part, task.encoder.entities.weight.detach().clone()))

    watch(KnowledgeGraphCompletion, "rank_part", note)
    result = run_here(*SHORT, "task.metric=hits3")
    assert result.score == result.metrics["test"]["hits3"]
    # Once a validation, which chooses weights and draws the curve, and once at the end.
    assert [part for part, _ in ranked] == ["val"] * 4 + ["test"]
    best = result.best_step // 7 - 1
    assert torch.equal(ranked[-1][1], ranked[best][1])


@pytest.fixture(scope="module")
def floor():
    """The filtered MRR that takes no learning, by the model's own formula."""
    from curvlab.data.datasets.synthetic_triples import SyntheticKnowledgeGraph

    data = SyntheticKnowledgeGraph(6, 5, 0).load()
    head, tail = data.edge_index.numpy()
    relation, train = data.edge_type.numpy(), data.train_mask.numpy()
    counts = np.zeros((6, 30))
    np.add.at(counts, (relation[train], tail[train]), 1)
    reciprocal = []
    for h, r, t in zip(*(c[data.test_mask.numpy()] for c in (head, relation, tail)), strict=True):
        others = np.setdiff1d(np.arange(30), tail[(head == h) & (relation == r)])
        above = (counts[r, others] > counts[r, t]).sum()
        reciprocal.append(1 / (1 + above + (counts[r, others] == counts[r, t]).sum() / 2))
    return float(np.mean(reciprocal))


def test_the_floor_is_what_counting_gives(run_here, floor):
    result = run_here(*KG, "model=relation_frequency")
    assert result.metrics["test"]["mrr"] == pytest.approx(floor, abs=1e-6)
    assert result.steps == 1
    lookup = run_here(*KG, "model=reverse_lookup", folder="lookup")
    assert lookup.score > floor  # two of the relations are symmetric


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", BEATING)
def test_every_model_beats_the_floor(run_here, floor, model):
    result = run_here(*KG, f"model={model}", "trainer.epochs=20")
    assert result.score > 1.2 * floor


@pytest.mark.parametrize("every", [1, 2])
def test_a_run_ends_when_the_rate_has_fallen(run_here, folder, every):
    """Every second validation halves the rate: 0.1, 0.05 and 0.025, with which one epoch begins."""
    scheduler = ("task.scheduler.patience=1", "task.scheduler.threshold=10")
    ends = ("task.scheduler.end_below=0.03", "trainer.epochs=40", "optimizer.lr=0.1")
    result = run_here(*SHORT, *scheduler, *ends, f"+trainer.check_val_every_n_epoch={every}")
    epochs = 5 * every + 1
    assert result.steps == epochs * result.config["trainer"]["steps_per_epoch"]
    assert pd.read_csv(folder / "metrics.csv")["val/mrr"].count() == epochs // every


def lowered_once(after):
    target = "curvlab.optim.optimisers.LowerOnce"
    return "task.scheduler=null", f"task.scheduler={{_target_: {target}, after: {after}}}"


GOING_ON = {
    "rare validations": ("+trainer.check_val_every_n_epoch=2",),
    "a rate that was lowered before": lowered_once(0.5),
    "a rate that is lowered afterwards": lowered_once(0.9),
}


@pytest.mark.usefixtures("keeps_last")
@pytest.mark.parametrize("name", GOING_ON)
def test_a_run_goes_on_to_the_same_digit(name, run_here, folder):
    words = (*KG, "model=distmult", "trainer.epochs=6", *GOING_ON[name])
    whole, curves = run_here(*words), (folder / "metrics.csv").read_text()
    assert ("rate that" in name) == ("after" in whole.config["task"]["scheduler"])
    for file in ("result.json", "checkpoints/last.ckpt"):
        (folder / file).unlink()
    assert run_here(*words).metrics == whole.metrics
    assert (folder / "metrics.csv").read_text() == curves


def test_mixed_precision_trains_at_a_constant_rate_and_ranks_in_single(run_here, watch):
    """Half precision would make candidates equal that are not."""
    seen = set()

    def note(scores, *_):
        seen.add((scores.dtype, bool((scores == scores.bfloat16()).all())))

    watch(triple_ranking, "rank_counts", note)
    words = ("trainer.precision=bf16-mixed", "task.scheduler=null", "trainer.references=false")
    run_here(*SHORT, *words)
    assert seen == {(torch.float32, False)}


def test_entities_without_training_are_counted_and_metrics_of_groups_written(command):
    parts = {"train": "a\tr\tb\nb\tr\tc\n", "valid": "c\tr\ta\n", "test": "a\tr\tz\n"}
    for name, text in parts.items():
        (command.folder / f"{name}.txt").write_text(text)
    words = ("trainer.epochs=1", "trainer.plots=false", "task.hits=[2]")
    words += ("task.inverse_relations=false",)
    place = f"dataset.source.path={command.folder}"
    done = command("dataset=kg_folder", place, "model=distmult", *words)
    assert "1 validation and test triples have one of 1 entities" in done.stdout + done.stderr
    (folder,) = command.results()
    table = pd.read_csv(command.outputs / folder / "rankings.csv").query("by == 'frequency'")
    assert "adjusted_hits2" in table
    assert table["group"].astype(int).tolist() == [0] * 6  # two types, three rules
    assert table["queries"].tolist() == [1] * 6


def test_patience_counts_passes(run_here):
    words = ("optimizer.lr=1e-12", "trainer.patience=2", "trainer.epochs=9")
    result = run_here(*KG, "model=distmult", *words)
    assert (result.best_step, result.steps) == (7, 3 * 7)


def test_cat_leaves_its_routing_by_relation(run_here, folder):
    result = run_here(*KG[:-1], "model=cat", "trainer.epochs=2")
    table = pd.read_csv(folder / "routing.csv").set_index("relation")
    names = ["euclidean", "hyperbolic", "spherical"]
    test = result.metrics["test"]
    assert [test[f"routing_{name}"] for name in names] == pytest.approx(
        table.loc["all", names].tolist(), abs=1e-3
    )
    assert test["routing_entropy"] == pytest.approx(table.loc["all", "entropy"], abs=1e-3)
    np.testing.assert_allclose(table[names].sum(axis=1), 1, atol=1e-3)
    assert table.loc["all", "queries"] == table["queries"].iloc[1:].sum() == 27
    pictures = {path.name for path in (folder / "plots").iterdir()}
    assert pictures == {"routing_test.png", "curves.png", "relations.png"}
    curves = pd.read_csv(folder / "metrics.csv")
    assert curves["val/routing_entropy"].between(0, np.log(3) + 1e-6).all()


@pytest.mark.parametrize("model", ["cat", "cat_spherical"])
def test_cat_classifies_nodes(run_here, folder, model, caplog):
    """The fixed spherical branch collapses where all nodes are one sequence, and says so."""
    words = ("trainer.max_steps=30", "optimizer.lr=0.01", "trainer.plots=false")
    result = run_here(*TREE, f"model={model}", *words)
    assert result.config["model"]["token_layout"] == "graph"
    assert result.metrics.keys() - {"points"} == {"train", "val", "test"}
    loss = pd.read_csv(folder / "metrics.csv")["loss"].iloc[-1]
    if model == "cat":
        assert loss < 0.2
    else:
        assert "the model has collapsed" in caplog.text
        assert loss > 0.4
