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


def test_runs_that_have_not_finished_are_named(tmp_path, capsys):
    config = {
        "model": {"_target_": "curvlab.models.graph_network.GCN", "name": "gcn"},
        "dataset": {"name": "cora", "metric": "accuracy"},
    }
    fields = {"dataset": "cora", "task": "node_classification", "wall_seconds": 1.0}
    for seed, status in enumerate(("finished", "diverged", "finished", "out_of_memory")):
        score = 70.0 if status == "finished" else None
        own = result(config | {"seed": seed}, **fields, seed=seed, score=score, status=status)
        own.write(tmp_path / f"seed{seed}")
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    left_out = [line for line in said if line.startswith("left out: ")]
    assert left_out == [
        f"left out: {tmp_path}/seed1 (diverged)",
        f"left out: {tmp_path}/seed3 (out of memory)",
    ]


def test_searches_and_studies_are_no_runs(tmp_path, capsys):
    model = {"_target_": "curvlab.models.graph_network.GCN", "name": "gcn"}
    config = {"model": model, "dataset": {"name": "cora", "metric": "accuracy"}, "seed": 0}
    fields = {"dataset": "cora", "task": "node_classification", "wall_seconds": 1.0, "score": 70.0}
    result(config, **fields).write(tmp_path / "run")
    result(config, **fields | {"experiment": "study", "score": 99.0}).write(tmp_path / "study")
    result(config | {"search": {}}, **fields | {"score": None}).write(tmp_path / "search")
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"left out: {tmp_path}/search (a search, which scores no test nodes" in said
    assert f"left out: {tmp_path}/study (the answer of a study" in said
    assert "70.00" in said
    assert "99.00" not in said
    assert main([str(tmp_path / "search")]) == 2
    assert "none of these runs has finished" in capsys.readouterr().err


def test_each_row_stands_beside_its_own_reference(tmp_path, capsys):
    """Two splits have the same seeds; the second model is on the first split, too."""
    model = {"_target_": "curvlab.models.graph_network.GCN", "name": "gcn"}
    fields = {"dataset": "cora", "task": "node_classification", "wall_seconds": 1.0}
    for draw, dim, majority in ((1, 8, 50.0), (1, 4, 50.0), (2, 8, 30.0)):
        for seed in (0, 1, 2):
            config = {
                "model": model | {"dim": dim},
                "dataset": {"name": "cora", "metric": "accuracy"},
                "split": {"_target_": "curvlab.data.splits.nodes.GivenSplit", "draw": draw},
                "task": {"metric": "accuracy"},
                "seed": seed,
            }
            own = result(
                config, **fields, seed=seed, score=70.0, references={"majority": majority + seed}
            )
            own.write(tmp_path / f"{draw}-{dim}" / f"seed{seed}")
    folders = [str(tmp_path / name) for name in ("1-8", "1-4", "2-8")]
    assert main(folders[:2]) == 0
    said = capsys.readouterr().out
    assert "\nreference: majority 51.0\n" in said
    assert "says nothing" not in said
    assert main(folders) == 0
    said = capsys.readouterr().out
    assert "\nreference of 1, 2: majority 51.0\nreference of 3: majority 31.0\n" in said
    assert "their difference says nothing" in said


def test_a_default_is_shown_by_its_value(tmp_path, capsys):
    """The class's default, 16, may be what the user has set."""
    for dim in (16, 32):
        config = {
            "model": {"_target_": "curvlab.models.graph_network.GCN", "name": "gcn", "dim": dim},
            "dataset": {"name": "cora", "metric": "accuracy"},
            "seed": 0,
        }
        fields = {"dataset": "cora", "task": "node_classification", "wall_seconds": 1.0}
        result(config, **fields, seed=0, score=70.0).write(tmp_path / str(dim))
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "model.dim: 16 (dim=16); 32 (dim=32)" in said
