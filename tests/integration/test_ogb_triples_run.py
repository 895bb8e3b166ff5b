"""Archives in OGB's format of triples, made by the test; its evaluator gives the same metrics."""

import gzip
import sys
import zipfile

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import curvlab
from curvlab.errors import UsageError
from written import saved, zipped

TYPES = {"disease": 3, "drug": 12, "protein": 5}
RELATIONS = ["disease-protein", "drug-disease", "protein-protein"]
SIZES = {"train": 40, "valid": 6, "test": 9}
SAMPLES = 4
MAIN = ("head", "relation", "tail")


def mapping(first, second, names):
    """In an order of its own, since a name's number stands before it."""
    rows = [f"{first},{second}", *sorted(f"{i},{name}" for i, name in enumerate(names))]
    return gzip.compress("\n".join(rows).encode(), mtime=0)


def biokg():
    """Its files, and by part the triples and negatives as global numbers."""
    rng, starts = np.random.default_rng(0), {"disease": 0, "drug": 3, "protein": 15}
    files = {
        f"mapping/{kind}_entidx2name.csv.gz": mapping("ent idx", "ent name", range(count))
        for kind, count in TYPES.items()
    }
    files["mapping/relidx2relname.csv.gz"] = mapping("rel idx", "rel name", RELATIONS)
    whole = {}
    for part, size in SIZES.items():
        relation = np.arange(size) % 3
        pairs = [RELATIONS[r].split("-") for r in relation]
        content, found = {"relation": relation}, {"relation": relation}
        for end, kinds in zip(("head", "tail"), zip(*pairs, strict=True), strict=True):
            content[f"{end}_type"] = list(kinds)
            high = np.array([TYPES[kind] for kind in kinds])
            start = np.array([starts[kind] for kind in kinds])
            content[end] = rng.integers(0, high)
            found[end] = content[end] + start
            if part != "train":
                content[f"{end}_neg"] = rng.integers(0, high[:, None], (size, SAMPLES))
                found[f"{end}_neg"] = content[f"{end}_neg"] + start[:, None]
        files[f"split/random/{part}.pt"] = saved(content, pickle_protocol=2)
        whole[part] = found
    return files, whole


def wikikg2():
    rng, count, whole = np.random.default_rng(1), 20, {}
    names = [f"Q{i}" for i in range(count)]
    files = {
        "mapping/nodeidx2entityid.csv.gz": mapping("node idx", "entity id", names),
        "mapping/reltype2relid.csv.gz": mapping("reltype", "rel id", ["P1", "P2", "P3"]),
    }
    for part, size in SIZES.items():
        whole[part] = {key: rng.integers(0, count, size) for key in ("head", "tail")}
        whole[part]["relation"] = np.arange(size) % 3
        if part != "train":
            for end in ("head", "tail"):
                whole[part][f"{end}_neg"] = rng.integers(0, count, (size, SAMPLES))
        files[f"split/time/{part}.pt"] = saved(whole[part], pickle_protocol=4)
    return files, whole


MADE = {"ogbl_biokg": ("biokg", biokg), "ogbl_wikikg2": ("wikikg-v2", wikikg2)}


@pytest.fixture
def archive(tmp_path):
    """`archive(name)`: words of a run on such an archive, and its triples."""

    def make(name):
        top, content = MADE[name]
        files, whole = content()
        path = tmp_path / "mirror/OGB" / name / "raw" / f"{top}.zip"
        path.parent.mkdir(parents=True)
        path.write_bytes(zipped({f"{top}/{place}": raw for place, raw in files.items()}))
        found = {"entities": 20, "relations": 3, "train": 40, "val": 6, "test": 9}
        words = [f"dataset.source.statistics.{key}={value}" for key, value in found.items()]
        place = f"paths.mirror={tmp_path / 'mirror'}"
        return (f"dataset={name}", place, *words, "trainer.plots=false"), whole

    return make


@pytest.fixture
def evaluator(monkeypatch):
    monkeypatch.setitem(sys.modules, "outdated", None)  # which asks the package index
    from ogb.linkproppred import Evaluator

    return Evaluator


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_metrics_are_the_evaluators(run_here, archive, tmp_path, evaluator, name, inverse):
    """Of both sides: by the inverse relation where the model has one, else by other heads."""
    words, whole = archive(name)
    sampling = ("task.training=negative_sampling", "task.loss=bce", "task.negatives=4")
    both = f"task.inverse_relations={str(inverse).lower()}"
    result = run_here(*words, *sampling, both, "model=rotate", "model.dim=8", "trainer.epochs=2")
    run = curvlab.load(tmp_path / "run")
    scores = run.model.triple_scores
    test = {key: torch.from_numpy(column) for key, column in whole["test"].items()}
    wide = {key: test[key].unsqueeze(1).expand(-1, 1 + SAMPLES) for key in MAIN}
    lists = []
    for side in ("tail", "head"):
        head, relation, tail = (wide[key] for key in MAIN)
        ends = torch.cat([test[side].unsqueeze(1), test[f"{side}_neg"]], 1)
        if side == "tail":
            tail = ends
        elif inverse:
            head, relation, tail = tail, relation + 3, ends
        else:
            head = ends
        flat = {"head": head.flatten(), "relation": relation.flatten(), "tail": tail.flatten()}
        with torch.no_grad():
            found = scores(Data(**flat)).view_as(ends)
        content = {"y_pred_pos": found[:, 0], "y_pred_neg": found[:, 1:]}
        lists.append(evaluator(name.replace("_", "-")).eval(content))
    for theirs, ours in (("mrr", "mrr"), ("hits@1", "hits1"), ("hits@3", "hits3")):
        right = torch.cat([part[f"{theirs}_list"] for part in lists]).mean()
        assert result.metrics["test"][ours] == pytest.approx(float(right), rel=1e-6)
    assert result.metrics["test"]["tail_mrr"] == pytest.approx(
        float(lists[0]["mrr_list"].mean()), rel=1e-6
    )
    assert "raw_mrr" not in result.metrics["test"]


def test_names_are_those_of_the_mapping(run_here, archive, tmp_path):
    words, whole = archive("ogbl_biokg")
    run_here(*words, "model=distmult", "trainer.epochs=1")
    run = curvlab.load(tmp_path / "run")
    names = run.ids()
    assert names == [f"{kind}:{i}" for kind, count in TYPES.items() for i in range(count)]
    train = whole["train"]
    head, relation, tail = (int(train[key][0]) for key in MAIN)
    found = run.predict(queries=[(names[head], RELATIONS[relation], None)], k=20)
    assert found.set_index("tail").loc[names[tail], "known"]


@pytest.mark.parametrize("why", ["BadZipFile", "asks for io.open"])
def test_an_archive_of_another_kind_is_one_sentence(run_here, archive, tmp_path, why):
    words, _ = archive("ogbl_biokg")
    (path,) = tmp_path.rglob("biokg.zip")
    if why == "BadZipFile":
        path.write_bytes(b"no archive")
    else:
        with zipfile.ZipFile(path, "a") as files, pytest.warns(UserWarning, match="Duplicate"):
            files.writestr("biokg/split/random/train.pt", saved({"head": open}, pickle_protocol=2))
    with pytest.raises(UsageError, match=rf"raw files of ogbl_biokg in .* cannot be read .*{why}"):
        run_here(*words, "model=distmult")
