"""Stored data sets and splits in today's form."""

import copy

from curvlab.results.migrations_data import EDGE_LISTS, migrate_data


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
