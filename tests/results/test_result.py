"""Result files are whole, and a folder's old contents are used only where they still hold."""

import json

import pytest
import torch

import stored_runs
from curvlab.checksums import add_checksum, add_facts
from curvlab.leases import acquire
from curvlab.results.folder import EARLIER, LAST, Claim, RunDirectory
from curvlab.results.identity import identity_hash
from curvlab.results.result import read_result


def hash_of(model):
    return identity_hash({"model": {"name": model}})


def result(name="a", status="finished", **values):
    return stored_runs.result({"model": {"name": name}}, status=status, **values)


def test_a_result_comes_back_as_it_was_written(tmp_path):
    written = result(metrics={"test": {"map": 98.75}}, curvatures={"kappa/0": [-1.5, 0.25]})
    written.write(tmp_path)
    assert read_result(tmp_path) == written
    here, noted = (v.partition("+")[0] for v in (torch.__version__, written.versions["torch"]))
    assert here == noted  # one of them may say +cpu


NONE = [None, "", '{"status": "fin', "[]", '{"status": "finished"}', '{"config": ' * 100_000]


@pytest.mark.parametrize("content", [*NONE, {"config": None}, {"schema": 5}], ids=range(8))
def test_what_is_no_result_is_not_read(tmp_path, content):
    path = result().write(tmp_path)
    if isinstance(content, dict):
        content = json.dumps(add_checksum({**json.loads(path.read_text()), **content}))
    path.unlink() if content is None else path.write_text(content)
    assert read_result(tmp_path) is None
    assert RunDirectory(tmp_path).conclusion(hash_of("a")) is None


@pytest.mark.parametrize(
    ("status", "name", "concluded"),
    [
        ("finished", "a", True),
        ("diverged", "a", True),
        ("failed", "a", False),
        ("out_of_memory", "a", False),
        ("finished", "b", False),
    ],
)
def test_only_the_same_configuration_and_a_lasting_end_conclude(tmp_path, status, name, concluded):
    result(name, status).write(tmp_path)
    assert (RunDirectory(tmp_path).conclusion(hash_of("a")) is not None) == concluded


def leave_products(folder, name):
    """A run that was interrupted after its first checkpoint."""
    directory = RunDirectory(folder)
    directory.prepare(result(name), fresh=False)
    (directory.path / LAST).parent.mkdir()
    (directory.path / LAST).write_text(f"weights of {name}")
    return directory


def test_files_of_another_configuration_or_a_fresh_run_are_set_aside(tmp_path):
    (tmp_path / "routing.npz").write_text("of a run that is not known")
    directory = leave_products(tmp_path, "a")
    assert (tmp_path / "previous" / "unknown" / "routing.npz").exists()
    assert not (tmp_path / "routing.npz").exists()
    directory.prepare(result("a"), fresh=False)
    assert (directory.path / LAST).read_text() == "weights of a"
    for name, fresh in (("b", False), ("b", True)):
        before = (directory.path / LAST).read_text()
        directory.prepare(result(name), fresh=fresh)
        assert directory.newest is None
        aside = tmp_path / "previous" / hash_of(before[-1]) / "checkpoints" / "last.ckpt"
        assert aside.read_text() == before
        leave_products(tmp_path, "b")


def test_a_result_that_ended_survives_an_interrupted_repetition(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.prepare(result("a"), fresh=False)
    result("a", score=81.5).write(tmp_path)
    directory.prepare(result("a"), fresh=True)
    directory.prepare(result("b"), fresh=False)
    aside = tmp_path / "previous" / hash_of("a")
    assert read_result(aside).score == 81.5
    directory.restore(hash_of("a"))
    assert directory.conclusion(hash_of("a")).score == 81.5
    assert not aside.exists()


def leave_checkpoint(path, name, step=1):
    """A checkpoint as a run of that name writes it."""
    torch.save({"weight": torch.arange(4.0)}, path)
    facts = {key: getattr(result(name), key) for key in ("config", "schema", "revisions")}
    add_facts(path, {**facts, "step": step})


def a_folder(path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_text("weights of somebody else"),
    "without facts": lambda path: torch.save({"weight": torch.zeros(4)}, path),
    "folder": a_folder,
    "of another run": lambda path: leave_checkpoint(path, "b"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_checkpoint_before_is_taken_where_the_last_is_damaged(tmp_path, damage):
    directory = leave_products(tmp_path, "a")
    earlier = tmp_path / EARLIER
    leave_checkpoint((directory.path / LAST), "a", step=2)
    leave_checkpoint(earlier, "a", step=1)
    assert (directory.discard_damaged(), directory.step()) == ({}, 2)
    damage(directory.path / LAST)
    assert list(directory.discard_damaged()) == [(directory.path / LAST)]
    assert (directory.newest, directory.step()) == (earlier, 1)
    damage(earlier)
    assert list(directory.discard_damaged()) == [earlier]
    assert (directory.newest, directory.step()) == (None, 0)


def test_a_claim_is_a_result_a_checkpoint_or_neither(tmp_path):
    """Of this folder, of what was set aside in it, or of another below the outputs."""
    own, other = (tmp_path / name / "seed0" for name in ("default", "dim=16"))
    directory = RunDirectory(own)
    assert directory.claim(result("a"), tmp_path) == Claim()
    leave_products(own, "a")
    leave_checkpoint(own / LAST, "a", step=2)
    (own / "result.json").unlink(missing_ok=True)
    found = directory.claim(result("a"), tmp_path)
    assert (found.result, found.checkpoint) == (None, own / LAST)
    assert directory.claim(result("a"), tmp_path, rerun=True).checkpoint is None
    result("a").write(own)
    assert directory.claim(result("a"), None).result.config_hash == hash_of("a")
    leave_products(other, "b")
    result("b").write(other)
    assert directory.claim(result("b"), None).result is None  # this folder alone
    copied = directory.claim(result("b"), tmp_path)
    assert (copied.result.config_hash, copied.source) == (hash_of("b"), other)
    back = directory.claim(result("a"), None)  # set aside by the copy
    assert (back.result.config_hash, back.source) == (hash_of("a"), None)


CONFIG_DAMAGES = {
    "missing": lambda text: None,
    "empty": lambda text: "",
    "cut off": lambda text: text[: len(text) // 2],
    "foreign": lambda text: "a: [",
    "of another": lambda text: text.replace("config_hash: '", "config_hash: 'f").replace("a", "b"),
}


@pytest.mark.parametrize("damage", CONFIG_DAMAGES.values(), ids=CONFIG_DAMAGES)
@pytest.mark.parametrize("ended", [True, False])
def test_a_damaged_configuration_is_restored_and_costs_no_run(tmp_path, damage, ended):
    directory = leave_products(tmp_path, "a")
    leave_checkpoint(directory.path / LAST, "a", step=2)
    path = tmp_path / "config.yaml"
    before = path.read_text()
    damaged = damage(before)
    path.unlink() if damaged is None else path.write_text(damaged)
    if ended:
        result("a").write(tmp_path)
    else:
        (tmp_path / "result.json").unlink(missing_ok=True)
    found = directory.claim(result("a"), tmp_path)
    assert bool(found.result) == ended
    assert ended or found.checkpoint == directory.path / LAST
    if not ended:
        directory.prepare(result("a"), fresh=False)  # as a run does when it has built its parts
        assert (tmp_path / LAST).exists()
    assert path.read_text() == before
    assert not (tmp_path / "previous").exists()


def test_a_run_that_was_interrupted_in_another_folder_is_moved(tmp_path):
    own, other = (tmp_path / "runs" / "mlp" / name / "seed0" for name in ("default", "dim=16"))
    directory, begun = RunDirectory(own), leave_products(other, "a")
    found = directory.elsewhere(tmp_path, hash_of("a"))
    assert found.path == other
    leave_products(own, "b")
    with acquire(other / ".lease"):
        assert directory.take_over(found, result("a")) is None
        assert begun.newest
    assert directory.take_over(found, result("a")) is None
    assert ((directory.path / LAST).read_text(), begun.newest) == ("weights of a", None)
    assert (own / "previous" / hash_of("b") / "checkpoints" / "last.ckpt").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(3))
def test_no_changed_character_of_a_result_passes(tmp_path, first):
    """The run is then done again, and says why; another score is read by nobody."""
    path = result(score=96.1883, metrics={"test": {"map": 96.1883}}).write(tmp_path)
    written, whole = read_result(tmp_path), path.read_text()
    for place in range(first, len(whole), 3):
        path.write_text(whole[:place] + chr(ord(whole[place]) ^ 1) + whole[place + 1 :])
        assert read_result(tmp_path) in (None, written)  # white space may be another
    path.write_text(whole.replace("96.1883", "97.1883"))
    (reason,) = RunDirectory(tmp_path).discard_damaged().values()
    assert reason == "its checksum does not match"
    assert not path.exists()
