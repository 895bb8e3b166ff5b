"""Files of others are data: what they name is not located, imported, resolved or built."""

import copy
import json
import pickle
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import hydra._internal.instantiate._instantiate2 as hydra_instantiate
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

import composing
import curvlab
from curvlab.checksums import add_checksum
from curvlab.cli import train
from curvlab.config import schema, trust
from curvlab.config.folder import choices
from curvlab.config.resolvers import register_resolvers
from curvlab.data.files.cache import get_or_compute
from curvlab.data.files.pickles import read_pickle
from curvlab.errors import UsageError
from curvlab.results.folder import RunDirectory
from curvlab.results.identity import identity_hash
from curvlab.results.migrations import OLDEST, SCHEMA, with_current_targets
from curvlab.results.result import read_result
from curvlab.results.run_tables import write_rows
from curvlab.run.load import WEIGHTS
from curvlab.search.adopt import _check_names

SHIPPED = WEIGHTS / "fpst" / "web_edu.ckpt"
STRANGE = "strange_module.Strange"

WAYS = {
    "os.system": ["touch changed"],
    "posix.system": ["touch changed"],
    "os.popen": ["touch changed"],
    "os.mkdir": ["changed"],
    "os.remove": ["kept.txt"],
    "os.rename": ["kept.txt", "changed"],
    "os.execvp": ["touch", ["touch", "changed"]],
    "subprocess.run": [["touch", "changed"]],
    "subprocess.Popen": [["touch", "changed"]],
    "subprocess.check_output": [["touch", "changed"]],
    "shutil.copy": ["kept.txt", "changed"],
    "shutil.rmtree": ["."],
    "builtins.eval": ["open('changed', 'w')"],
    "builtins.exec": ["open('changed', 'w')"],
    "builtins.open": ["changed", "w"],
    "builtins.__import__": ["strange_module"],
    "io.open": ["changed", "w"],
    "pathlib.Path.touch": ["changed"],
    "importlib.import_module": ["strange_module"],
    "runpy.run_path": ["strange_module.py"],
    "runpy.run_module": ["strange_module"],
    "code.interact": [],
    "pdb.run": ["open('changed', 'w')"],
    "timeit.timeit": ["open('changed', 'w')"],
    "cProfile.run": ["1", "changed"],
    "trace.Trace": [],
    "webbrowser.open": ["file:///"],
    "ctypes.CDLL": ["libc.so.6"],
    "pickle.load": [],
    "pickle.loads": [b"cos\nsystem\n(S'touch changed'\ntR.".decode()],
    "marshal.loads": [],
    "shelve.open": ["changed"],
    "dbm.open": ["changed", "c"],
    "sqlite3.connect": ["changed"],
    "logging.config.dictConfig": [{"version": 1}],
    "logging.FileHandler": ["changed"],
    "multiprocessing.Process": [],
    "torch.load": ["evil.pkl", None, None],
    "torch.hub.load": [".", "strange"],
    "torch.jit.load": ["evil.pkl"],
    "torch.save": [[], "changed"],
    "torch.utils.cpp_extension.load": ["strange", ["strange.cpp"]],
    "numpy.load": ["evil.pkl", None, True],
    "numpy.save": ["changed", []],
    "numpy.savetxt": ["changed", []],
    "joblib.load": ["evil.pkl"],
    "joblib.dump": [[], "changed"],
    "pandas.read_pickle": ["evil.pkl"],
    "pandas.eval": ["@__import__('os').system('touch changed')"],
    "scipy.io.loadmat": ["evil.pkl"],
    "sympy.sympify": ["__import__('os').system('touch changed')"],
    "networkx.read_gpickle": ["evil.pkl"],
    "hydra.utils.instantiate": [{"_target_": "os.system", "_args_": ["touch changed"]}],
    "hydra.utils.get_object": [STRANGE],
    "hydra.utils.get_method": [STRANGE],
    "omegaconf.OmegaConf.save": [{}, "changed"],
    "lightning.pytorch.loggers.CSVLogger": ["."],
    "lightning.pytorch.callbacks.ModelCheckpoint": ["."],
    "torch_geometric.datasets.KarateClub": [],
    "torch_geometric.datasets.Actor": ["."],
    "curvlab.callbacks.tensorboard_logger": ["."],
    "curvlab.files.atomic_write": ["changed", "text"],
    "curvlab.files.remove": ["kept.txt"],
    "curvlab.config.type_texts.parse_type": ["1"],
    "curvlab.config.building.build": [{"_target_": "os.system", "_args_": ["touch changed"]}],
    "curvlab.load": ["evil.ckpt", None, None, True],
    "curvlab.models.fpst.torch.load": ["evil.pkl"],
    "torch.optim.adam.torch.load": ["evil.pkl"],
    "torch.optim.lr_scheduler.warnings.sys.exit": [1],
    "strange_module": [],
    STRANGE: [],
}  # fmt: skip
"""Full names that run code, load pickles, write files or import a module, and their arguments."""


class Command:
    def __reduce__(self):
        return (import_module("os").system, ("touch changed",))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module that notes its import, a pickle that runs a command, and a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("strange_module.py").write_text(
        "open('changed', 'w').close()\nclass Strange:\n    revision = 7\n"
    )
    Path("evil.pkl").write_bytes(pickle.dumps(Command()))
    Path("kept.txt").write_text("kept")
    yield tmp_path
    sys.modules.pop("strange_module", None)


def tree(folder):
    """All files below a folder with their content, without checkpoints of the test's own."""
    files = (path for path in folder.rglob("*") if path.suffix != ".ckpt")
    return {path: path.is_file() and path.read_bytes() for path in files}


@cache
def shipped():
    return content_of(SHIPPED)


def content_of(path):
    """A checkpoint, which may name classes by the places that they had."""
    content = torch.load(path, weights_only=True)
    return {**content, "config": with_current_targets(content["config"])}


def saved(config, **others):
    """A `best.ckpt` with another configuration."""
    path = Path("stranger.ckpt")
    torch.save({**shipped(), "config": config, **others}, path)
    return path


def places(node, path=()):
    """The path of every value and of every mapping of a configuration."""
    yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from places(value, (*path, key))
    if isinstance(node, list):
        for i, value in enumerate(node):
            yield from places(value, (*path, i))


def changed(config, path, value):
    """A copy with another value at a path."""
    config = copy.deepcopy(config)
    node = config
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return config


@pytest.fixture
def gate(monkeypatch):
    """Everything that is located from here on, by whoever locates it."""
    asked = []

    def noting(function):
        return lambda name, *others, **options: (
            asked.append(name),
            function(name, *others, **options),
        )[1]

    monkeypatch.setattr(schema, "locate", noting(schema.locate))
    monkeypatch.setattr(trust, "locate", noting(trust.locate))
    inner = hydra_instantiate._resolve_target
    monkeypatch.setattr(hydra_instantiate, "_resolve_target", noting(inner))
    return asked


@pytest.mark.slow
def test_nothing_is_located_resolved_or_built_whatever_place_names_it(here, gate, monkeypatch):
    register_resolvers()
    resolved = []
    OmegaConf.register_new_resolver("noted", lambda *_: resolved.append(1), replace=True)
    before, config = tree(here), shipped()["config"]
    paths = [path for path in places(config) if path]
    assert len(paths) > 80
    for i, path in enumerate(paths):
        for value in ({"_target_": STRANGE}, [{"a": {"_target_": STRANGE}}], "a ${noted:}"):
            wrong = changed(config, path, value)
            with pytest.raises(UsageError) as refused:
                trust.check(wrong, "a file") if i % 8 else curvlab.load(saved(wrong))
            named = "${noted:}" if isinstance(value, str) else STRANGE
            assert named in str(refused.value)
            assert "trust=True" in str(refused.value)
    assert (gate, resolved, tree(here)) == ([], [], before)
    assert "strange_module" not in sys.modules


GROUPS = [("optimizer",), ("model", "more"), ("callbacks",), ("dataset", "features"), ("logger",)]


@pytest.mark.slow
def test_known_ways_change_nothing(here, gate):
    assert len(WAYS) > 50
    before = tree(here)
    for target, arguments in WAYS.items():
        for group in GROUPS:
            node = {"_target_": target, "_args_": arguments}
            config = changed(shipped()["config"], group, {"a": node})
            if group == ("logger",) and target.startswith("curvlab.callbacks."):
                continue  # named there, and not built
            with pytest.raises(UsageError) as refused:
                curvlab.load(saved(config)) if group == GROUPS[0] else trust.check(config, "a file")
            assert target in str(refused.value)
    assert gate == []
    assert tree(here) == before


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("dataset", "source", "url"), "https://example.org", "url=https://example.org"),
        (
            ("dataset", "source", "files"),
            [{"path": "power/power.edges.csv", "name": "../../.profile", "sha256": None}],
            "name=../../.profile",
        ),
        (
            ("dataset", "source", "dataset"),
            {"_target_": "torch_geometric.datasets.Actor", "root": "."},
            "download at once",
        ),
        (
            ("dataset", "source"),
            {"_target_": "curvlab.data.datasets.pyg_object.PyGObject", "target": STRANGE},
            STRANGE,
        ),
        (("model", "dim"), torch.ones(1), "a Tensor, not a plain value"),
    ],
)
def test_data_of_others_are_neither_downloaded_nor_located(here, gate, path, value, said):
    with pytest.raises(UsageError, match=said.replace("[", r"\[")) as refused:
        curvlab.load(saved(changed(shipped()["config"], path, value)))
    assert "trust=True" in str(refused.value)
    assert gate == []


def test_a_nest_without_an_end_is_refused(here):
    config = copy.deepcopy(shipped()["config"])
    config["model"]["again"] = config
    with pytest.raises(UsageError, match="nested too deeply"):
        trust.check(config, "a file")


def test_trust_builds_what_a_file_names(here):
    config = changed(shipped()["config"], ("optimizer", "_target_"), "strange_module.Optimizer")
    Path("strange_module.py").write_text("from curvlab.optim.optimisers import Adam as Optimizer\n")
    with pytest.raises(UsageError, match=r"strange_module\.Optimizer"):
        curvlab.load(saved(config))
    assert "strange_module" not in sys.modules
    trusted = curvlab.load(saved(config), trust=True)
    assert "strange_module" in sys.modules
    weights, expected = trusted.task.state_dict(), shipped()["state_dict"]
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", [*choices(composing.CONFIGS, "dataset")])
def test_every_data_set_that_ships_passes(name, monkeypatch):
    monkeypatch.setattr(trust, "_trusted_targets", set())
    config = composing.composed(f"dataset={name}")
    monkeypatch.setattr(trust, "_trusted_targets", set())
    trust.check({"dataset": OmegaConf.to_container(config.dataset, resolve=True)}, name)


def test_every_class_that_configurations_name_and_torchs_optimisers_pass(monkeypatch):
    monkeypatch.setattr(trust, "_trusted_targets", set())
    assert all(map(trust.is_known, schema.stored_signatures()))
    assert trust.is_known("torch.optim.Adam")
    assert trust.is_known("torch.optim.lr_scheduler.StepLR")
    for path in WEIGHTS.rglob("*.ckpt"):
        trust.check(content_of(path)["config"], path)


def test_a_result_or_a_row_that_names_a_module_imports_nothing(here, gate):
    config = {"model": {"_target_": STRANGE, "a": "${oc.env:HOME}"}, "task": {}}
    assert identity_hash(config) == identity_hash(config)
    result = {
        **dict.fromkeys(("model", "dataset", "task", "manifold", "config_hash"), "x"),
        **{"status": "finished", "seed": 0, "experiment": None, "config": config},
    }
    folder = here / "runs" / "seed0"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(add_checksum(result)))
    assert RunDirectory(folder).conclusion() is not None
    assert RunDirectory(folder).conclusion("another") is None
    write_rows(here / "table.jsonl.gz", [{"run": "seed1", "files": {}, **result}])
    assert read_result(here / "table" / "seed1").config == config
    assert RunDirectory(here / "table" / "seed1").conclusion("another") is None
    assert gate == []
    assert not Path("changed").exists()
    assert "strange_module" not in sys.modules


EARLIER = range(OLDEST, SCHEMA)
NAMED = [
    ("model", "_target_"),
    ("model", "more"),
    ("model", "requires", "transforms"),
    ("task",),
    ("dataset", "features"),
    ("optimizer",),
]


@pytest.mark.parametrize("schema", EARLIER)
def test_the_migration_of_an_earlier_version_locates_and_resolves_nothing(here, gate, schema):
    register_resolvers()
    resolved = []
    OmegaConf.register_new_resolver("noted", lambda *_: resolved.append(1), replace=True)
    before, config = tree(here), shipped()["config"]
    config = {**config, "model": {**config["model"], "requires": {"transforms": []}}}
    revisions = {STRANGE: 1, "FPST": 3}
    for path in NAMED:
        node = {"_target_": STRANGE, "self_loops": "${noted:}", "k": "${noted:}"}
        value = STRANGE if path[-1] == "_target_" else [node] if path[-1] == "transforms" else node
        wrong = changed(config, path, value)
        with pytest.raises(UsageError, match=re.escape(STRANGE)):
            curvlab.load(saved(wrong, schema=schema, revisions=revisions, config_hash="x"))
        result = {
            **dict.fromkeys(("model", "dataset", "task", "manifold", "config_hash"), "x"),
            **{"status": "finished", "seed": 0, "experiment": None, "config": wrong},
            **{"schema": schema, "revisions": revisions},
        }
        Path("result.json").write_text(json.dumps(add_checksum(result)))
        assert read_result(here).schema == SCHEMA
        assert RunDirectory(here).conclusion() is not None
        Path("result.json").unlink()
    assert (gate, resolved, tree(here)) == ([], [], before)
    assert "strange_module" not in sys.modules


@pytest.mark.parametrize("run", ["../outside", "/tmp/outside", "a/../../b"])
def test_a_row_of_a_table_is_inside_its_folder(tmp_path, run):
    write_rows(tmp_path / "table.jsonl.gz", [{"run": run, "files": {}}])
    with pytest.raises(UsageError, match="is not inside its folder"):
        read_result(tmp_path / "table" / "seed0")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gcn", {"model._target_": STRANGE}),
        ("gcn", {"model.dim": "${oc.env:HOME}"}),
        ("gcn", {"hydra.run.dir": "/tmp"}),
        ("gcn", {"paths.data_dir": "/tmp"}),
        ("../../../outside", {}),
        ("gcn +callbacks.a._target_=os.system", {}),
    ],
)
def test_what_a_journal_or_its_result_names_becomes_no_recipe(tmp_path, name, params):
    result = SimpleNamespace(task="node_classification", model=name, dataset="cora", config={})
    with pytest.raises(UsageError):
        _check_names(tmp_path, result, params)
    result.model = "gcn"
    _check_names(tmp_path, result, {"model.dim": 8, "optimizer.lr": 0.1})


class Address:
    """An array of one object whose address a file chooses."""

    def __reduce__(self):
        return (np.ndarray, ((1,), np.dtype(object), b"12345678"))


def test_a_pickle_of_raw_data_makes_arrays_of_numbers_alone(tmp_path):
    path = tmp_path / "raw.pkl"
    for value in (np.arange(6.0).reshape(2, 3), {"a": np.array([1, 2])}):
        for protocol in (2, 4, 5):
            path.write_bytes(pickle.dumps(value, protocol))
            np.testing.assert_equal(read_pickle(path), value)
    for value in (Address(), Command()):
        path.write_bytes(pickle.dumps(value))
        with pytest.raises((pickle.UnpicklingError, TypeError)):
            read_pickle(path)


def test_a_cache_of_others_is_made_again(here):
    get_or_compute(here, "entry", lambda: {"a": torch.ones(2)})
    (path,) = here.glob("entry*.pt")
    torch.save({"tensors": Command()}, path)
    assert get_or_compute(here, "entry", lambda: {"a": torch.ones(2)})["a"].sum() == 2
    assert not Path("changed").exists()


def test_no_module_evaluates_text():
    for path in (composing.ROOT / "src").rglob("*.py"):
        assert not re.search(r"(?<![\w.])(eval|exec)\(", path.read_text(encoding="utf-8")), path


def test_a_process_of_a_group_knows_what_its_own_command_names(monkeypatch):
    monkeypatch.setattr(trust, "_trusted_targets", set())
    monkeypatch.setattr(trust, "_trusted_values", set())
    words = ["-m", "model=gcn", "seed=0,1", "+callbacks.a._target_=mine.One,mine.Two"]
    train._trust_overrides([*words, "dataset.source.url=https://example.org"])
    assert trust.is_known("mine.One")
    assert trust.is_known("mine.Two")
    assert not trust.is_known("mine.Three")
    files = [{"path": "power/power.edges.csv", "name": None}]
    source = {"files": files, "url": "https://example.org"}
    trust.check({"dataset": {"source": source}}, "a message")
