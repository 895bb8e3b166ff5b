"""Several seeds at once: a sweep by the joblib launcher, each seed the run that it is alone."""

from tiny_runs import TINY

WORDS = (*TINY, "trainer.plots=false", "model=fpst", "model.dropout=0.3", "trainer.threads=1")
JOBLIB = ("-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=3")


def test_every_seed_is_the_run_that_it_is_alone(command):
    """To the last bit: the same random numbers, in the same folder, under the same hash."""
    done = command(*WORDS, *JOBLIB, "seed=1,2,3", "trainer.max_steps=15")
    assert done.returncode == 0, done.stderr
    together = command.results()
    scores = [result["score"] for result in together.values()]
    assert [result["seed"] for result in together.values()] == [1, 2, 3]
    assert len(set(scores)) == 3
    assert f"3 seeds: {sum(scores) / 3:.2f} ±" in done.stdout

    again = command(*WORDS, "-m", "seed=1,2", "trainer.max_steps=15")
    assert (again.returncode, again.stdout.count("already")) == (0, 2)
    low, high = scores[:2]
    assert f"2 seeds: {(low + high) / 2:.2f} ({low:.2f}, {high:.2f})" in again.stdout
    repeated = command(*WORDS, "seed=2", "trainer.max_steps=15", "rerun=true")
    assert repeated.returncode == 0, repeated.stderr
    (folder,) = [name for name in together if name.endswith("seed2")]
    alone, beside = command.results()[folder], together[folder]
    for key in ("config_hash", "metrics", "score", "best_step", "curvatures", "steps"):
        assert alone[key] == beside[key], key
