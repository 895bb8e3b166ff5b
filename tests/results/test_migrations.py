"""Steps of the schema: what is renamed, and that nothing else is touched."""

import copy
import json
from pathlib import Path

import pytest

from curvlab.config.schema import options_of
from curvlab.results.identity import built, identity_hash
from curvlab.results.migrations import SCHEMA, migrated
from curvlab.results.migrations_data import EDGE_LISTS, migrate_data
from curvlab.results.migrations_graphs import migrate_graphs
from curvlab.results.migrations_hyps import migrate_hyps
from curvlab.results.migrations_tasks import migrate_tasks

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
DESCRIBE = {
    "name", "label", "requires", "recipe", "manifold", "split", "one_graph", "classes_as_features",
    "hops", "self_loops", "token_dtype", "eigenvectors", "smallest", "largest",
}  # fmt: skip
"""Keys that name a part, or that other parts are made of."""

REQUIRED = {"transforms", "self_loops", "row_normalise", "kappa", "learnable", "weights",
            "weight_x", "bases", "inner", "manifolds"}  # fmt: skip


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


@pytest.mark.parametrize("migrate", [migrate_graphs, migrate_hyps, migrate_tasks])
@pytest.mark.parametrize("config", [None, {}, {"task": None}])
def test_what_is_not_of_a_steps_kind_stays(migrate, config):
    stored = {"status": "failed", "config": config}
    assert (migrate(stored)["config"] or {}) == (config or {})


def unknown(node):
    """Keys of a configuration that its class has no option for, and values it does not take."""
    signature = options_of(node["_target_"])
    for key, value in node.items():
        option = signature.get(key)
        if key.startswith("_") or key in DESCRIBE:
            continue
        if option is None or not option.settable:
            yield node["_target_"], key
        elif isinstance(value, dict) and "_target_" in value:
            yield from unknown(value)
        elif option.problem(value):
            yield node["_target_"], key, value


def test_every_stored_result_has_its_numbers_and_options_of_today_and_no_others():
    kinds = set()
    for path in RESULTS.rglob("result.json"):
        stored = json.loads(path.read_text())
        after = migrated(stored)
        config = after["config"]
        changed = {key for key in after if after[key] != stored.get(key)}
        assert changed <= {"config", "schema"}
        for part in ("model", "manifold", "task", "optimizer", "trainer", "split", "batching"):
            if "_target_" in config.get(part, {}):
                assert list(unknown(config[part])) == [], path
        assert set(config["model"].get("requires") or {}) <= REQUIRED
        assert identity_hash(config)
        assert "torch.optim" not in json.dumps(config)
        kinds.add(config["model"]["_target_"])
    assert len(kinds) > 30


def test_an_edge_list_has_files_and_statistics_and_no_name():
    source = {
        "_target_": EDGE_LISTS,
        "name": "power",
        "path": "Networks/power/raw/power.edges.csv",
        "url": "https://host/data/power/power.edges.csv",
        "sha256": "a29",
        "num_nodes": 4941,
        "num_edges": 6594,
        "max_degree": 19,
    }
    stored = {"score": 1.0, "config": {"dataset": {"name": "power", "source": source}}}
    before = copy.deepcopy(stored)
    moved = migrate_data(stored)
    assert moved["score"] == 1.0
    assert moved["config"]["dataset"] == {
        "name": "power",
        "source": {
            "_target_": EDGE_LISTS,
            "folder": "Networks/power/raw",
            "files": [{"path": "power/power.edges.csv", "sha256": "a29"}],
            "url": "https://host/data",
            "statistics": {"num_nodes": 4941, "num_edges": 6594, "max_degree": 19},
        },
    }
    assert migrate_data(moved) == moved
    assert stored == before


def test_other_sources_lose_their_name_and_hgcns_split_its_fractions():
    reader = {"_target_": "torch_geometric.datasets.WebKB", "name": "texas"}
    config = {
        "dataset": {"name": "texas", "source": {"name": "texas", "dataset": reader}},
        "split": {"name": "hgcn", "draw": 1234, "fractions": {"airport": {"val": 0.15}}},
    }
    moved = migrate_data({"config": config})["config"]
    assert moved["dataset"] == {"name": "texas", "source": {"dataset": reader}}
    assert moved["split"] == {"name": "hgcn", "draw": 1234}
    assert migrate_data({}) == {"config": {}}


OLD = {
    "optimizer": {
        "_target_": "torch.optim.AdamW", "_partial_": True, "lr": 0.001, "curvature_lr": 0.001,
        "weight_decay": 0.001, "fused": True,
    },
    "task": {
        "name": "kg_completion", "of": "triples", "requires": [], "metric": "mrr",
        "_target_": "curvlab.tasks.kg_completion.KnowledgeGraphCompletion",
        "label_smoothing": 0.1, "inverse_relations": False, "ties": "realistic",
        "scheduler": {
            "_target_": "torch.optim.lr_scheduler.ReduceLROnPlateau", "_partial_": True,
            "mode": "max", "factor": 0.5, "patience": 10,
        },
    },
}  # fmt: skip


def test_a_stored_run_builds_what_todays_does():
    assert built(migrate_tasks({"config": OLD})["config"]) == {
        "optimizer": {
            "_target_": "curvlab.optim.options.AdamW",
            "lr": 0.001,
            "weight_decay": 0.001,
        },
        "task": {
            "_target_": "curvlab.tasks.kg_completion.KnowledgeGraphCompletion",
            "scheduler": {"_target_": "curvlab.optim.options.ReduceOnPlateau"},
        },
    }
