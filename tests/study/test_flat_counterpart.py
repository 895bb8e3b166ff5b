"""Which runs a study makes, and what it refuses."""

import pytest

from composing import composed
from curvlab.cli.overrides import check_overrides
from curvlab.config.validation import validate
from curvlab.errors import UsageError
from curvlab.results.identity import built, stored_config
from curvlab.study.flat_counterpart import models_in_spaces


def in_spaces(model, *overrides, study=()):
    options = composed("study=spaces", *study).study
    return {one.space: one for one in models_in_spaces(model, overrides, options)}


@pytest.mark.parametrize(
    ("model", "spaces"),
    [
        ("fpst", ["flat", "hyperbolic", "spherical", "learned", "product"]),
        ("hgcn", ["flat", "hyperbolic", "spherical", "learned"]),
    ],
)
@pytest.mark.slow
def test_counterparts_differ_in_nothing_but_the_space(model, spaces):
    found = in_spaces(model, "dataset=grid", study=("study.dim=8",))
    assert list(found) == spaces
    parts = [built(stored_config(one.config(3))) for one in found.values()]
    for part in parts:
        part.pop("manifold", None)
        assert part == parts[0]
    assert {one.dim for one in found.values()} == {8}
    assert all(part["seed"] == 3 for part in parts)


def test_a_study_sets_the_rate_of_curvatures_that_its_file_has():
    found = in_spaces("kappa_gcn", "dataset=grid")
    rates = {one.config(0).optimizer.curvature_lr for one in found.values()}
    assert rates == {0.03}


def test_a_key_that_nothing_reads_is_refused():
    with pytest.raises(UsageError, match=r"study\.words is not an option of a study, which has"):
        validate(composed("study=spaces", "+study.words=[a]"))


def test_a_model_without_a_flat_counterpart_is_refused():
    with pytest.raises(UsageError, match=r"model=hypformer has .*needs flat space and another"):
        in_spaces("hypformer", "dataset=grid")


@pytest.mark.slow
def test_what_the_command_line_says_wins():
    overrides = ("dataset=grid", "trainer.max_steps=7", "optimizer.curvature_lr=0.5")
    config = in_spaces("kappa_gcn", *overrides)["flat"].config(0)
    assert (config.trainer.max_steps, config.optimizer.curvature_lr) == (7, 0.5)
    assert not config.trainer.plots


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("model=gcn", "model=gcn: study= chooses .* study.models"),
        ("manifold=sphere", "manifold=sphere: study= chooses .*study.spaces"),
        ("study.models=[fpts]", "must name choices of model=.*there is no fpts"),
        ("study.models=[]", "must name choices of model="),
        ("study.models=[gcn,gcn]", "must be different models"),
        ("study.seeds=1", "gives no interval"),
        ("study.seeds=[3,3]", "gives no interval"),
        ("study.seeds=[0,-1]", "seed=-1"),
        ("study.seeds=0", "study.seeds=0 must be a whole number of at least 1"),
        ("study.steps=many", "study.steps"),
        ("study.sedes=3", "no key study.sedes"),
        ("study.spaces.flat=null", "study.spaces has hyperbolic, .*: a comparison needs flat"),
        (
            "++study.spaces.mine=[['manifold=poincre']]",
            "no manifold=poincre, which study",
        ),
        ("dataset=synthetic_kg", "has triples"),
    ],
)
def test_wrong_words_are_refused_before_the_first_run(words, says):
    with pytest.raises(UsageError, match=says):
        check_overrides(["study=spaces", words], multirun=True)
