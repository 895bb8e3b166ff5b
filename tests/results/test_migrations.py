"""Steps of the schema: what is renamed, and that nothing else is touched."""

from curvlab.results.migrations import SCHEMA, migrated


def test_modules_that_moved_have_their_new_names_wherever_they_stand():
    stored = {
        "score": 1.0,
        "config": {
            "split": {"_target_": "curvlab.data.splits.RandomSplit", "val": 0.2},
            "model": {
                "_target_": "curvlab.models.fpst.FPST",
                "requires": {"transforms": [{"_target_": "curvlab.data.transforms.Degrees"}]},
            },
            "task": {"_target_": "curvlab.tasks.cost.CompletionCost"},
            "optimizer": {"_target_": "torch.optim.Adam", "url": "curvlab.data.splits"},
        },
    }
    config = migrated(stored)["config"]
    assert config["split"] == {"_target_": "curvlab.data.splits.nodes.RandomSplit", "val": 0.2}
    (transform,) = config["model"]["requires"]["transforms"]
    assert transform["_target_"] == "curvlab.data.transforms.graph.Degrees"
    assert config["model"]["_target_"] == "curvlab.models.fpst.FPST"
    assert config["task"]["_target_"] == "curvlab.tasks.cost.steps.CompletionCost"
    assert config["optimizer"]["url"] == "curvlab.data.splits"  # which is no class


def test_balls_trainers_and_tokengt_are_named_by_their_classes():
    def config(model, manifold, trainer):
        parts = {"model": model, "manifold": manifold, "trainer": trainer}
        return migrated({"config": parts, "schema": 1})["config"]

    ball = config({"name": "hgcn"}, {"name": "poincare", "_target_": "x"}, {"patience": 9})
    assert ball["manifold"]["_target_"] == "curvlab.manifolds.PoincareBall"
    assert ball["trainer"]["_target_"] == "curvlab.run.options.FixedSteps"
    flat = config(
        {"name": "tokengt"}, {"name": "euclidean", "_target_": "x"}, {"validate_every": 1}
    )
    assert flat["model"]["_target_"] == "curvlab.models.tokengt.TokenGT"
    assert flat["manifold"]["_target_"] == "x"
    assert flat["trainer"] == {
        "_target_": "curvlab.run.options.EarlyStopping", "validate_every": 1
    }  # fmt: skip
    passes = config({}, {}, {"epochs": 3, "validate_every": 1})
    assert passes["trainer"]["_target_"] == "curvlab.run.options.Passes"


def test_points_have_a_rate_where_a_task_can_have_points():
    def optimizer(task):
        adam = {"_target_": "torch.optim.Adam", "lr": 0.01, "curvature_lr": 0.001}
        config = {"optimizer": adam, "task": {"name": task, "metric": "r2"}, "model": {}}
        return migrated({"config": config, "schema": 1})["config"]["optimizer"]

    assert optimizer("node_classification")["manifold_lr"] == 0.01
    assert "manifold_lr" not in optimizer("filter_regression__decay")


def test_what_is_of_today_stays_as_it_is():
    today = migrated({"config": {"split": {"_target_": "curvlab.data.splits.RandomSplit"}}})
    assert today["schema"] == SCHEMA
    assert migrated(today) == today
    assert migrated({**today, "schema": "new"}) == {**today, "schema": "new"}
