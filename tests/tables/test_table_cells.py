"""What a table plans can be run: its cells compose, are valid and take a step on a small graph."""

import copy
import math
from itertools import product
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf, open_dict, read_write
from tiny_data import shrink, take_a_step

from curvlab.config import base_name, register_resolvers, validate
from curvlab.tables import build_report, load_table, table_names

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
TABLES = table_names(CONFIGS)


def sweep(name):
    """Keys and values that a table sweeps, the first seed only."""
    params = OmegaConf.load(CONFIGS / "table" / f"{name}.yaml").hydra.sweeper.params
    keys = {}
    for key, values in params.items():
        override = OverridesParser.create().parse_override(f"{key}={values}")
        choices = override.sweep_iterator() if override.is_sweep_override() else [override.value()]
        keys[key] = list(choices)
    keys["seed"] = keys["seed"][:1]
    return keys


@pytest.fixture(scope="module")
def composed():
    """`composed(word, ...)`: the configuration of a run, and Hydra's own part of it."""
    register_resolvers()

    def make(*words):
        config = compose("train", list(words), return_hydra_config=True)
        run = copy.deepcopy(config)
        with read_write(run), open_dict(run):
            del run["hydra"]
        return run, config.hydra

    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        yield make


def telling(keys):
    """Cells that have all that others have: every value, and every pair with tuned values.

    The rest of a table differs from these in nothing that `validate` looks at.
    """
    first = {key: values[0] for key, values in keys.items()}
    cells = [{**first, key: value} for key, values in keys.items() for value in values]
    for model, dataset in product(keys.get("model", ()), keys.get("dataset", ())):
        if list((CONFIGS / "tuned").glob(f"*/{base_name(model)}/{base_name(dataset)}.yaml")):
            cells.append({**first, "model": model, "dataset": dataset})
    return {tuple(cell.values()): cell for cell in cells}.values()


STEPPED = set()
"""What has taken a step: cells of other datasets are often the same on a small graph."""


def takes_a_step(config, folder):
    """Whether a cell's model learns something from a graph of the same schema, if it learns."""
    shrink(config, folder)
    parts = [OmegaConf.to_yaml(part, resolve=True) for part in _learning(config)]
    if tuple(parts) in STEPPED:
        return True
    STEPPED.add(tuple(parts))
    loss, change = take_a_step(config)
    return math.isfinite(loss) and (change > 0 or config.task.name == "residual_cost")


def _learning(config):
    chosen = (config[key] for key in ("model", "manifold", "task", "optimizer", "batching"))
    return (*chosen, config.dataset.source)


# PyTorch Geometric's making of a sparse matrix, once a process.
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("name", TABLES)
def test_cells_compose_train_and_have_folders_of_their_own(name, composed, tmp_path):
    keys = sweep(name)
    table = OmegaConf.load(CONFIGS / "table" / f"{name}.yaml")
    subdir = OmegaConf.to_container(table, resolve=False)["hydra"]["sweep"]["subdir"]
    for key in keys:
        assert f"${{{key}}}" in subdir or f"${{{key}.name}}" in subdir
    for cell in telling(keys):
        words = [f"{key}={value}" for key, value in cell.items()]
        config, hydra = composed(f"table={name}", *words)
        assert config.experiment == name
        assert hydra.sweep.dir.endswith(f"/tables/{name}")
        validate(config, multirun=True)
        assert takes_a_step(config, tmp_path), words


@pytest.mark.parametrize("name", TABLES)
def test_what_a_table_names_exists_or_is_declared_missing(name, tmp_path):
    """A model that has been added since is swept; one that has not is only a label."""
    for spec in load_table(CONFIGS, name):
        report = build_report(spec, tmp_path)
        for path, names, planned in (
            (spec.report.rows, report.rows, spec.planned_rows),
            (spec.report.columns, report.columns, spec.planned_columns),
        ):
            group, _, key = path.rpartition(".")
            if key != "name":
                continue
            exist = {choice for choice in names if (CONFIGS / group / f"{choice}.yaml").is_file()}
            assert exist == set(planned)
            assert set(names) - exist <= set(spec.report.labels)
            assert not exist & set(spec.report.labels)


def test_table_1_has_the_papers_protocol(composed):
    for dataset in sweep("fpst/table1")["dataset"]:
        config, _ = composed("table=fpst/table1", f"dataset={dataset}", "model=fpst", "tuned=none")
        model = config.model
        assert config.task.name == "node_classification"
        assert config.split.draw is not None  # seeds are initialisations, on one split
        assert (config.optimizer.lr, config.optimizer.curvature_lr) == (1e-2, 1e-4)
        assert config.optimizer.weight_decay == 5e-4
        assert (model.dim, model.layers, model.heads, model.dropout) == (16, 2, 2, 0.5)
        assert (model.activation, model.eigenvectors) == ("relu", 8)
        alike = ("cora", "citeseer", "pubmed", "airport", "airport_hgcn")
        assert model.hops == (10 if dataset in alike else 0)


def test_airport_with_the_leak_differs_in_name_and_split_only(composed):
    airport, leaking = (
        composed("model=gcn", f"dataset={name}")[0] for name in ("airport", "airport_hgcn")
    )
    assert (airport.split.name, leaking.split.name) == ("shared_70_15_15", "hgcn")
    leaking.dataset.name, leaking.dataset.label = airport.dataset.name, airport.dataset.label
    leaking.split = airport.split
    assert OmegaConf.to_container(leaking, resolve=True) == OmegaConf.to_container(
        airport, resolve=True
    )


def test_table_1_leaves_alone_what_a_search_finds():
    keys = OmegaConf.load(CONFIGS / "table" / "fpst" / "table1.yaml").keys()
    assert not set(keys) & {"model", "optimizer", "manifold", "split"}
