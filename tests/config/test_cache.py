"""Answers of the cache of compositions are those of the composition itself."""

import os
import shutil
from functools import partial

import pytest

from composing import CONFIGS
from curvlab.cli.forecast import Forecast
from curvlab.cli.overrides import cells_of, check_sweep
from curvlab.config import cache as home
from curvlab.config.cache import CompositionCache, user_cache
from curvlab.config.folder import choices
from curvlab.errors import UsageError
from curvlab.results.identity import identity_hash
from curvlab.run.cells import SEED, Cells, identify
from curvlab.run.command import complete

SWEEP = ["model=mlp,gcn", "dataset=texas", "seed=range(0,4)"]


def folder_of(run):
    return run.folder(multirun=True)


def refuse(overrides, **_):
    raise AssertionError(f"{overrides} is composed")


@pytest.fixture(autouse=True)
def _old_files(monkeypatch):
    """The files are older than this process, also while somebody edits them."""
    monkeypatch.setattr(home.psutil.Process, "create_time", lambda self: 1e12)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A copy of all configurations and of a small package, which alone decide the state."""
    configs, package = tmp_path / "configs", tmp_path / "package"
    shutil.copytree(CONFIGS, configs)
    package.mkdir()
    package.joinpath("code.py").write_text("x = 1")
    monkeypatch.setattr(home, "folders", lambda: (configs,))
    monkeypatch.setattr(home, "PACKAGE", package)
    return tmp_path


def answer(folder):
    return CompositionCache(folder / "answers").get("question")


def compare(table, families, tmp_path):
    """Cells of some families that the cache has are as composed, each by itself."""
    cells = [tuple(cell) for cell in cells_of([f"table={table}"])]
    members = {}
    for cell in cells:
        family = tuple(o for o in cell if not SEED.fullmatch(o))
        members.setdefault(family, []).append(cell)
    step = -(-len(members) // families) if families else 1
    chosen = [cell for family in list(members.values())[::step] for cell in family]
    put = partial(identify, complete=complete, folder_of=folder_of)
    get = partial(identify, complete=refuse, folder_of=refuse)
    composed = Cells(chosen, partial(put, cache=CompositionCache(tmp_path)))
    for cell in chosen:
        composed.identity(cell)
    found = Cells(chosen, partial(get, cache=CompositionCache(tmp_path)))
    for cell in chosen[::2] if families else chosen:
        run, one = complete(cell), found.identity(cell)
        assert (one.overrides, one.folder) == (run.overrides, run.folder(multirun=True))
        assert one.config_hash == run.config_hash == identity_hash(run.stored)
        if run.stored["seed"] == one.config["seed"]:
            assert one.config == run.stored
        assert (one.experiment, str(one.output_dir)) == (table, run.config.paths.output_dir)
        assert (one.outputs, one.rerun, one.several) == (run.outputs, False, False)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("table", choices(CONFIGS, "table"))
def test_a_found_cell_is_the_composed_one(table, tmp_path):
    compare(table, 3, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("table", choices(CONFIGS, "table"))
def test_all_found_cells_are_the_composed_ones(table, tmp_path):
    compare(table, None, tmp_path)


def test_a_sweep_is_composed_once(tmp_path):
    words = [*SWEEP, f"paths.output_dir={tmp_path}"]
    check_sweep(words, CompositionCache(tmp_path / "cache"))
    first = list(Forecast(words, cache=CompositionCache(tmp_path / "cache")).lines())
    again = CompositionCache(tmp_path / "cache")
    check_sweep(words, again, refuse)
    assert list(Forecast(words, refuse, cache=again).lines()) == first


def test_a_wrong_sweep_is_refused_each_time(tmp_path):
    for _ in range(2):
        with pytest.raises(UsageError, match=r"seed=-3"):
            check_sweep(["model=gcn", "dataset=texas", "seed=-3,1"], CompositionCache(tmp_path))
        with pytest.raises(UsageError, match=r"model\.dim"):
            check_sweep([*SWEEP, "model.dim=8,0"], CompositionCache(tmp_path))


@pytest.mark.parametrize("seeds", ["7,2,5", "range(3,9)"])
def test_the_least_and_the_largest_seed_are_checked(seeds, tmp_path):
    checked = []

    def noted(overrides, **options):
        run = complete(overrides, **options)
        checked.append(run.config.seed)
        return run

    check_sweep(["model=gcn", "dataset=texas", f"seed={seeds}"], CompositionCache(), noted)
    expected = {"7,2,5": [7, 2], "range(3,9)": [3, 8]}
    assert checked == expected[seeds]


def yaml_of(files):
    return sorted((files / "configs").rglob("*.yaml"))


def edit(files, path):
    with path.open("a") as text:
        text.write("\n# another line\n")


CHANGES = {
    "a new file": lambda files: (files / "configs/model/new.yaml").write_text("defaults: [gcn]"),
    "a removed file": lambda files: (files / "configs/model/gcn.yaml").unlink(),
    "a renamed file": lambda files: (files / "configs/model/gcn.yaml").rename(
        files / "configs/model/gcn2.yaml"
    ),
    "a new group": lambda files: (files / "configs/group").mkdir(),
    "code": lambda files: (files / "package/code.py").write_text("x = 2"),
    "new code": lambda files: (files / "package/more.py").write_text(""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_took_part_decides(change, files):
    CompositionCache(files / "answers").put({"x": 1}, {}, "question")
    assert answer(files) == {"x": 1}
    CHANGES[change](files)
    assert answer(files) is None


def test_each_file_decides(files):
    """With the size and the time of change that it had before, too."""
    states = {home._state(home._files())}
    paths = yaml_of(files)[::10]
    for path in paths:
        before, text = path.stat(), path.read_text()
        path.write_text(text.replace("e", "f", 1))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        states.add(home._state(home._files()))
        path.write_text(text)
    assert len(states) == len(paths) + 1


@pytest.mark.parametrize("changed", ["variable", "version", "folder"])
def test_variables_and_versions_decide(changed, files, monkeypatch):
    CompositionCache(files / "answers").put({"x": 1}, {}, "question")
    if changed == "variable":
        monkeypatch.setenv("CURVLAB_MIRROR", str(files))  # that configs/paths names
    elif changed == "version":
        monkeypatch.setattr(home, "_version", lambda package: "another")
    else:
        files.joinpath("added").mkdir()
        files.joinpath("added", "x.yaml").write_text("a: 1")
        monkeypatch.setattr(home, "folders", lambda: (files / "configs", files / "added"))
    assert answer(files) is None


@pytest.mark.parametrize("text", ["a: ${now:%Y}", "a: ${hydra:runtime.cwd}", "a: ${my_own:1}"])
def test_what_differs_between_processes_is_not_kept(text, files):
    files.joinpath("configs", "x.yaml").write_text(text)
    CompositionCache(files / "answers").put({"x": 1}, {}, "question")
    assert answer(files) is None


def test_files_that_change_meanwhile_are_not_kept(files):
    """A composition may have read them before or after."""
    cache = CompositionCache(files / "answers")
    edit(files, yaml_of(files)[0])
    cache.put({"x": 1}, {}, "question")
    assert cache.get("question") is None


def test_files_newer_than_the_process_are_not_trusted(files, monkeypatch):
    """The process may have imported other code than the files have now."""
    monkeypatch.setattr(home.psutil.Process, "create_time", lambda self: 0.0)
    cache = CompositionCache(files / "answers")
    cache.put({"x": 1}, {}, "question")
    assert cache.get("question") is None


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b"[1]", b'{"answer": 2}', None])
def test_a_damaged_answer_is_none(damage, files):
    CompositionCache(files / "answers").put({"x": 1}, {}, "question")
    (file,) = (files / "answers").rglob("*.json")
    content = file.read_bytes()
    file.write_bytes(content.replace(b"1", b"2", 1) if damage is None else damage)
    assert answer(files) is None
    CompositionCache(files / "answers").put({"x": 3}, {}, "question")
    assert answer(files) == {"x": 3}


def test_an_answer_belongs_to_its_question(files):
    CompositionCache(files / "answers").put({"x": 1}, {}, "question")
    (file,) = (files / "answers").rglob("*.json")
    CompositionCache(files / "answers").put({"x": 2}, {}, "another")
    (other,) = {*(files / "answers").rglob("*.json")} - {file}
    shutil.copy(other, file)
    assert answer(files) is None


OF_OTHERS = {
    "a class of others": {"model": {"_target_": "lab.nets.Net"}},
    "a file": {"dataset": {"source": {"_target_": "", "path": "x"}}},
    "any class": {"dataset": {"source": {"_target_": home.FOREIGN, "options": {"a": "b"}}}},
}


@pytest.mark.parametrize("case", OF_OTHERS)
def test_what_more_than_the_overrides_decides_is_not_kept(case, files, tmp_path):
    config = OF_OTHERS[case]
    if case == "a file":
        tmp_path.joinpath("edges.csv").write_text("source,target\na,b\nb,c\n")
        own = ["dataset=graph_folder", f"dataset.source.path={tmp_path}", "model=gcn"]
        config = complete(own, say=lambda _: None, keep=False).stored
    cache = CompositionCache(files / "answers")
    cache.put({"x": 1}, config, "question")
    assert cache.get("question") is None


def test_an_override_that_is_resolved_is_not_kept(files):
    cache = CompositionCache(files / "answers")
    cache.put({"x": 1}, {}, "model.dim=${oc.env:WIDTH}")
    assert cache.get("model.dim=${oc.env:WIDTH}") is None


def test_old_states_are_removed(files):
    for i in range(home.MAX_STATES + 3):
        files.joinpath("package", "code.py").write_text(f"x = {i}")
        CompositionCache(files / "answers").put({"x": i}, {}, "question")
        os.utime(next((files / "answers").glob("*")), (i, i))
    assert len(list((files / "answers").iterdir())) == home.MAX_STATES
    assert answer(files) == {"x": home.MAX_STATES + 2}


def test_without_a_folder_nothing_is_kept(files, monkeypatch):
    monkeypatch.setenv(home.FOLDER, "")
    user_cache().put({"x": 1}, {}, "question")
    assert user_cache().get("question") is None
    files.joinpath("file").write_text("")  # where a folder would be
    monkeypatch.setenv(home.FOLDER, str(files / "file"))
    user_cache().put({"x": 1}, {}, "question")
    assert user_cache().get("question") is None
