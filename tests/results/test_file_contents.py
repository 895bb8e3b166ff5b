"""A run on a user's files is identified by what is in them, however they are named."""

import gzip
import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from composing import CONFIGS, composed
from curvlab.cli.aliases import resolve_aliases
from curvlab.config.file_contents import dataset_files, user_files
from curvlab.config.folder import choices
from curvlab.config.resolvers import data_folder
from curvlab.config.schema import options_of
from curvlab.config.sources import read
from curvlab.config.trust import trust
from curvlab.data.datasets.graph_folder import GraphFolder
from curvlab.data.files.sources import Generated
from curvlab.errors import UsageError
from curvlab.options import DATASET_FILES, USER_FILE
from curvlab.results.identity import identity_hash, stored_config
from curvlab.run.parts import check_user_files

HARMLESS = {
    "url": "the files have the same checksums wherever they are from",
    "statistics": "they are compared with the graph, which they do not change",
    "given": "a name of the splits in the files",
}


def sources():
    """The class of every shipped data set's source."""
    found = set()
    for folder in ("dataset", "dataset/family"):
        for name in choices(CONFIGS, folder):
            source = (read(CONFIGS, f"{folder}/{name}") or {}).get("source") or {}
            found.add(source.get("_target_"))
    return sorted(found - {None})


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def hash_of(*words):
    return identity_hash(stored_config(composed("model=gcn", *resolve_aliases(words))))


def write_graph(folder, label="x"):
    folder.mkdir(exist_ok=True)
    (folder / "edges.csv").write_text("a,b\nb,c\nc,d\n")
    (folder / "nodes.csv").write_text(f"id,label,size\na,{label},1\nb,y,2\nc,x,3\nd,y,4\n")


def write_triples(folder, tail="c"):
    folder.mkdir(exist_ok=True)
    for name in ("train", "valid", "test"):
        (folder / f"{name}.txt").write_text(f"a\tr\tb\nb\tr\t{tail}\n")


@pytest.mark.parametrize("target", sources())
def test_every_incidental_option_of_a_source_names_files_or_is_harmless(target):
    for name, option in options_of(target).items():
        if option.incidental and not {USER_FILE, DATASET_FILES} & {*option.marks}:
            assert name in HARMLESS, name


SPELLINGS = [
    ["dataset=g"],
    ["dataset=./g"],
    ["dataset=g/edges.csv"],
    ["dataset=graph_folder", "dataset.path=g"],
    ["dataset=graph_folder", "dataset.source.path=g"],
    ["dataset=graph_folder", "dataset.path=h", "dataset.source.path=g"],
    ["dataset=graph_folder", "dataset.path={here}/g"],
    ["dataset=link"],
    ["dataset=copy"],
]


@pytest.mark.parametrize("words", SPELLINGS, ids=" ".join)
def test_the_content_counts_whatever_the_spelling(words, tmp_path):
    for name in ("g", "copy"):
        write_graph(tmp_path / name)
    write_graph(tmp_path / "h", label="y")
    (tmp_path / "link").symlink_to("g")
    words = [word.format(here=tmp_path) for word in words]
    assert hash_of(*words) == hash_of("dataset=g")
    assert hash_of(*words) != hash_of("dataset=h")
    before = hash_of(*words)
    write_graph(tmp_path / ("copy" if words == ["dataset=copy"] else "g"), label="z")
    assert hash_of(*words) != before


def pyg(path, number):
    edges = torch.tensor([[0, 1], [1, 0]])
    torch.save(Data(edge_index=edges, x=torch.full((2, 1), float(number))), path)


def graphml(path, number):
    ends = f'<node id="a"/><node id="b{number}"/><edge source="a" target="b{number}"/>'
    path.write_text(f"<graphml><graph>{ends}</graph></graphml>")


def zipped(path, number):
    path.write_bytes(gzip.compress(f"a,b\nb,c{number}\n".encode(), mtime=0))


PLACES = {
    "edges": ("g/edges.csv", lambda p, i: p.write_text(f"a,b\nb,c\nc,d{i}\n"), ["dataset=g"]),
    "labels": ("g/nodes.csv", lambda p, i: p.write_text(f"id,label\na,{i}\n"), ["dataset=g"]),
    "features": ("g/features.npy", lambda p, i: np.save(p, np.full((4, 1), i)), ["dataset=g"]),
    "another table": ("sales.csv", lambda p, i: p.write_text(f"a,b{i}\n"), ["dataset=sales.csv"]),
    "zipped": ("sales.csv.gz", zipped, ["dataset=sales.csv.gz"]),
    "table of nodes": (
        "people.csv",
        lambda p, i: p.write_text(f"id,label\na,{i}\n"),
        ["dataset=g", "dataset.source.nodes=people.csv"],
    ),
    "networkx": ("g.graphml", graphml, ["dataset=g.graphml"]),
    "networkx, source.path": (
        "g.graphml",
        graphml,
        ["dataset=networkx", "dataset.source.path=g.graphml"],
    ),
    "pyg": ("g.pt", pyg, ["dataset=g.pt"]),
    "pyg, source.path": ("g.pt", pyg, ["dataset=pyg", "dataset.source.path=g.pt"]),
    "raw files of a class": (
        "linked/raw/x.txt",
        lambda p, i: p.write_text(str(i)),
        ["dataset=pyg", "dataset.target=torch_geometric.datasets.KarateClub", "dataset.path=root"],
    ),
    "file in the options of a class": (
        "x.txt",
        lambda p, i: p.write_text(str(i)),
        ["dataset=pyg", "dataset.target=mine.Class", "dataset.options={file: x.txt}"],
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_an_edit_of_any_file_that_is_named_is_another_run(name, tmp_path):
    place, write, words = PLACES[name]
    write_graph(tmp_path / "g")
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "Class").symlink_to(tmp_path / "linked")
    hashes = []
    for number in (1, 2, 1):
        write(tmp_path / place, number)
        hashes.append(hash_of(*words))
    assert hashes[0] == hashes[2] != hashes[1]


PLUGIN = """
from pathlib import Path
from curvlab.options import Incidental

class Source:
    def __init__(
        self,
        place: Path | None = None,
        text: str = "",
        several: tuple[str, ...] = (),
        nested: dict[str, str] | None = None,
        cache: Incidental[str] = "",
        data_dir: str = "",
        mirror: str = "",
    ) -> None: ...
"""
DECISIVE_PLACES = [
    {"place": "tables"},
    {"place": "{here}/tables"},
    {"text": "./tables"},
    {"text": "{here}/tables"},
    {"text": "tables/x.csv"},
    {"text": "x.csv"},
    {"several": ["tables/x.csv", "other.csv"]},
    {"several": ["other.csv", "./tables"]},
    {"nested": {"train": "tables/x.csv"}},
    {"nested": {"train": "./tables"}},
    {"unknown": "./tables"},
]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """`plugin(options)`: checksums of the files that these options of a plug-in's source name."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "other.csv").write_text("1")
    name = f"plugin{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    trust({"_target_": f"{name}.Source"})  # as the command line trusts what it names

    def contents(options, number):
        for place in ("tables/x.csv", "x.csv"):
            (tmp_path / place).write_text(str(number))
        text = json.dumps(options).replace("{here}", tmp_path.as_posix())
        source = {"_target_": f"{name}.Source", **json.loads(text)}
        return user_files({"dataset": {"name": "mine", "source": source}})

    return contents


@pytest.mark.parametrize("options", DECISIVE_PLACES, ids=str)
def test_files_and_folders_that_options_of_a_plugin_name_are_identified_by_content(plugin, options):
    hashes = [plugin(options, number) for number in (1, 2, 1)]
    assert hashes[0] == hashes[2] != hashes[1]
    assert None not in hashes[0].values()


@pytest.mark.parametrize("name", ["cache", "data_dir", "mirror"])
def test_a_plugins_folder_that_decides_nothing_is_not_read(plugin, name):
    assert plugin({name: "./tables"}, 1) == {}


def test_a_word_that_is_also_the_name_of_a_folder_is_a_word(plugin):
    assert plugin({"text": "tables"}, 1) == {}


@pytest.mark.parametrize("part", ["train", "valid", "test"])
def test_an_edit_of_triples_is_another_run(part, tmp_path):
    write_triples(tmp_path / "k")
    words = ("dataset=kg_folder", "dataset.source.path=k", "model=distmult")
    before = hash_of(*words)
    assert hash_of("dataset=k", "model=distmult") == before
    (tmp_path / "k" / f"{part}.txt").write_text("a\tr\tb\nb\tr\td\n")
    assert hash_of(*words) != before


@pytest.mark.parametrize(
    "words",
    [
        ["dataset=graph_folder"],
        ["dataset=graph_folder", "dataset.path=nowhere"],
        ["dataset=graph_folder", "dataset.source.path=empty"],
        ["dataset=graph_folder", "dataset.path=g", "dataset.source.nodes=nowhere.csv"],
        ["dataset=networkx", "dataset.source.path=nowhere.gml"],
        ["dataset=pyg", "dataset.source.path=nowhere.pt"],
        ["dataset=kg_folder", "dataset.source.path=empty", "model=distmult"],
    ],
    ids=" ".join,
)
def test_files_that_are_not_there_are_an_error(words, tmp_path):
    write_graph(tmp_path / "g")
    (tmp_path / "empty").mkdir()
    config = composed("model=gcn", *words)
    files = stored_config(config)["files"]
    assert "missing" in files.values()
    with pytest.raises(UsageError, match=r"nowhere|empty|path=null"):
        check_user_files(config, files)


def test_graphs_of_one_name_have_folders_of_their_own(tmp_path):
    for version in ("v1", "v2"):
        (tmp_path / version).mkdir()
        write_graph(tmp_path / version / "net", label=version)
    folders = [
        data_folder(_root_=composed("model=gcn", "dataset=graph_folder", f"dataset.path={v}/net"))
        for v in ("v1", "v2")
    ]
    assert folders[0] != folders[1]
    assert all(folder.startswith("net-") for folder in folders)
    assert data_folder(_root_=composed("dataset=texas")) == "texas"


def test_a_table_whose_name_begins_with_edges_is_read_itself(tmp_path):
    write_graph(tmp_path / "g")
    (tmp_path / "g" / "edges.v2.csv").write_text("a,b\n")
    assert GraphFolder(path="g/edges.v2.csv").load().num_edges == 2
    assert GraphFolder(path="g/edges.csv").load().num_edges == 6
    assert hash_of("dataset=g/edges.v2.csv") != hash_of("dataset=g/edges.csv")


class Renamed(GraphFolder):
    """A reader in another package."""


class FromFile(Generated):
    """A source in another package with a file that nothing marks."""

    def __init__(self, table: str) -> None:
        self.table = table


@pytest.mark.parametrize(("cls", "key"), [(Renamed, "path"), (FromFile, "table")])
def test_sources_of_other_packages_are_identified_by_content(cls, key, tmp_path):
    write_graph(tmp_path / "g")
    config = composed("model=gcn", "dataset=web_edu")
    source = {"_target_": f"{__name__}.{cls.__name__}", key: str(tmp_path / "g" / "edges.csv")}
    config.dataset.source = source
    before = identity_hash(stored_config(config))
    (tmp_path / "g" / "edges.csv").write_text("a,b\n")
    assert identity_hash(stored_config(config)) != before


@pytest.mark.parametrize("name", ["cora", "chameleon", "web_edu", "cora__per_class"])
def test_a_shipped_name_stands_for_its_files_and_for_no_others(name):
    config = stored_config(composed(f"dataset={name}"))
    assert dataset_files(config) == {}
    source = config["dataset"]["source"]
    files = source.get("files") or [source["versions"]["filtered"]["file"]]
    files[0]["sha256"] = "0" * 64
    assert dataset_files(config)


def test_a_data_set_of_the_users_own_is_identified_by_its_files():
    config = stored_config(composed("dataset=web_edu"))
    config["dataset"]["name"] = "mine"
    one = dataset_files(config)
    config["dataset"]["source"]["files"][0]["sha256"] = "0" * 64
    assert one
    assert dataset_files(config) != one
