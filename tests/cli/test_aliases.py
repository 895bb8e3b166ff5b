"""Words as people type them: aliases, hints, lists, shell completion."""

import os
import shlex

import pytest

from curvlab.cli import train
from curvlab.cli.aliases import resolve_aliases
from curvlab.cli.main import main
from curvlab.cli.overrides import show_help
from curvlab.config.folder import CONFIGS, choices
from curvlab.results.result import Result


@pytest.mark.parametrize(
    ("words", "resolved"),
    [
        ("manifold=flat", "manifold=euclidean"),
        ("manifold=hyperboloid,sphere", "manifold=lorentz,sphere"),
        ("model=FPST", "model=fpst"),
        ("model=FPS-T,Q-GCN,fpts", "model=fpst,q_gcn,fpts"),
        ("task=lp", "task=link_prediction"),
        ("-m task=nc seed=0,1", "-m task=node_classification seed=0,1"),
        (
            "dataset=nowhere model.dim=8 +trainer.x=FPST",
            "dataset=nowhere model.dim=8 +trainer.x=FPST",
        ),
    ],
)
def test_other_names_are_those_of_the_choice(words, resolved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve_aliases(words.split()) == resolved.split()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("train manifold=hyperbolic", "say manifold=poincare for the ball, manifold=lorentz"),
        ("train debug=anomaly", "say debug=nan"),
        ("train epochs=50", "say trainer.max_steps"),
        ("train dataset=friends.csv", "friends.csv is not there: dataset=graph_folder takes"),
        ("train --model fpst", "there is no --model here; write model=..."),
        ("train dataset=graph_folder dataset.path=nowhere", "nowhere is not there"),
        ("predict runs", "name one of the 1, such as runs/gcn/seed0"),
        ("list model", "invalid choice: 'model'"),
        ("list runs", "no runs below outputs"),
    ],
)
def test_a_word_that_fits_several_is_answered_in_one_sentence(
    words, answer, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train.signals, "install", lambda **_: None)
    best = tmp_path / "runs/gcn/seed0/checkpoints/best.ckpt"
    best.parent.mkdir(parents=True)
    best.touch()
    try:
        code = main(words.split())
    except SystemExit as left:
        code = left.code
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (2, 1)
    assert answer in said


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("fpst", "model.heads="),
        ("trainer.max_steps", "trainer.max_steps=10000  a whole number of at least 1"),
        ("model.max_scale", "model.max_scale="),  # of another model than the default one
    ],
)
def test_help_finds_a_choice_by_its_name_and_an_option_by_its_key(topic, said, capsys):
    assert show_help([f"help={topic}"])
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "owner", "said"),
    [
        ("task=link_prediction help=task.margin", "task=link_prediction", "task.margin=2"),
        ("model=hypformer help=model.attention", "model=hypformer", "model.attention.*"),
        ("dataset=graph_folder help=dataset.source.label", "dataset=graph_folder", "source.label="),
        ("help=model.max_scale", "model=", "model.max_scale="),
        ("help=search.trials", "", "search.trials="),
    ],
)
def test_help_of_an_option_is_that_of_the_other_words(words, owner, said, capsys):
    assert show_help(words.split())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"of {owner}" if owner else said)
    assert any(said in line for line in lines)


def test_lists_have_every_choice_and_runs_newest_first(tmp_path, monkeypatch, capsys):
    assert main(["list", "manifolds"]) == 0
    said = capsys.readouterr().out
    assert all(f"manifold={name} " in said for name in choices(CONFIGS, "manifold"))
    monkeypatch.chdir(tmp_path)
    for age, score in ((5, 71.0), (9, 70.0), (1, None)):
        folder = tmp_path / f"outputs/{age}"
        folder.mkdir(parents=True)
        status = "failed" if score is None else "finished"
        run = Result(status, "gcn", "cora", "", "", 0, None, "", {}, score=score)
        os.utime(run.save(folder), (0, 1e9 - age))
    for age, overrides in ((9, "- model=gcn\n- x='a b'\n"), (1, "- search=gcn\n- dataset=cora\n")):
        (tmp_path / f"outputs/{age}/.hydra").mkdir()
        (tmp_path / f"outputs/{age}/.hydra/overrides.yaml").write_text(overrides)
    assert main(["list", "runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == ["failed", "71", "70"]
    commands = [line[16:].split(maxsplit=1)[1] for line in lines]
    assert commands[0] == "curvlab train -m search=gcn dataset=cora"
    assert commands[1] == "outputs/5"  # of a study, which has the command
    assert shlex.split(commands[2])[2:] == ["model=gcn", "x='a b'"]


def test_the_shell_completes_choices(capfd, monkeypatch):
    monkeypatch.setattr(train.signals, "install", lambda **_: None)
    monkeypatch.setenv("COMP_LINE", "curvlab train dataset=web_")
    monkeypatch.setattr("sys.argv", ["curvlab"])
    main(["-sc", "query=bash"])
    assert capfd.readouterr().out.split() == ["dataset=web_edu"]
