"""What a table is, and that its cells compose, are valid and take a step on a small graph."""

import copy
from dataclasses import replace

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf, open_dict, read_write

from composing import CONFIGS, composed, with_hydra
from curvlab.config.folder import find
from curvlab.config.validation import validate
from curvlab.errors import UsageError
from curvlab.run.parts import required_transforms
from curvlab.tables.published import paper_numbers
from curvlab.tables.report import build_report
from curvlab.tables.spec import ReportBlock, load_table, table_names
from tiny_data import TinyGraph, takes_a_step

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


def cells_of(name, swept):
    """A cell for every value of a swept key; the rest of a table differs in nothing else.

    Pairs of a model and its recipe are made in `tests/test_task_defaults.py`.
    """
    keys = sweep(name)
    first = {key: values[0] for key, values in keys.items()}
    return [{**first, swept: value} for value in keys[swept]]


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "swept"),
    [
        pytest.param(name, key, marks=() if key == "model" else pytest.mark.nightly)
        for name in TABLES
        for key, values in sweep(name).items()
        if len(values) > 1 or key == "model"
    ],
)
def test_cells_compose_and_train(name, swept, tmp_path):
    for cell in cells_of(name, swept):
        words = [f"{key}={value}" for key, value in cell.items()]
        config = with_hydra(f"table={name}", *words)
        assert config.experiment == name
        assert config.hydra.sweep.dir.endswith(f"/tables/{name}")
        with read_write(config), open_dict(config):
            del config["hydra"]
        validate(config)
        assert takes_a_step(config, tmp_path), words


@pytest.mark.slow
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
            exist = {
                choice for choice in names if find(CONFIGS, f"{group}/{choice}.yaml").is_file()
            }
            assert exist - set(spec.report.cited) == set(planned)
            assert set(names) - exist <= set(spec.report.labels)
            assert not exist & set(spec.report.labels)


FRAME = ("hypformer", "hypformer_softmax", "hyperbolic_attention", "hnnpp")
"""Models with Hypformer's graph network beside an attention."""

LOOPED = (
    *("ogbn_arxiv", "ogbn_proteins", "amazon2m", "ogbn_papers100m"),
    *("newsgroups20__k5", "mini_imagenet__k10"),
)
NOT_LOOPED = ("cora", "citeseer__per_class", "pubmed", "airport", "airport_hgcn", "disease")


@pytest.mark.nightly
@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("model", FRAME)
def test_large_graphs_and_nearest_neighbours_have_a_loop_a_node(model):
    graph = TinyGraph(features=3, classes=3, several=False).load()
    for dataset in (*LOOPED, *NOT_LOOPED):
        config = composed(f"model={model}", f"dataset={dataset}")
        (transform,) = required_transforms(config.model)
        entries = transform(copy.copy(graph)).normalised_adj.values()
        loops = graph.num_nodes if dataset in LOOPED else 0
        assert len(entries) == graph.num_edges + loops
    known = composed("dataset=ogbn_arxiv").dataset.source.statistics
    assert 2 * known.num_edges + known.num_nodes == 2_484_941  # as the papers' code counts


GOOD = "title: t, metric: m, better: higher, rows: model.name, columns: model.dim"


@pytest.mark.slow
@pytest.mark.parametrize("name", table_names(CONFIGS))
def test_every_table_reads_its_paper_and_plans_its_cells(name, tmp_path):
    for spec in load_table(CONFIGS, name):
        cells = build_report(spec, tmp_path).cells
        assert cells["paper_mean"].notna().any() == (spec.report.paper is not None)
        planned = len(spec.planned_rows) * len(spec.planned_columns)
        assert (cells["status"] == "not run").sum() == planned
        assert spec.planned_seeds


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("report: {title: t}", "metric"),
        ("report: {tilte: t}", "tilte|title"),
        ("report: 5", "report"),
        ("report: {title: [", "line "),
        ("- report", "keys and values"),
        ("trainer: 5", "trainer"),
        ("hydra: {sweeper: {params: 5}}", "hydra.sweeper.params"),
        ("hydra: {sweeper: {params: {seed: 'range('}}}\nreport: {GOOD}", "params.seed"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_it_and_the_key(tmp_path, text, key):
    path = tmp_path / "table/paper/t.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text.replace("GOOD", GOOD))
    with pytest.raises(UsageError, match=key) as error:
        load_table(tmp_path, "paper/t")
    assert "\n" not in str(error.value)
    assert "paper/t" in str(error.value)


@pytest.fixture
def block():
    return ReportBlock(
        title="t", metric="m", better="higher", rows="model.name", columns="dataset.name"
    )


def test_numbers_may_be_next_to_the_table(block, tmp_path):
    (tmp_path / "own.csv").write_text("model,dataset,mean,pm\ngcn,power,12.5,0.3\n")
    (found,) = paper_numbers(replace(block, paper="own.csv"), tmp_path).to_dict("records")
    names = ("row", "column", "mean", "pm", "pm_kind", "note")
    assert [found[name] for name in names] == ["gcn", "power", "12.5", "0.3", "unknown", ""]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, r"no file own\.csv"),
        ("model,mean\ngcn,12\n", "dataset"),
        ("model,dataset,score\ngcn,power,12\n", "'mean'"),
        ("model,dataset,mean\ngcn,power,high\n", "numbers in the column mean"),
        ("model,dataset,mean\ngcn,power,12\n", "no column panel"),
    ],
)
def test_a_wrong_file_of_numbers_is_one_sentence(block, tmp_path, text, why):
    if text is not None:
        (tmp_path / "own.csv").write_text(text)
    with pytest.raises(UsageError, match=why) as error:
        paper_numbers(replace(block, paper="own.csv", select={"panel": "left"}), tmp_path)
    assert "\n" not in str(error.value)
