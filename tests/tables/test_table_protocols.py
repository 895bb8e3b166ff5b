from curvlab.results.identity import built
from curvlab.tables.collect import collect
from curvlab.tables.protocols import describe_difference, one_protocol_per_cell, protocols


def chosen(spec, tmp_path):
    return one_protocol_per_cell(collect(tmp_path / "fpst/fig3", spec.report))


def test_seeds_of_one_protocol_stay_together(spec, write_run, tmp_path):
    """Although each has its own seed, noise seed, output and checkpoint directory."""
    for seed in range(5):
        write_run("gcn", "power", seed, 97.0)
    kept, left_out = chosen(spec, tmp_path)
    assert len(kept) == 5
    assert len(left_out) == 0


def test_most_seeds_win(spec, write_run, tmp_path):
    for seed in range(3):
        write_run("gcn", "power", seed, 97.0, steps=500)
    write_run("gcn", "power", 3, 99.0, steps=10_000)
    kept, left_out = chosen(spec, tmp_path)
    assert kept["value"].tolist() == [97.0] * 3
    assert left_out["runs"].tolist() == [1]
    assert left_out["reason"].tolist() == ["trainer.max_steps 10000 instead of 500"]


def test_most_steps_win_among_equal_seeds(spec, write_run, tmp_path):
    write_run("gcn", "power", 0, 97.0, steps=500)
    write_run("gcn", "power", 1, 99.0, steps=10_000)
    kept, _ = chosen(spec, tmp_path)
    assert kept["value"].tolist() == [99.0]


def test_the_choice_does_not_look_at_outcomes(spec, write_run, tmp_path):
    for seed in range(3):
        write_run("gcn", "power", seed, None, status="diverged", steps=40)
    write_run("gcn", "power", 3, 99.0, optimizer={"lr": 1e-3})
    kept, _ = chosen(spec, tmp_path)
    assert kept["status"].tolist() == ["diverged"] * 3


def test_protocols_may_differ_between_cells(spec, write_run, tmp_path):
    write_run("gcn", "power", 0, 97.0, optimizer={"lr": 1e-2})
    write_run("gat", "power", 0, 99.0, optimizer={"lr": 1e-3})
    kept, left_out = chosen(spec, tmp_path)
    assert len(kept) == 2
    assert len(left_out) == 0


def test_a_seed_counts_once(spec, write_run, tmp_path):
    write_run("gcn", "power", 0, 97.0)
    write_run("gcn", "power", 0, 97.0, folder="a_copy/seed0")
    write_run("gcn", "power", 1, 98.0)
    kept, left_out = chosen(spec, tmp_path)
    assert sorted(kept["seed"]) == [0, 1]
    assert left_out["runs"].tolist() == [1]


def test_whole_numbers_and_decimal_ones_are_alike(spec, write_run, tmp_path):
    """As for what decides whether a run is repeated: `0` skips a run of `0.0`."""
    write_run("gcn", "power", 0, 97.0, optimizer={"weight_decay": 0})
    write_run("gcn", "power", 1, 97.0, optimizer={"weight_decay": 0.0})
    kept, left_out = chosen(spec, tmp_path)
    assert sorted(kept["seed"]) == [0, 1]
    assert len(left_out) == 0


def test_results_that_were_set_aside_are_no_longer_there(spec, write_run, tmp_path):
    """However many seeds they have: what ran in their place counts, also if it diverged."""
    for seed in range(3):
        folder = f"power/gcn/seed{seed}/previous/0123"
        write_run("gcn", "power", seed, 97.0, folder=folder, optimizer={"lr": 1e-2})
    write_run("gcn", "power", 0, None, status="diverged", folder="power/gcn/seed0")
    kept, left_out = chosen(spec, tmp_path)
    assert kept["status"].tolist() == ["diverged"]
    assert len(left_out) == 0


def test_where_a_run_computes_and_what_it_shows_is_no_protocol():
    trainer = {"_target_": "curvlab.run.options.FixedSteps", "max_steps": 9}
    here = {"seed": 0, "report": {"title": "a"}, "trainer": {**trainer, "threads": 1}}
    there = {"seed": 1, "logger": {"project": "b"}, "trainer": {**trainer, "threads": 2}}
    one, other = protocols([built(here), built(there)])
    assert one == other
    assert one["trainer.max_steps"] == 9
    assert "trainer.threads" not in one


def test_a_fixed_seed_of_the_data_is_protocol():
    """Two graphs drawn with different seeds, each used for all training seeds, do not mix."""
    configs = [{"seed": s, "dataset": {"seed": d}} for s, d in [(0, 0), (1, 0), (0, 7), (1, 7)]]
    found = protocols(configs)
    assert found[0] == found[1] != found[2] == found[3]
    following = protocols([{"seed": s, "dataset": {"seed": s}} for s in (0, 1)])
    assert following[0] == following[1]


def test_differences_are_told_by_key():
    words = describe_difference({"a": 1, "b": [1], "c": 0, "d": 0}, {"a": 2, "b": [1]})
    assert words == "a 1 instead of 2, c 0 instead of nothing, d 0 instead of nothing"
    assert describe_difference(dict.fromkeys("abcde", 0), {}).endswith("and 2 more")
