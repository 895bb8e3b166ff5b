"""Which runs a study makes, and what it refuses."""

import pytest
from omegaconf import OmegaConf

from composing import composed
from curvlab.cli.overrides import check_overrides
from curvlab.config.folder import CONFIGS
from curvlab.errors import UsageError
from curvlab.results.identity import built, stored
from curvlab.study.twins import given, trials_of, twins_of


def options(*words):
    return composed("study=spaces", *words).study


def twins(model, *words, study=()):
    return {twin.space: twin for twin in twins_of(model, words, options(*study))}


@pytest.mark.parametrize(
    ("model", "spaces"),
    [
        ("fpst", ["flat", "hyperbolic", "spherical", "learned", "product"]),
        ("kappa_gcn", ["flat", "hyperbolic", "spherical", "learned", "product"]),
        ("hgcn", ["flat", "hyperbolic", "spherical", "learned"]),
    ],
)
@pytest.mark.slow
def test_twins_differ_in_nothing_but_the_space(model, spaces):
    found = twins(model, "dataset=grid", study=("study.dim=8",))
    assert list(found) == spaces
    parts = [built(stored(twin.config(3))) for twin in found.values()]
    for part in parts:
        part.pop("manifold", None)
        assert part == parts[0]
    assert {twin.dim for twin in found.values()} == {8}
    assert all(part["seed"] == 3 for part in parts)


def test_a_model_without_a_flat_twin_is_refused():
    with pytest.raises(UsageError, match=r"model=hypformer has .*no flat twin"):
        twins("hypformer", "dataset=grid")


@pytest.mark.slow
def test_what_the_command_line_says_wins():
    (flat, *_) = twins(
        "kappa_gcn", "dataset=grid", "trainer.max_steps=7", "optimizer.curvature_lr=0.5"
    ).values()
    config = flat.config(0)
    assert (config.trainer.max_steps, config.optimizer.curvature_lr) == (7, 0.5)
    assert not config.trainer.plots
    assert flat.narrower(4).config(0).model.dim == config.model.dim // 4


def test_trials_are_the_same_for_all_and_no_more_than_there_are():
    three = trials_of(options("study.trials=3"))
    assert three == trials_of(options("study.trials=3"))
    assert len(set(three)) == 3
    assert len(trials_of(options("study.trials=99"))) == 4
    assert trials_of(options("study.trials=0")) == []
    nested = OmegaConf.create(
        {"trials": 9, "values": {"a": {"b": [1, 2]}, "c.d": [3, 4], "e": None}}
    )
    assert sorted(trials_of(nested))[0] == ("a.b=1", "c.d=3")
    assert len(trials_of(nested)) == 4


def test_the_words_of_the_study_are_not_those_of_its_runs():
    words = ["study=spaces", "dataset=grid", "study.seeds=3", "seed=4", "++trainer.threads=2"]
    assert given(words) == ["dataset=grid", "++trainer.threads=2"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("model=gcn", "model=gcn: study= chooses .* study.models"),
        ("manifold=sphere", "manifold=sphere: study= chooses .* study.spaces"),
        ("study.models=[fpts]", "must name choices of model=.*there is no fpts"),
        ("study.models=[]", "must name choices of model="),
        ("study.seeds=1", "gives no interval"),
        ("study.seeds=0", "study.seeds=0 must be a whole number of at least 1"),
        ("study.steps=many", "study.steps"),
        ("study.sedes=3", "no key study.sedes"),
        ("dataset=synthetic_kg", "has triples"),
    ],
)
def test_wrong_words_are_refused_before_the_first_run(words, says):
    with pytest.raises(UsageError, match=says):
        check_overrides(["study=spaces", words], CONFIGS, multirun=True)
