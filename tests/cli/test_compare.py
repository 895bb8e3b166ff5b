"""What `curvlab compare` prints fits in 100 columns."""

import pytest

from curvlab.cli.compare import main
from stored_runs import result


@pytest.mark.parametrize("count", [2, 5, 30])
@pytest.mark.parametrize("value", ["a", "x" * 300, "one two " * 40])
def test_settings_of_any_length_fit(count, value, tmp_path, capsys):
    for i in range(count):
        config = {
            "model": {"_target_": "curvlab.models.graph_network.GCN", "name": "gcn", "dim": i + 2},
            "dataset": {"name": "cora", "metric": "accuracy", "path": f"{value}{i}"},
            "trainer": {"max_steps": 5},
            "seed": 0,
        }
        own = result(
            config, dataset="cora", task="node_classification", seed=0, score=70.0, wall_seconds=1.0
        )
        own.write(tmp_path / str(i))
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    section = said.partition("what differs")[2].split()
    assert "model.dim:" in section
