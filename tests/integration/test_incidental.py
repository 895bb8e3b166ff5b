"""Options that decide no number: with each of them a run has the same scores."""

import pytest
from tiny_runs import TINY, TREE, TRIPLES

from curvlab.config.schema import options_of

TASKS = {
    "reconstruction": ("model=fpst", "dataset=synthetic_web", *TINY),
    "node_classification": ("model=hgcn", *TREE),
    "link_prediction": ("model=hgcn", "task=link_prediction", *TREE[:3], *TREE[4:]),
    "kg_completion": ("model=murp", "dataset=synthetic_kg", "trainer.epochs=2", *TRIPLES[1:]),
}
SHORT = ("trainer.plots=false", "trainer.progress=false", "trainer.threads=1")

VALUES = {
    "accelerator": "auto",
    "threads": 2,
    "compile": True,
    "cuda_graph": True,
    "progress": True,
    "plots": True,
}
"""For each incidental option of the trainer a value other than in `SHORT`."""

ROUNDING = ("accelerator", "threads", "compile", "cuda_graph")
"""Options that may change the order of sums; the others change no bit."""


def words_of(task, option=None):
    own = [word for word in (*TASKS[task], *SHORT) if not word.startswith(f"trainer.{option}=")]
    words = dict(word.split("=", 1) for word in own)
    changed = {} if option is None else {f"trainer.{option}": str(VALUES[option]).lower()}
    return tuple(f"{key}={value}" for key, value in (words | changed).items())


def scores(result):
    """All metrics that a result has, by part and name."""
    return {f"{part}/{k}": v for part, found in result.metrics.items() for k, v in found.items()}


def check(found, expected, rounding):
    if rounding:
        assert scores(found) == pytest.approx(scores(expected), rel=1e-3, abs=1e-4)
    else:
        assert scores(found) == scores(expected)
    assert found.config_hash == expected.config_hash


def test_every_incidental_option_of_the_trainer_is_here():
    for trainer in ("FixedSteps", "EarlyStopping", "Passes"):
        options = options_of(f"curvlab.run.options.{trainer}")
        assert {name for name, option in options.items() if option.incidental} == VALUES.keys()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("task", TASKS)
def test_scores_do_not_depend_on_options_that_are_incidental(run_here, task):
    expected = run_here(*words_of(task), folder="plain")
    assert expected.task.startswith(task)
    # Compilers take minutes; a step on batches of triples is not recorded.
    others = {"compile", "cuda_graph"} if task == "kg_completion" else {"compile"}
    for option in VALUES.keys() - others:
        check(run_here(*words_of(task, option), folder=option), expected, option in ROUNDING)
