"""Messages of a group's processes are data: a hostile one runs nothing and gets one sentence."""

import errno
import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

import composing
from curvlab.config import schema, trust
from curvlab.errors import CheckpointError, DivergedError, ProcessError, UsageError, format_error
from curvlab.results.folder import RunDirectory
from curvlab.run import messages
from curvlab.run.command import Command


class Touch:
    """A pickle that makes a file."""

    def __reduce__(self):
        return os.system, ("touch changed",)


def run_of(*words):
    config = composing.composed(*words)
    return config, Command((), config).initial_result(), RunDirectory(Path("run")), None


def test_a_run_arrives_as_it_was_sent(tmp_path):
    config, result, folder, _ = run_of("model=fpst", "dataset=synthetic_web")
    last = tmp_path / "last.ckpt"
    read = messages.read_run(messages.write_run(config, result, folder, last))
    assert read[0] == OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    assert read[1] == result
    assert read[2].path == folder.path
    assert read[3] == last
    assert messages.read_run(messages.write_run(config, result, folder, None))[3] is None


HOSTILE = {
    "a pickle": pickle.dumps(Touch()).decode("latin-1"),
    "a pickle of protocol 0": pickle.dumps(Touch(), 0).decode("latin-1"),
    "a pickle in hexadecimal": pickle.dumps(Touch()).hex(),
    "nothing": "",
    "a number": "1",
    "another object": '{"config": 1}',
    "a list": '{"config": [], "result": [], "folder": [], "checkpoint": []}',
    "a deep nest": '{"config": ' + '{"a": ' * 900 + "1" + "}" * 900 + "}",
    "too deep for JSON": "[" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_message_of_another_is_format_error_and_runs_nothing(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="a message in the store of this run's processes") as said:
        messages.read_run(HOSTILE[name])
    assert "\n" not in str(said.value)
    assert isinstance(messages.read_error(HOSTILE[name]), ProcessError)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("optimizer._target_", "os.system"),
        ("callbacks", {"a": {"_target_": "subprocess.run", "args": ["touch", "changed"]}}),
        ("model.dim", "${oc.env:HOME}"),
        ("dataset.source.url", "https://example.org"),
    ],
)
def test_a_run_of_another_is_checked_before_anything_is_located(tmp_path, monkeypatch, key, value):
    monkeypatch.chdir(tmp_path)
    run = run_of("model=gcn", "dataset=power")
    message = json.loads(messages.write_run(*run))
    node = message["config"]
    *parts, last = key.split(".")
    for part in parts:
        node = node[part]
    node[last] = value
    asked = []
    monkeypatch.setattr(schema, "locate", asked.append)
    monkeypatch.setattr(trust, "locate", asked.append)
    with pytest.raises(UsageError, match=r"could (run another's code|write files) here"):
        messages.read_run(json.dumps(message))
    assert (asked, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize(
    "error",
    [
        UsageError("wrong"),
        DivergedError("not finite"),
        CheckpointError("does not fit"),
        ProcessError("killed"),
        ValueError("odd"),
        MemoryError(),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/file"),
        PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/data/file"),
    ],
)
def test_an_error_keeps_its_class_and_its_words(error):
    read = messages.read_error(messages.write_error(error))
    assert type(read) is type(error)
    assert format_error(read) == format_error(error)
    if isinstance(error, OSError):
        assert (read.errno, read.filename) == (error.errno, error.filename)
    assert type(error).__name__ in read.__notes__[0]


def test_an_error_of_another_class_is_named():
    class OddError(Exception):
        """Of a package."""

    read = messages.read_error(messages.write_error(OddError("what happened")))
    assert isinstance(read, RuntimeError)
    assert str(read) == "OddError: what happened"
    decoding = UnicodeDecodeError("utf-8", b"a", 0, 1, "why")
    assert "why" in str(messages.read_error(messages.write_error(decoding)))
    memory = torch.OutOfMemoryError("CUDA out of memory")
    assert isinstance(messages.read_error(messages.write_error(memory)), MemoryError)


@pytest.mark.parametrize("kind", ["SystemExit", "eval", "BaseException", "exec", "__import__"])
def test_an_error_of_another_program_calls_nothing_but_exceptions(kind):
    said = {"kind": kind, "text": "open('changed', 'w')", "traceback": ""}
    assert type(messages.read_error(json.dumps(said))) is RuntimeError
