"""What a run has learned is used without its folder, elsewhere and on another graph."""

import shutil
from importlib import import_module
from itertools import pairwise

import pandas as pd
import pytest
import tiny_runs
import torch
from tiny_runs import FAST, TINY, TREE

import curvlab
from curvlab.errors import UsageError
from curvlab.models.cat import CAT
from curvlab.models.triples.ball import RotH
from curvlab.models.triples.flat import RotatE
from curvlab.results.folder import BEST
from curvlab.run.load import WEIGHTS, shipped_runs

CLASSES = (*TREE, "trainer.plots=false", "optimizer.lr=0.05")
TRIPLES = (*tiny_runs.TRIPLES, "trainer.epochs=12", "trainer.plots=false", "optimizer.lr=0.5")


OLD = {"state_dict": {}, "config": {}, "config_hash": "", "schema": 5}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "is damaged"),
        ({"state_dict": {}}, r"is not the best\.ckpt of a run"),
        (OLD, r"it is of schema 5, and curvlab reads schemas 6 to \d+\): train it again"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, why):
    path = tmp_path / "best.ckpt"
    path.write_bytes(b"no weights") if content is None else torch.save(content, path)
    with pytest.raises(UsageError, match=why):
        curvlab.load(path)


def test_a_file_of_weights_is_enough(run_here, tmp_path, monkeypatch):
    """Model, names and predictions come from `best.ckpt` alone, in another folder, without data."""
    run_here(*CLASSES, "model=hgcn")
    whole = curvlab.load(tmp_path / "run")
    points, score = whole.embed(), whole.evaluate()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    shutil.move(tmp_path / "run" / BEST, "weights.pt")
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
    shutil.rmtree(tmp_path / "run")
    run = curvlab.load("weights.pt")
    assert run.result is None
    assert isinstance(run.model, torch.nn.Module)
    assert not run.model.training
    graph = whole.data.source.load()
    assert torch.equal(run.embed(graph), points)
    assert "data" not in vars(run)  # nothing was read
    assert type(run.space) is type(whole.space)
    assert run.evaluate() == score == whole.result.metrics


def test_an_inductive_model_takes_another_graph(run_here, tmp_path):
    """Its rows follow the nodes when they are numbered otherwise; a part of them is a graph too.

    As many test nodes are predicted right as the accuracy says.
    """
    result = run_here(*CLASSES, "model=gcn", "dataset.metric=accuracy")
    run = curvlab.load(tmp_path / "run")
    assert not run.transductive_reason
    found = run.predict()
    probabilities = torch.tensor(found.filter(like="p_").to_numpy())
    torch.testing.assert_close(probabilities.sum(1), torch.ones(len(found)))
    right = torch.tensor(found["predicted"].astype(int).to_numpy()) == run.data.graph.y
    share = 100 * right[run.data.graph.test_mask].double().mean()
    assert float(share) == pytest.approx(result.metrics["test"]["accuracy"], abs=1e-4)
    graph = run.data.source.load()
    order = torch.randperm(graph.num_nodes)
    other = graph.clone()
    other.x, other.edge_index = graph.x[order], order.argsort()[graph.edge_index]
    torch.testing.assert_close(run.embed(other), run.embed()[order])
    part = graph.subgraph(torch.arange(20))
    assert run.predict(part).shape == (20, 6)  # with label and part
    wide = graph.clone()
    wide.x = torch.cat([graph.x, graph.x], 1)
    with pytest.raises(UsageError, match="24 features, and the model was trained on 12"):
        run.embed(wide)
    directed = graph.clone()
    directed.edge_index = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    with pytest.raises(UsageError, match="to_undirected"):
        run.embed(directed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((*CLASSES, "model=lds"), "a parameter for every pair"),
        ((*CLASSES, "model=fpst", "model.eigenvectors=4"), "eigenvectors"),
        (FAST, "a column for every node"),
        ((*TRIPLES, "model=distmult"), "an embedding for every entity"),
        ((*FAST[1:], "dataset=graph_folder"), "made for it"),
    ],
)
def test_a_model_that_is_tied_to_its_graph_says_why(run_here, tmp_path, capsys, words, why):
    folder = own_graph(tmp_path / "bare", features=False)
    run_here(*words, *([f"dataset.path={folder}"] if "graph_folder" in words[-1] else []))
    run = curvlab.load(tmp_path / "run")
    with pytest.raises(UsageError, match=why) as refusal:
        run.embed(run.data.graph)
    assert len(str(refusal.value)) < 400
    words = [str(tmp_path / "run"), "--data", str(folder)]
    assert import_module("curvlab.cli.export").main(words) == 2
    assert why in capsys.readouterr().err


def own_graph(folder, features, shift=0.0):
    """A path of 60 nodes in files; the first feature decides the class."""
    folder.mkdir()
    names = [f"n{i}" for i in range(60)]
    edges = pairwise(names)
    (folder / "edges.csv").write_text("\n".join(f"{a},{b}" for a, b in edges))
    if features:
        rows = [f"{name},{'ab'[i // 30]},{i + shift},{i % 7}" for i, name in enumerate(names)]
        (folder / "nodes.csv").write_text("id,label,height,width\n" + "\n".join(rows))
    return folder


def test_features_of_another_graph_are_scaled_as_those_of_the_first(run_here, tmp_path, capsys):
    """A file of weights has their mean and deviation; names are those of the files."""
    first = own_graph(tmp_path / "first", features=True)
    words = (
        "dataset=graph_folder",
        f"dataset.path={first}",
        "dataset.features.scale=standard",
        "split=random_60_20_20",
        "model=gcn",
        "trainer.max_steps=40",
        "trainer.accelerator=cpu",
        "trainer.plots=false",
        "optimizer.lr=0.05",
    )
    result = run_here("task=node_classification", *words)
    run = curvlab.load(tmp_path / "run" / BEST)
    found = run.predict(nodes=["n0", "n59"])
    assert found.columns.tolist() == ["node", "predicted", "label", "part", "p_a", "p_b"]
    of_all = run.predict().set_index("node")
    for part in ("train", "val", "test"):
        assert (of_all["part"] == part).sum() == run.data.graph[f"{part}_mask"].sum()
    assert found["node"].tolist() == ["n0", "n59"]
    x = run.data.source.load().x[run.data.graph.train_mask.cpu()]
    scaling = run.checkpoint["normalisation"][0]["fitted"]
    torch.testing.assert_close(scaling["mean"], x.mean(0))
    same, higher = (own_graph(tmp_path / f"by{by}", True, by) for by in (0, 1000))
    capsys.readouterr()
    evaluate = import_module("curvlab.cli.evaluate").main
    assert evaluate([str(tmp_path / "run"), "--data", str(same)]) == 0
    of_same = capsys.readouterr().out
    assert evaluate([str(tmp_path / "run"), "--data", str(higher)]) == 0
    assert of_same.replace("by0", "by1000") != capsys.readouterr().out
    assert result.score > 50


def test_links_are_the_likeliest_that_are_none_yet(run_here, tmp_path, monkeypatch):
    run_here(*CLASSES, "task=link_prediction", "model=gcn")
    run = curvlab.load(tmp_path / "run")
    found = run.predict(nodes=["3"], k=5)
    known = run.predict(nodes=["3"], k=run.data.num_nodes, known=True)
    assert found["node"].tolist() == ["3"] * 5
    assert found["probability"].is_monotonic_decreasing
    assert len(known) == run.data.num_nodes - 1
    neighbours = set(known[known["known"]]["neighbour"])
    edges = run.data.source.load().edge_index
    assert neighbours == {str(node) for node in edges[1, edges[0] == 3].tolist()}
    assert not neighbours & set(found["neighbour"])
    best = known[~known["known"]].nlargest(5, "score")["neighbour"].tolist()
    assert found["neighbour"].tolist() == best
    with pytest.raises(UsageError, match="no node '900'"):
        run.predict(nodes=["900"])
    with pytest.raises(UsageError, match="task=link_prediction does not"):
        run.predict(unlabelled=True)
    whole = run.predict(k=4)
    monkeypatch.setattr("curvlab.tasks.likeliest_links.ENTRIES", 2000)  # five nodes at a time
    monkeypatch.setattr("curvlab.tasks.likeliest_links.TILE", 400)  # not all neighbours at a time
    assert run.predict(k=4)["score"].tolist() == pytest.approx(whole["score"].tolist())


def test_tails_and_heads_are_completed_by_name(run_here, tmp_path):
    run_here(*TRIPLES, "model=complex", "task.inverse_relations=true")
    run = curvlab.load(tmp_path / "run")
    graph, names = run.data.graph, run.ids()
    relation = run.vocabulary.relations[0]
    head, tail = (names[i] for i in graph.edge_index[:, graph.edge_type == 0][:, 0].tolist())
    found = run.predict(queries=[(head, relation, None), (None, relation, tail)], k=len(names))
    tails = found[found["head"] == head].groupby("tail")["known"].any()
    assert tails[tail]
    assert found.groupby("rank").size().max() == 2
    assert found["known"].sum() < len(found)
    rest = run.predict(queries=[(head, relation, None)], k=len(names), known=False)
    assert not rest["known"].any()
    assert tail not in set(rest["tail"])
    (row,) = run.predict(queries=[(head, relation, tail)]).to_dict("records")
    answers = found.iloc[: len(names)]  # of the first query
    (same,) = answers[answers["tail"] == tail].to_dict("records")
    for name in set(row) - {"rank"}:
        tolerance = {"rel": 1e-4} if isinstance(row[name], float) else {}
        assert row[name] == pytest.approx(same[name], **tolerance), name
    others = rest["score"] > row["score"]
    assert row["rank"] == 1 + others.sum() + (rest["score"] == row["score"]).sum() / 2
    for wrong in [("nobody", relation, None), (head, "none", None), (None, relation, None)]:
        with pytest.raises(UsageError):
            run.predict(queries=[wrong])


@pytest.mark.parametrize("both", ["true", "false"])
def test_relations_are_completed_by_name(run_here, tmp_path, both):
    run_here(*TRIPLES, "model=distmult", f"task.inverse_relations={both}")
    run = curvlab.load(tmp_path / "run")
    names, relations = run.ids(), run.vocabulary.relations
    count = len(relations) // 2 if both == "true" else len(relations)
    head, tail = (names[i] for i in run.data.graph.edge_index[:, 0].tolist())
    found = run.predict(queries=[(head, None, tail)], k=100)
    assert {*found["relation"]} == {*relations[:count]}
    assert found["score"].is_monotonic_decreasing
    for row in found.to_dict("records"):
        (triple,) = run.predict(queries=[(head, row["relation"], tail)]).to_dict("records")
        for name in ("score", "probability"):
            assert row[name] == pytest.approx(triple[name], rel=1e-4)
        assert row["known"] == triple["known"]
    assert found["known"].any()
    assert not run.predict(queries=[(head, None, tail)], known=False)["known"].any()
    for wrong in [(head, None, None), ("nobody", None, tail), (None, None, None)]:
        with pytest.raises(UsageError):
            run.predict(queries=[wrong])


def test_nearest_nodes_of_a_reconstruction(run_here, tmp_path):
    run_here(*TINY, "model=mlp", "trainer.plots=false")
    run = curvlab.load(tmp_path / "run")
    found = run.predict(nodes=["7"], k=3, known=True)
    x = run.embed().double()
    distances = run.space.dist(x[7:8].expand_as(x), x)
    distances[7] = torch.inf
    nearest = distances.topk(3, largest=False)
    assert found["neighbour"].tolist() == [str(i) for i in nearest.indices.tolist()]
    assert found["distance"].tolist() == pytest.approx(nearest.values.tolist(), rel=1e-4)


def test_a_reconstruction_is_scored_on_another_graph(run_here, tmp_path, capsys):
    """The same graph with other names has the reported score; without some edges another one."""
    first = own_graph(tmp_path / "first", features=True)
    small = ("model=gcn", "trainer.max_steps=10", "trainer.accelerator=cpu", "trainer.plots=false")
    words = ("task=reconstruction", "dataset=graph_folder", f"dataset.path={first}", *small)
    score = run_here(*words).score
    evaluate = import_module("curvlab.cli.evaluate").main
    found = []
    for lines in (60, 30):
        edges = (first / "edges.csv").read_text().splitlines()[:lines]
        (first / "edges.csv").write_text("\n".join(edges))
        capsys.readouterr()
        assert evaluate([str(tmp_path / "run"), "--data", str(first)]) == 0
        found.append(float(capsys.readouterr().out.split("map")[1].split()[0]))
    assert found[0] == pytest.approx(score, abs=1e-4)
    assert found[1] != pytest.approx(score, abs=1e-2)


def test_each_system_ships_a_run_and_all_are_small():
    assert {name.split("/")[0] for name in shipped_runs()} == {
        "cat",
        "fpst",
        "hypformer",
        "lrn",
        "polyformer",
    }
    sizes = [file.stat().st_size for file in WEIGHTS.glob("*/*.ckpt")]
    assert max(sizes) < 1e6
    assert sum(sizes) < 3e6


@pytest.mark.parametrize("name", shipped_runs())
def test_a_shipped_run_evaluates_to_its_score(name, mirror, tmp_path):
    run = curvlab.load(name, data_dir=str(tmp_path), mirror=str(mirror))
    found = run.evaluate()["test"]
    # Threads and processors round sums in another order: a node or two may change their class.
    stated = run.checkpoint["metrics"]["test"]
    assert found == pytest.approx({name: stated[name] for name in found}, abs=0.2)
    assert run.task.score in found
    assert torch.isfinite(run.embed()).all()


def test_weights_with_an_option_that_is_gone_load(tmp_path, caplog):
    kept = torch.load(WEIGHTS / "hypformer" / "cora.ckpt", weights_only=True)
    kept["config"]["model"]["attention"]["phi_on_value"] = False
    torch.save(kept, tmp_path / "older.ckpt")
    run = curvlab.load(tmp_path / "older.ckpt")
    assert "no option phi_on_value=False" in caplog.text
    weights = run.model.state_dict()
    assert all(torch.equal(v, kept["state_dict"][f"encoder.{k}"]) for k, v in weights.items())


def test_an_unknown_name_is_answered_by_the_names_there_are(tmp_path):
    with pytest.raises(UsageError, match="fpst/web_edu"):
        curvlab.load("fpst/nowhere")


@pytest.mark.parametrize("both", ["true", "false"])
def test_exported_relations_and_entities_score_as_the_model(run_here, tmp_path, both):
    run_here(*TRIPLES, "model=distmult", f"task.inverse_relations={both}")
    export = import_module("curvlab.cli.export").main
    for words in ([], ["--relations"]):
        assert (
            export([str(tmp_path / "run"), *words, "--output", f"{tmp_path}/{len(words)}.csv"]) == 0
        )
    entities, relations = (pd.read_csv(tmp_path / f"{i}.csv", dtype={"id": str}) for i in (0, 1))
    entities, relations = entities.set_index("id"), relations.set_index("id")
    run = curvlab.load(tmp_path / "run")
    assert relations.index.tolist() == list(run.vocabulary.relations)
    names, graph = run.ids(), run.data.graph
    head, tail = (names[i] for i in graph.edge_index[:, 0].tolist())
    relation = run.vocabulary.relations[int(graph.edge_type[0])]
    (row,) = run.predict(queries=[(head, relation, tail)]).to_dict("records")
    product = entities.loc[head].to_numpy() * relations.loc[relation].to_numpy()
    assert row["score"] == pytest.approx(product @ entities.loc[tail].to_numpy(), rel=1e-4)


@pytest.mark.parametrize(
    ("model", "tables"),
    [
        (RotatE(5, 4), {"angles"}),
        (RotH(5, 4), {"translations", "rotations"}),
        (CAT(num_entities=5, num_relations=4), {"relations"}),
    ],
    ids=["RotatE", "RotH", "CAT"],
)
def test_relations_have_a_row_each_with_all_their_parameters(model, tables):
    assert model.relation_tables.keys() >= tables
    assert {len(values) for values in model.relation_tables.values()} == {4}
