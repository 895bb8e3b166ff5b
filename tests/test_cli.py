"""Wrong words are answered in one sentence, before anything heavy is imported."""

import pytest

from curvlab.cli.overrides import (
    check_flags,
    check_overrides,
    mark_cell_keys,
    show_help,
)
from curvlab.config.schema import complete_options
from curvlab.errors import LONGEST, UsageError, shorten_sentence
from curvlab.run.command import Command

WRONG = {
    "paths.output_dir=": "paths.output_dir= must be a folder's path, not an empty one",
    "dataset=web_edu dataset.source.folder=../..": "folder=../.. must be a path below its folder",
    "logger=wandb logger.project=a/b": "logger.project=a/b must be a name of at most 128",
    "seed=${oc.env:PATH}": "seed=/.* must be a whole number of at least 0",
    "optimizer.lr=${model.lrr}": "Interpolation key 'model.lrr' not found$",
    "model._target_=???": "Missing mandatory value: model._target_$",
    "model._target_=true": "model._target_=true must name a class",
    f"model={'a' * 300}": "no model=aaa",
    f"{'a' * 5000}=1": "no key aaa",
    f"model.dim={'9' * 5000}": "cannot be read",
    "model=fpts": "no model=fpts; did you mean fpst",
    "dataset=family/webkb": "no dataset=family/webkb",
    "model=null": "no model=null; there is .*fpst",
    "modle=gcn": "no key modle; did you mean model",
    "dim=4": "no key dim; did you mean model.dim",
    "model=lrn dataset=airport model.manifold=foo": "no key model.manifold.* mean manifold",
    "model.dim=abc": "model.dim=abc must be a whole number of at least 1",
    "trainer.precision=16": "trainer.precision=16 must be one of 32-true",
    "model=lrn dataset=airport model.residual=null": "residual=null must be a mapping of keys",
    "model=gcn dataset=cora batching=neighbours batching.fan_outs=null": "must be a list, each a",
    "dataset.tasks=[link_prediction]": "has no task reconstruction; it has link_prediction",
    "model=gcn manifold=poincare": "model=gcn cannot be built with manifold=poincare.* euclidean",
    "table=fpst/fig3": "is a sweep: add -m, as in curvlab train -m table=fpst/fig3",
    "seed=0,1": "asks for several runs: add -m, as in curvlab train -m seed=0,1",
    "dataset=cora trainer.devices=2": "trainer.devices=2: .* use trainer.devices=1",
    "=3": "is not of the form key=value",
    "model.dim=[1": "cannot be read",
    "~seed": "would remove what a run needs",
    "+trainer.foo=1": "no key trainer.foo",
    "+model.foo=1": "no key model.foo",
    "model.name=gat": "results would have the name of another choice: choose by model=",
    "model=gcn dataset=cora__lp split=public": (
        "split=public would be ignored, since task=link_prediction of dataset=cora__lp has its own "
        "split: set task.split.val, task.split.test, task.split.draw, task.split.dataset instead"
    ),
    "dataset=web_edu task=node_classification": "web_edu has no task node_classification",
    "dataset=web_edu split=random_60_20_20": "uses all nodes: choose split=none",
    "dataset=cora recipe=gcn": "recipe=gcn: a run takes the recipe of its task, model, data",
    "model=gcn dataset=web_edu batching=partition": "reconstruction is of the whole graph",
    "model=gcn_nsampler dataset=cora batching=full": "sets batching=neighbours; omit batching=",
    "model=gcn dataset=cora trainer=ddp": "trainer.devices=2: .* batching=partition",
    "dataset=graph_folder dataset.path=x dataset.source.directed=true model=gcn": (
        "model=gcn sees both directions .* gprgnn, hypformer, lrn_sgformer, sgformer"
    ),
    "dataset=fb15k237": "model=fpst cannot do task=kg_completion .* it embeds nodes",
    "model=distmult dataset=cora": "model=distmult cannot do task=node_classification",
    "model=distmult dataset=wn18rr split=public": "files of dataset=wn18rr are its split",
    "task=link_prediction dataset=cora trainer=default": "use trainer=early_stopping",
}
WRONG |= {
    f"model=lrn dataset=airport +model.requires.{word}": answer
    for word, answer in {
        "kapa=-3": "no key model.requires",
        "kappa=-3": "no key model.requires",
        "transforms=[]": "no key model.requires",
    }.items()
}
WRONG |= {
    "model=lrn dataset=airport model.self_loops=2": "model.self_loops=2 must be true or false",
    "model=fpst dataset=cora dataset.row_normalise=2": "dataset.row_normalise=2 must be true or",
    "model=polyformer dataset=cora model.token_dtype=half": "model.token_dtype=half must be one of",
    "model=nagphormer dataset=cora batching=tokens": "reads more of the graph than the polynomial",
    "model=gcn dataset=cora batching=tokens": "reads more of the graph than the polynomial",
    "model=gcn dataset=cora model.self_loops=true": "no key model.self_loops with model=gcn",
}
WRONG_IN_A_SWEEP = {
    "model=gcn,gta": "no model=gta; did you mean gat",
    "model=gat,gcn model.heads=2": "no key model.heads with model=gcn",
    "table=fpst/fig3 model.heads=4": "no key model.heads with .*model=mlp",
    "table=fpst/fig3 model.dim=8,16": "no place for several values of model.dim: it sweeps model",
    "table=fpst/fig3,fpst/fig3_dimensions": "one table after the other",
    "table=fpst/fig3 experiment=foo": "stored under its name: omit experiment=",
    "table=fpst/fig3 search=fpst": "are two sweeps",
    "seed=range(0,0)": r"seed=range\(0,0\) has no value, so that nothing would run",
    "model=gcn model.dim=interval(8,16)": "has infinitely many values: list them, as in",
    "table=polyformer/table4 task=link_prediction": "changes that score: omit task= or table=",
    "search=gcn dataset=cora +search.x=1": "no key search.x",
    "search=fpst dataset=texas search.space=null": "search.space=null must be keys with values",
    "search=fpst": "task=reconstruction has no validation nodes",
    "search=fpst model=gcn dataset=cora": "model=gcn .* has no model.heads to search",
    "search=gcn dataset=cora model.dropout=0.3": "the search varies model.dropout; fix it",
    "search=gcn dataset=cora search.space.model.layers=2": "must be a list of values",
    "search=gcn dataset=cora search.space.model.layers=[2,2]": "must be a list of different values",
    "search=gcn dataset=cora search.seeds=[0,0]": "must be a list of different seeds",
    "search=gcn dataset=cora search.space.model.width=[2]": "no key search.space.model.width",
    "dataset=cora trainer=ddp batching=partition search=gcn": "a search have one device each",
}
RIGHT = [
    "manifold.min=-2 manifold.max=null optimizer.lr=1 trainer.threads=2",
    "optimizer.lr=${optimizer.curvature_lr} +optimizer.amsgrad=true hydra.verbose=true",
    "model=gcn dataset=texas split.draw=null trainer.patience=null",
    "model=gcn dataset=cora +dataset.row_normalise=false dataset.features=null",
    "model=gcn dataset=cora task=link_prediction task.split.draw=3 task.margin=null",
    "model=distmult dataset=wn18rr task.scheduler=null",
    "model=gcn_wide dataset=cora model.input_dropout=true seed=4294967295",
    "+trainer.limit_train_batches=0.1 debug=fast",
]
RIGHT_IN_A_SWEEP = [
    "table=fpst/fig3 dataset=power seed=0,1 trainer.max_steps=100",
    "model=glob(g*) model.dim=choice(4,8) seed=range(3)",
    "table=lrn/table1",  # whose columns may bring a split
    "table=polyformer/table2 task=filter_regression__decay",
    "search=gcn dataset=cora +search.space.optimizer.lr=[0.001,0.01] search.pruner=null",
    "model=gat model.heads=2,3",  # the cell that is wrong says so itself
    "hydra/launcher=joblib model=gcn,mlp",
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "answer"), [*WRONG.items(), *WRONG_IN_A_SWEEP.items()])
def test_wrong_words_are_refused_with_what_is_near(words, answer):
    """Of a sweep if all its cells would be wrong."""
    with pytest.raises(UsageError, match=answer) as refused:
        check_overrides(words.split(), words in WRONG_IN_A_SWEEP, Command.from_overrides)
    assert len(shorten_sentence(str(refused.value))) <= LONGEST  # as it is said


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("words", RIGHT + RIGHT_IN_A_SWEEP)
def test_right_words_pass(words):
    check_overrides(words.split(), multirun=words in RIGHT_IN_A_SWEEP)


def test_flags_that_are_not_there_and_topics_of_help(capsys):
    with pytest.raises(UsageError, match="there is no --resolve here"):
        check_flags(["--resolve", "model=mlp"])
    with pytest.raises(UsageError, match="did you mean model/fpst"):
        show_help(["help=model/fpts"])
    assert not show_help(["model=mlp"])
    assert show_help(["--help", "nonsense"])
    said = capsys.readouterr().out
    assert "help=model/fpst" in said
    assert len(said.splitlines()) <= 40


@pytest.mark.slow
def test_a_sweep_may_set_keys_that_only_its_cells_have():
    """Hydra composes the sweep without the swept choices first, where the key is unknown."""
    words = ["dataset=cora,texas", "model=gcn", "trainer.patience=50", "model.layers=2"]
    expected = ["dataset=cora,texas", "model=gcn", "++trainer.patience=50", "model.layers=2"]
    assert mark_cell_keys(words) == expected
    one = ["dataset=cora", "model=gcn", "trainer.patience=50", "seed=0,1"]
    assert mark_cell_keys(one) == one


def test_help_of_a_choice_has_every_option_with_type_bounds_and_default(capsys):
    assert show_help(["help=model/fpst"])
    said = " ".join(capsys.readouterr().out.split())
    for name, option in complete_options("curvlab.models.fpst.FPST").items():
        assert f"model.{name}=" in said
        assert f"{option.says}: {option.doc}"[:60] in said
    assert "model.dim=16 a whole number of at least 1" in said
    assert "model.hops=0 a whole number of at least 0: Number of graph convolutions" in said


def test_what_this_machine_lacks_is_refused_before_anything_is_written(monkeypatch):
    """A package of a logger, a GPU; a launcher of other machines is left to those."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("curvlab.config.validation.find_spec", lambda name: None)
    for words, says in {
        ("logger=mlflow",): r"logger=mlflow needs mlflow: pip install 'curvlab\[mlflow\]'$",
        ("trainer.accelerator=cuda",): "accelerator=cuda: torch .* finds no such device",
    }.items():
        for multirun in (False, True):
            with pytest.raises(UsageError, match=says):
                check_overrides(words, multirun)
    remote = ("trainer.accelerator=cuda", "hydra/launcher=submitit_slurm")
    check_overrides(remote, multirun=True)


def test_a_long_refusal_keeps_its_command_whole():
    command = " ".join(f"model.option{i}={i}" for i in range(60))
    text = f"the search was on another graph: train its winner by curvlab train {command}"
    assert shorten_sentence(text) == text
    long = f"{'word ' * 200}: train its winner by curvlab train {command}"
    said = shorten_sentence(long)
    assert said.endswith(f" by curvlab train {command}")
    assert len(said) <= LONGEST + len(f" by curvlab train {command}")
