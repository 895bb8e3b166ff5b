"""Searches: what a trial is scored by, how one goes on, its winner; studies, likewise."""

import json
import re
import shlex
import signal
import time
from statistics import mean

import pytest
import yaml
from hydra.types import RunMode
from omegaconf import OmegaConf
from optuna.trial import TrialState
from tiny_runs import TREE, TRIPLES, composed

import composing
import curvlab.search.run as search_run
import curvlab.study.run as study_run
from curvlab.cli.adopt import main
from curvlab.cli.overrides import check_overrides
from curvlab.config import resolvers
from curvlab.config.compose import compose
from curvlab.errors import DivergedError, UsageError
from curvlab.results.identity import stored_config
from curvlab.results.result import read_result
from curvlab.run.command import Command
from curvlab.search.adopt import adopt, ranking
from curvlab.search.journal import open_study, read_study
from curvlab.search.run import search
from curvlab.search.space import defaults, values_by_key
from curvlab.search.trials import ERROR, SCORES, finished_trials
from curvlab.study.grid import answers
from curvlab.tasks.node_classification import NodeClassification

GRAPH = (*TREE, "trainer.max_steps=20")
SEARCH = ("search=gcn", *GRAPH, "search.seeds=[0,1]", "search.trials=3")
KEY, DRAWN = "disease_synthetic@random_60_20_20", "another draw for each seed"
DEFAULTS = {"model.layers": 2, "model.dropout": 0.5, "model.dim": 16, "model.residual": False}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "search"


@pytest.fixture
def configs(configs):
    """Configurations in which the data sets are the tests' small ones."""
    sizes = {
        "disease_synthetic": {"source": {"depth": 3, "features": 12}},
        "synthetic_kg": {"source": {"groups": 6}, "train_triples": 224},
    }
    for name, own in sizes.items():
        path = configs / f"dataset/{name}.yaml"
        text = path.read_text()
        for key, value in own.pop("source").items():
            text += f"  {key}: {value}\n"
        for key, value in own.items():
            text = re.sub(rf"(?m)^{key}: .*$", f"{key}: {value}", text)
        path.write_text(text)
    return configs


@pytest.fixture
def search_here(tmp_path):
    """Call `search` in this process: `search_here("search=gcn", ...)` returns the result."""

    def run(*words: str):
        return search(Command.from_hydra(composed(tmp_path, words, RunMode.MULTIRUN, "search")))

    return run


@pytest.fixture
def scored(monkeypatch):
    """Replace training by a formula; returns what has been scored as (dropout, layers, seed)."""
    calls = []

    def score(run, report=None):
        calls.append((run.model.dropout, run.model.layers, run.seed))
        return 90 - 50 * run.model.dropout - 5 * abs(run.model.layers - 2) + run.seed

    monkeypatch.setattr(search_run, "validation_score", score)
    return calls


def trials(folder):
    return finished_trials(read_study(folder))


def parameters(folder):
    return [trial.params for trial in trials(folder)]


def test_a_trial_is_the_mean_validation_score_of_the_runs_with_its_values(
    search_here, run_here, folder, watch
):
    """Which never look at a test node."""
    parts = []
    watch(NodeClassification, "forward", lambda task, batch, part: parts.append(part))
    result = search_here(*SEARCH)
    assert set(parts) == {"val"}  # training makes its loss of the embeddings
    assert "test" not in result.metrics
    assert result == read_result(folder)
    assert (result.status, result.model, result.dataset) == ("finished", "gcn", "disease_synthetic")
    done = trials(folder)
    assert len(done) == 3
    assert {key: done[0].params[key] for key in DEFAULTS} == DEFAULTS
    for trial in done:
        assert len(trial.user_attrs[SCORES]) == 2
        assert trial.value == pytest.approx(mean(trial.user_attrs[SCORES]))
    assert result.val_score == max(trial.value for trial in done)
    assert result.score is None
    words = [f"{key}={value}" for key, value in done[1].params.items()]
    for seed in (0, 1):
        run = run_here("model=gcn", *GRAPH, *words, f"seed={seed}", "trainer.plots=false")
        assert done[1].user_attrs[SCORES][seed] == pytest.approx(run.val_score, abs=1e-4)


def test_a_search_repeats_nothing_a_longer_one_goes_on_and_another_begins(
    search_here, scored, folder
):
    first = search_here(*SEARCH)
    old, calls = parameters(folder), len(scored)
    search_here(*SEARCH)
    assert len(scored) == calls
    search_here(*SEARCH, "search.trials=5")
    longer = parameters(folder)
    assert (len(longer), longer[:3]) == (5, old)
    assert len(scored) > calls
    second = search_here(*SEARCH, "search.space.model.dropout=[0.0,0.1]")
    assert second.config_hash != first.config_hash
    assert all(values["model.dropout"] <= 0.1 for values in parameters(folder))
    assert parameters(folder / "previous" / first.config_hash) == longer


def test_what_a_kill_leaves_is_put_in_order(search_here, scored, folder):
    """A trial that nobody runs any more, and half a line."""
    search_here(*SEARCH, "search.trials=8")
    whole = parameters(folder)
    search_here(*SEARCH, "search.trials=4", "rerun=true")
    hash_ = read_result(folder).config_hash
    study = open_study(folder, composed(folder, SEARCH).search, hash_)
    study.ask().suggest_categorical("model.layers", [1, 2, 3])
    journal = folder / "study.journal"
    journal.write_bytes(journal.read_bytes() + b'{"op_code":5,"work')
    search_here(*SEARCH, "search.trials=8")
    assert parameters(folder) == whole
    states = [trial.state for trial in read_study(folder).trials]
    assert len(states) == 9
    assert states.count(TrialState.FAIL) == 1
    assert not list(folder.glob("*.lease*"))


DAMAGES = {
    "one digit": lambda text: text.replace(b'"values":[', b'"values":[9', 1),
    "another parameter": lambda text: text.replace(
        b'"param_value_internal":', b'"param_value_internal":1', 1
    ),
    "half of it": lambda text: text[: len(text) // 2],
    "half of its lines": lambda text: b"".join(text.splitlines(True)[: text.count(b"\n") // 2]),
    "a bad byte": lambda text: text[:300] + b"\xff" + text[301:],
    "nothing": lambda _: b"",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_journal_is_refused_and_the_finished_result_stays(
    search_here, scored, folder, configs, damage
):
    search_here(*SEARCH, "search.trials=8")
    finished = read_result(folder)
    journal = folder / "study.journal"
    whole, damaged = journal.read_bytes(), damage(journal.read_bytes())
    assert damaged != whole
    for words in ((), ("search.trials=12",)):
        journal.write_bytes(damaged)
        result = search_here(*SEARCH, "search.trials=8", *words)
        assert result.status == "failed"
        assert re.search(r"journal is damaged \(.*rerun=true, which moves it", result.error)
        assert read_result(folder) == finished
    for use in (lambda: adopt(folder, configs), lambda: ranking(folder, 5)):
        with pytest.raises(UsageError, match="journal is damaged"):
            use()
    journal.write_bytes(whole)
    adopt(folder, configs)
    journal.write_bytes(damaged)
    assert search_here(*SEARCH, "rerun=true").status == "finished"


def test_a_search_with_a_damaged_journal_exits_with_1(command):
    words = ("-m", *SEARCH, "search.seeds=[0]", "search.trials=1")
    command(*words)
    (journal,) = command.outputs.rglob("study.journal")
    journal.write_bytes(b"")
    done = command(*words, code=1)
    assert "1 failed" in done.stdout
    (result,) = command.results().values()
    assert result["status"] == "finished"


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_without_a_checksum_a_journal_gives_its_winner_or_none(
    search_here, scored, folder, configs, damage
):
    """As of an earlier version: scores say what values are, and the result who has won."""
    search_here(*SEARCH, "search.trials=8")
    winner = adopt(folder, configs)
    (folder / "study.checksum").unlink()
    journal = folder / "study.journal"
    whole = journal.read_bytes()
    assert adopt(folder, configs).startswith(winner)
    journal.write_bytes(damage(whole))
    try:
        said = adopt(folder, configs)
    except UsageError as error:
        said = str(error)
    score = re.escape(winner.partition(": ")[2])
    assert re.search(rf": {score}|is damaged|has another winner|has no score", said)


def test_a_failure_of_a_search_never_replaces_its_finished_result(
    search_here, scored, folder, monkeypatch
):
    search_here(*SEARCH)
    finished = read_result(folder)
    for change in ({"validation_score": lambda *_: 1 / 0}, {"open_study": lambda *_: 1 / 0}):
        with monkeypatch.context() as patched:
            for name, function in change.items():
                patched.setattr(search_run, name, function)
            for words in (("rerun=true",), ("search.trials=30",)):
                assert search_here(*SEARCH, *words).status in ("failed", "finished")
                assert read_result(folder).status == "finished"
                assert trials(folder)
    assert read_result(folder).val_score == finished.val_score


@pytest.mark.nightly
def test_two_workers_share_a_study_and_one_ends_what_a_killed_one_has_begun(command):
    words = ("-m", *SEARCH, "search.seeds=[0]", "trainer.threads=1", "search.trials=8")
    folder = command.outputs / "search/node_classification/gcn/disease_synthetic"
    first, second = command.start(*words), command.start(*words)
    deadline = time.monotonic() + 120
    shared = []
    while len(shared) < 2:  # until both are at trials, and some have ended
        assert time.monotonic() < deadline
        time.sleep(0.01)
        journal = folder / "study.journal"
        if journal.exists() and journal.read_bytes().count(b'"state":1') >= 2:
            at_work = [t for t in read_study(folder).trials if t.state == TrialState.RUNNING]
            shared = [t for t in at_work if "worker" in t.user_attrs]
    first.send_signal(signal.SIGKILL)
    assert len({trial.user_attrs["worker"] for trial in shared}) == 2
    output, errors = second.communicate()
    assert second.returncode == 0, errors
    assert "by trial" in output
    done = trials(folder)
    assert len(done) == 8
    assert sorted(trial.user_attrs["place"] for trial in done) == list(range(8))
    assert all(trial.state in (TrialState.COMPLETE, TrialState.PRUNED) for trial in done)
    (result,) = command.results().values()
    assert result["val_score"] == max(t.value for t in done if t.state == TrialState.COMPLETE)
    assert not list(folder.glob("*.lease*"))


def test_a_combination_that_is_worse_than_half_gets_no_more_seeds(search_here, scored, folder):
    words = ("search.trials=12", "search.seeds=[0,1,2]", "search.pruner.n_warmup_steps=0")
    search_here(*SEARCH, *words)
    ends = {trial.state: trial for trial in trials(folder)}
    assert ends.keys() == {TrialState.COMPLETE, TrialState.PRUNED}
    assert len(ends[TrialState.PRUNED].user_attrs[SCORES]) < 3
    best = max(t.value for t in trials(folder))
    assert read_result(folder).val_score == best
    search_here(*SEARCH, *words, "search.pruner=null")
    assert {trial.state for trial in trials(folder)} == {TrialState.COMPLETE}


@pytest.mark.smoke
def test_failing_trials_are_recorded_and_others_win(search_here, monkeypatch, folder):
    def score(run, report=None):
        if run.model.layers > 1:
            raise DivergedError("not finite at step 3")
        return 50.0

    monkeypatch.setattr(search_run, "validation_score", score)
    result = search_here(*SEARCH, "search.trials=8")
    assert (result.status, result.val_score) == ("finished", 50)
    failed = [trial for trial in trials(folder) if trial.state == TrialState.FAIL]
    assert {trial.user_attrs[ERROR] for trial in failed} == {"not finite at step 3"}
    assert {trial.params["model.layers"] for trial in failed} == {2, 3}
    assert len(trials(folder)) == 8


def test_the_winner_becomes_the_default_but_the_command_line_wins(
    search_here, scored, folder, configs, capsys
):
    search_here(*SEARCH, "search.trials=8", "search.seeds=2")
    path = configs / "recipe" / "node_classification" / "gcn.yaml"
    before = path.read_text()
    assert main(["--configs", str(configs), str(folder), "--show"]) == 0
    assert path.read_text() == before
    assert "trial 0" in capsys.readouterr().out
    assert main(["--configs", str(configs), "no/such/search", str(folder)]) == 2
    done, refused = capsys.readouterr()
    assert (refused.count("\n"), done.startswith(f"wrote {KEY} in {path}")) == (1, True)
    winner = max(trials(folder), key=lambda trial: trial.value)
    words = ["dataset=disease_synthetic", "split=random_60_20_20"]
    config = composing.composed("model=gcn", *words, configs=configs)
    other = composing.composed("model=gcn", *words, "model.dropout=0.35", configs=configs)
    again = composing.composed("search=gcn", *words, configs=configs)
    for key, value in winner.params.items():
        section, name = key.split(".")
        assert config[section][name] == value
    assert other.model.dropout == 0.35
    assert other.model.layers == winner.params["model.layers"]
    assert {key: again.model[key.split(".")[1]] for key in DEFAULTS} == DEFAULTS
    after = path.read_text()
    assert after.startswith(before)  # with all comments
    assert str(configs.parent) not in after
    found = yaml.safe_load(after)[KEY]["provenance"]
    assert found["command"].startswith("curvlab train -m search=gcn")
    assert found["split"] == f"random_60_20_20, {DRAWN}"
    assert found["validation"] == {
        "metric": "accuracy",
        "mean": round(winner.value, 2),
        "seeds": [0, 1],
        "scores": [round(score, 2) for score in winner.user_attrs[SCORES]],
    }
    assert found["trials"]["of"] == 8
    assert found.keys() > {"study", "date", "commit"}


def test_a_table_takes_values_from_a_folder_of_its_own(
    search_here, scored, folder, configs, capsys, monkeypatch
):
    monkeypatch.setattr(resolvers, "CONFIGS", configs)
    words = ["model=gcn", "dataset=disease_synthetic", "split=random_60_20_20"]
    of_table = "override /recipe: ${searched:own,${model},${dataset},${split}}"
    table = f"# @package _global_\ndefaults:\n  - {of_table}\nexperiment: own/table\n"
    (configs / "table" / "own").mkdir()
    (configs / "table" / "own" / "table.yaml").write_text(table)
    with pytest.raises(UsageError, match=r"no search has written own values for model=gcn"):
        compose([*words, "table=own/table"], configs)
    search_here(*SEARCH, "search.trials=8")
    by_default = configs / "recipe" / "node_classification" / "gcn.yaml"
    before = by_default.read_text()
    assert main(["--configs", str(configs), str(folder), "--into", "../own"]) == 2
    assert "--into ../own must be a name" in capsys.readouterr().err
    assert main(["--configs", str(configs), str(folder), "--into", "own"]) == 0
    path = configs / "recipe" / "own" / "gcn.yaml"
    assert f"wrote {KEY} in {path}" in capsys.readouterr().out
    assert by_default.read_text() == before
    winner = max(trials(folder), key=lambda trial: trial.value)
    of_cell = compose([*words, "table=own/table"], configs)
    alone = compose(words, configs)
    for key, value in winner.params.items():
        assert OmegaConf.select(of_cell, key) == value
    assert {key: OmegaConf.select(alone, key) for key in DEFAULTS} == DEFAULTS


def test_the_winner_on_a_graph_given_by_its_path_is_a_command_and_no_recipe(
    search_here, scored, folder, tmp_path, capsys
):
    place = tmp_path / "texas"  # a data set of this name must not get the recipe
    place.mkdir()
    (place / "edges.csv").write_text("a,b\nb,c\nc,d\nd,e\n")
    (place / "nodes.csv").write_text("id,label\na,0\nb,1\nc,0\nd,1\ne,0\n")
    graph = ("dataset=graph_folder", f"dataset.path={place}", "task=node_classification")
    search_here("search=gcn", *graph, "search.seeds=[0]", "search.trials=4")
    (line,) = re.findall("train +curvlab train (.*)", capsys.readouterr().out)
    winner = composing.composed(*shlex.split(line))
    best = max(scored, key=lambda call: 90 - 50 * call[0] - 5 * abs(call[1] - 2) + call[2])
    assert (winner.model.dropout, winner.model.layers) == best[:2]
    assert winner.dataset.source.path == str(place)
    configs = tmp_path / "configs"
    with pytest.raises(UsageError, match=rf"names by its path.*curvlab train {re.escape(line)}"):
        adopt(folder, configs)
    assert not configs.exists()


def test_only_a_search_that_has_ended_is_adopted(search_here, scored, folder, monkeypatch):
    with pytest.raises(UsageError, match="there is no search in"):
        adopt(folder, folder)
    search_here(*SEARCH)
    assert ranking(folder, 2).shape == (2 + len(trials(folder)[0].params), 3)
    (folder / "result.json").unlink()
    with pytest.raises(UsageError, match=r"not ended, after 3 trials; .* train -m search=gcn"):
        adopt(folder, folder)
    monkeypatch.setattr(search_run, "validation_score", lambda *_: 1 / 0)
    search_here(*SEARCH, "rerun=true")
    with pytest.raises(UsageError, match=r"has no winner: none of 3 trials .* ZeroDivisionError"):
        adopt(folder, folder)
    with pytest.raises(UsageError, match=r"no trial of .* has a score"):
        ranking(folder, 5)


def test_a_search_replaces_no_recipe_with_a_higher_score_unless_forced(
    search_here, scored, folder, configs
):
    search_here(*SEARCH)
    path = configs / "recipe/node_classification/gcn.yaml"
    score = adopt(folder, configs).partition(": ")[2]
    assert adopt(folder, configs).endswith(f"(before: {score})")  # equal is not lower
    text = path.read_text()
    others, _, own = text.partition(f"\n{KEY}:\n")
    value = yaml.safe_load(text)[KEY]["provenance"]["validation"]["mean"]
    for there, refused, before in (
        (own.replace(f"mean: {value}", "mean: 99.99"), True, "validation accuracy 99.99"),
        (own.replace(f"mean: {value}", "mean: 9.99"), False, "validation accuracy 9.99"),
        ("  # Released settings\n  model:\n    dim: 8\n", True, "values that no search has found"),
        (
            own.replace(f"mean: {value}", "mean: 99.99").replace(DRAWN, "draw 0"),
            False,  # one draw says nothing of ten
            "validation accuracy 99.99 on split random_60_20_20, draw 0",
        ),
    ):
        there = f"{others}\n{KEY}:\n{there}"
        path.write_text(there)
        if refused:
            with pytest.raises(UsageError, match=f"has {before}, and the search has {score}"):
                adopt(folder, configs)
            assert path.read_text() == there
        assert adopt(folder, configs, force=refused).endswith(f"(before: {before})")
        assert path.read_text() == text


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("split.draw=3", r"had split={.*'draw': 3.*}, and .* has {.*'draw': None"),
        ("split.test=0.3", r"had split={.*'test': 0.3.*}, and .*split=random_60_20_20 has"),
        ("task.metric=f1_macro", "had task.metric=f1_macro, and .* has accuracy: scores of"),
    ],
)
def test_a_search_on_other_draws_or_by_another_metric_becomes_no_recipe(
    search_here, scored, folder, configs, word, answer
):
    search_here(*SEARCH, word)
    with pytest.raises(UsageError, match=answer):
        adopt(folder, configs, force=True)


def test_a_recipe_has_what_all_trials_had_by_the_command(search_here, scored, folder, configs):
    """The configuration with the recipe is that of the winner's command, but for its steps."""
    free = ("search.space.model.dropout=null", "search.space.model.dim=null")
    fixed = ("model.dropout=0.3", "model.dim=48", "optimizer.lr=0.05", "trainer.max_steps=40")
    result = search_here(*SEARCH, *free, *fixed)
    adopt(folder, configs)
    recipe = yaml.safe_load((configs / "recipe/node_classification/gcn.yaml").read_text())[KEY]
    assert recipe["optimizer"]["lr"] == 0.05
    assert (recipe["model"]["dim"], recipe["model"]["dropout"]) == (48, 0.3)
    assert "trainer" not in recipe
    words = shlex.split(search_run.winner_command(read_study(folder), result))[2:]
    by_command = stored_config(composing.composed(*words))
    by_recipe = stored_config(composing.composed("model=gcn", *GRAPH, configs=configs))
    for part in ("model", "optimizer", "task"):
        assert by_recipe[part] == by_command[part]


@pytest.mark.parametrize(
    "words",
    [
        (*SEARCH, "optimizer=adagrad", "model.residual=true"),
        (*SEARCH, "dataset.source.depth=4", "search.space.model.dim=null", "model.dim=7"),
        ("search=kg", "model=distmult", *TRIPLES, "search.seeds=[0]", "search.trials=2"),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_the_winner_s_command_makes_its_configuration(search_here, monkeypatch, folder, words):
    """Also what the file of the search sets, such as a task's corruption, and without a recipe."""
    trials_ = []

    def score(run, report=None):
        trials_.append(stored_config(run))
        return 0.5 - 0.1 * len(trials_)

    monkeypatch.setattr(search_run, "validation_score", score)
    result = search_here(*words)
    assert result.status == "finished", result.error
    command = shlex.split(search_run.winner_command(read_study(folder), result))[2:]
    by_command = stored_config(Command.from_overrides(command).config)
    for key in trials_[0].keys() - {"seed"}:
        assert by_command[key] == trials_[0][key], key


@pytest.mark.parametrize("patience", [1, 50])
def test_the_rate_of_a_trial_follows_validation_as_that_of_a_run(
    search_here, run_here, folder, patience
):
    words = ("model=distmult", *TRIPLES, "trainer.epochs=12", "trainer.plots=false")
    schedule = (f"task.scheduler.patience={patience}", "task.scheduler.factor=0.01")
    keys = values_by_key(compose(["search=kg"])).keys() - {"optimizer.lr"}
    one = [f"search.space.{key}=null" for key in keys]
    result = search_here("search=kg", *words, *schedule, "search.trials=1", *one)
    assert result.status == "finished", result.error
    assert result.config["search"]["revision"] == 2  # trials of earlier versions do not mix in
    command = shlex.split(search_run.winner_command(read_study(folder), result))[2:]
    assert run_here(*command).val_score == result.val_score


def test_a_search_on_another_graph_becomes_no_recipe(search_here, scored, folder, configs):
    search_here(*SEARCH, "dataset.source.depth=4")
    with pytest.raises(UsageError, match=r"another graph than .*, by dataset.source.depth=4, and"):
        adopt(folder, configs)


@pytest.mark.parametrize(("better", "refused"), [(0.2449, True), (0.2341, False)])
def test_fractions_are_compared_by_four_digits(
    search_here, monkeypatch, folder, configs, better, refused
):
    words = ("search=kg", "model=distmult", *TRIPLES, "search.seeds=[0]", "search.trials=1")
    for score in (better, 0.2351):
        monkeypatch.setattr(search_run, "validation_score", lambda *_, score=score: score)
        result = search_here(*words, "rerun=true")
        assert result.status == "finished", result.error
        if score == better:
            adopt(folder, configs)
        elif refused:
            with pytest.raises(UsageError, match=r"mrr 0\.2449, and the search has .*0\.2351"):
                adopt(folder, configs)
        else:
            assert "0.2351 (before: validation mrr 0.2341)" in adopt(folder, configs)
    assert ranking(folder, 1).iloc[0, 1] == "0.2351"


def test_a_search_in_the_place_of_another_says_where_that_is(search_here, scored, folder, capsys):
    first = search_here(*SEARCH)
    search_here(*SEARCH, "optimizer=adagrad")
    said = capsys.readouterr().out
    assert f"another search was here: it is moved to {folder}/previous/{first.config_hash}" in said


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("search=gcn split=public,random_60_20_20", "split=public and split=random_60_20_20 would"),
        ("search=gcn seed=0,1", "seed=0 and seed=1 would have one folder"),
        ("search=common,gcn model=gcn", "search=common and search=gcn would"),
        ("study=spaces study.steps=2,3", "study.steps=2 and study.steps=3 would"),
    ],
)
def test_a_sweep_whose_searches_share_a_folder_is_refused(words, answer):
    with pytest.raises(UsageError, match=answer):
        check_overrides(["dataset=cora", *words.split()], multirun=True)


@pytest.mark.parametrize(
    "words",
    ["search=gcn,sage dataset=cora,citeseer", "study=spaces dataset=balanced_tree,grid",
     "study=spaces dataset=balanced_tree dataset.source.depth=2,3"],
)  # fmt: skip
def test_a_sweep_of_searches_with_folders_of_their_own_is_run(words):
    check_overrides(words.split(), multirun=True)


def test_a_search_with_another_optimizer_becomes_no_recipe(search_here, scored, folder, configs):
    search_here(*SEARCH, "optimizer=adagrad")
    with pytest.raises(UsageError, match=r"another optimizer than the default.*optimizer=adagrad"):
        adopt(folder, configs)


def test_the_command_of_a_winner_has_null_and_no_words_of_the_search(search_here, scored, folder):
    space = "+search.space.optimizer.lr=[0.001,0.01]"
    result = search_here(*SEARCH, space, "+search.space.trainer.gradient_clip=[null]")
    command = search_run.winner_command(read_study(folder), result)
    assert "search" not in command
    assert "trainer.gradient_clip=null" in command.split()


WEBKB = ("texas", "cornell", "wisconsin")


@pytest.mark.parametrize(
    ("words", "dataset"),
    [
        *((f"search={model}", "cora") for model in (
            "tokengt", "gcn", "gat", "gat_wide", "mlp", "sage", "gprgnn", "chebnet2", "hypformer",
            "sgformer", "nodeformer",
        )),
        ("search=unifilter_cheb", "citeseer__quota"),
        *(("search=fpst", dataset) for dataset in (*WEBKB, "actor", "cora")),
        *((f"search={space}", "texas") for space in ("hat", "sgc", "common model=hgcn")),
    ],
)  # fmt: skip
def test_every_space_holds_its_defaults_and_small_graphs_are_searched_over_ten_draws(
    words, dataset
):
    words = [*words.split(), f"dataset={dataset}"]
    check_overrides(words, multirun=True)
    config = composing.composed(*words)
    assert defaults(config) is not None
    drawn = dataset in (*WEBKB, "actor")  # the paper's split is not published
    assert config.search.seeds == list(range(10 if drawn else 3))
    choices = values_by_key(config).get("dataset.features.enabled")
    assert choices == ([True, False] if dataset in WEBKB else None)


SMALL = ("study.models=[kappa_gcn]", "study.dim=4", "trainer.accelerator=cpu")


@pytest.fixture
def study_here(tmp_path):
    """Call `study` in this process: the folder of its page."""

    def run(*words: str, name: str = "study"):
        said = ("study=spaces", *SMALL, *words)
        config = composed(tmp_path, said, RunMode.MULTIRUN, name)
        result = study_run.study(Command.from_hydra(config))
        return result, tmp_path / name

    return run


@pytest.mark.nightly
def test_a_study_goes_on_and_says_what_its_json_says(study_here, monkeypatch, capsys):
    words = ("dataset=balanced_tree", "dataset.source.depth=2", "study.seeds=2", "study.steps=10")
    result, folder = study_here(*words)
    assert result.status == "finished", result.error
    found = json.loads((folder / "study.json").read_text())
    (report,) = found["reports"]
    rows = report["table"]
    spaces = [row["space"] for row in rows]
    assert spaces == ["flat", "hyperbolic", "spherical", "learned", "product"]
    for row in rows:
        runs = folder / "runs" / "kappa_gcn" / f"{row['space']}_4"
        assert row["scores"] == [read_result(runs / f"seed{seed}").score for seed in (0, 1)]
    assert found["facts"]["delta"] == [0, 0]
    points = read_result(runs / "seed0").references
    assert found["references"] == pytest.approx(points)
    said = " ".join(capsys.readouterr().out.split())
    assert f"reference: degree product {points['degree product']:.1f}" in said
    assert found["answer"] in said
    assert report["text"] in said
    assert (folder / "study.png").stat().st_size > 5000

    ran = []
    whole = study_run.train_in
    monkeypatch.setattr(
        "curvlab.run.train.run", lambda config, *_: ran.append(config.seed) or whole
    )
    again, _ = study_here(*words)
    assert again.status == "finished"
    assert not ran  # every run has its result already


def test_a_study_with_other_options_keeps_the_earlier_answer(study_here, capsys):
    words = ("dataset=balanced_tree", "dataset.source.depth=2", "study.seeds=2")
    spaces = [f"study.spaces.{name}=null" for name in ("spherical", "learned", "product")]
    _, folder = study_here(*words, *spaces, "study.steps=2")
    first = (folder / "study.json").read_bytes()
    for steps in (3, 3):
        result, _ = study_here(*words, *spaces, f"study.steps={steps}")
        assert result.status == "finished", result.error
    (kept,) = folder.glob("previous/*/study.json")
    assert kept.read_bytes() == first
    assert kept.with_name("study.png").is_file()
    assert json.loads((folder / "study.json").read_text())["steps"] == 3
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("the answer of a study with other options is now in") == 1


BALANCED = ("dataset=balanced_tree", "dataset.source.branching=2", "dataset.source.depth=5")
FLAT = ("dataset=grid", "dataset.source.rows=6", "dataset.source.columns=6")


@pytest.mark.nightly
@pytest.mark.parametrize(("graph", "space"), [(BALANCED, "hyperbolic"), (FLAT, "flat")])
def test_the_space_of_a_graph_that_is_known_is_found(study_here, tmp_path, graph, space):
    """A small version of docs/spaces.md: two spaces, five seeds, fewer steps."""
    others = [f"study.spaces.{name}=null" for name in ("spherical", "learned", "product")]
    budget = ("study.seeds=5", "study.steps=200", *others)
    result, _ = study_here(*graph, *budget)
    assert result.status == "finished", result.error
    found = answers(tmp_path)
    assert found["recommended"].tolist() == [space]
    assert found["right"].tolist() == [True]
