"""The tables of docs/protocol.md name every data set that they are about."""

import re
from pathlib import Path

import pytest
import yaml

from curvlab.config.compose import compose

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs/protocol.md").read_text().partition("## Datasets of node classification")[2]
ROWS = re.findall(r"^\| (\w+)[^|]* \| ([\d,]+)", TABLE, re.MULTILINE)


def classified():
    """Names and statistics of the data sets whose files have classes."""
    for path in sorted((ROOT / "configs/dataset").glob("*.yaml")):
        source = yaml.safe_load(path.read_text()).get("source") or {}
        statistics = source.get("statistics") or {}
        if "num_classes" in statistics:
            yield path.stem, statistics


@pytest.mark.parametrize(("name", "statistics"), list(classified()))
def test_the_table_of_datasets_has_the_nodes_of_each(name, statistics):
    nodes = [int(count.replace(",", "")) for row, count in ROWS if row == name]
    assert statistics["num_nodes"] in nodes


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
