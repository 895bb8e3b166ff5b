"""The tables of docs/protocol.md say what the configurations do."""

import re
from pathlib import Path

import pytest
import yaml

from curvlab.config.compose import compose

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs/protocol.md").read_text().partition("## Datasets of node classification")[2]
ROWS = re.findall(r"^\| (\w+)[^|]* \| ([\d,]+)", TABLE, re.MULTILINE)


def classified():
    """Names, nodes by the table, and statistics of the data sets whose files have classes."""
    for name, nodes in dict(ROWS).items():
        path = ROOT / f"configs/dataset/{name}.yaml"
        source = yaml.safe_load(path.read_text()).get("source") if path.is_file() else None
        statistics = (source or {}).get("statistics") or {}
        if "num_classes" in statistics:
            yield name, int(nodes.replace(",", "")), statistics


@pytest.mark.parametrize(("name", "nodes", "statistics"), list(classified()))
def test_the_table_of_datasets_has_the_nodes_of_each(name, nodes, statistics):
    assert statistics["num_nodes"] == nodes


def test_the_table_of_datasets_has_the_common_ones():
    assert {"cora", "citeseer", "pubmed", "texas", "actor"} <= {name for name, *_ in classified()}


@pytest.mark.parametrize(
    ("words", "both"),
    [
        *((["dataset=" + name], True) for name in ("umls", "kinships", "nations", "kg_folder")),
        *((["dataset=" + name], False) for name in ("fb15k237", "wn18rr")),
        (["dataset=umls", "task.inverse_relations=false"], False),
        *((["dataset=umls", f"table=cat/{name}"], False) for name in ("table1", "table2", "fig2")),
    ],
)
def test_sides_that_are_ranked_by_default(words, both):
    config = compose(["model=distmult", *words])
    assert config.task.inverse_relations is config.batching.inverse_relations is both
