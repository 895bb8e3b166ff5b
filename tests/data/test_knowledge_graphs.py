"""Knowledge graphs: published ones, folders of one's own, a generated one; known tails."""

import logging
from collections import Counter

import pytest
import torch

from curvlab.building import build
from curvlab.data.synthetic_triples import SyntheticKnowledgeGraph
from curvlab.data.triple_batches import TripleDataModule, with_inverses
from curvlab.data.triples import MASKS, KnownTails, read_triples
from curvlab.errors import UsageError

TRAIN = "a\tlikes\tb\nb\tlikes\tc\nc\tknows\ta\na\tknows\tc\n"


@pytest.fixture
def folder(described, tmp_path):
    """`folder(train, valid, test, unseen=...)`: the source of a folder with these files."""

    def make(train=TRAIN, valid="b\tlikes\ta\n", test="c\tlikes\tb\n", **options):
        place = tmp_path / "kg"
        place.mkdir(exist_ok=True)
        for name, text in (("train", train), ("valid", valid), ("test", test)):
            if text is not None:
                (place / f"{name}.txt").write_text(text)
        changes = {f"source.{key}": value for key, value in options.items()}
        return build(described("kg_folder", **{"source.path": str(place)}, **changes).source)

    return make


def module(source, **options):
    defaults = {"transforms": [], "steps_per_epoch": 1, "seed": 0, "size": 7, "accumulate": 1}
    defaults |= {"shuffle": "triples", "inverse_relations": False}
    return TripleDataModule(source=source, **{**defaults, **options})


def as_set(data, part):
    head, tail = data.edge_index[:, data[MASKS[part]]].tolist()
    return set(zip(head, data.edge_type[data[MASKS[part]]].tolist(), tail, strict=True))


def test_a_folder_is_numbered_by_first_appearance(folder):
    data = folder().load()
    assert (data.num_nodes, data.relation_names) == (3, ["likes", "knows"])
    assert as_set(data, "train") == {(0, 0, 1), (1, 0, 2), (2, 1, 0), (0, 1, 2)}
    assert as_set(data, "val") == {(1, 0, 0)}
    assert as_set(data, "test") == {(2, 0, 1)}


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({"test": None}, "test.txt is missing"),
        ({"train": "a\tlikes\tb\na likes b\n"}, "train.txt, line 2: .* found 1 column in"),
        ({"valid": "a\tb\tc\td\n"}, "valid.txt, line 1: .* found 4 columns"),
        ({"valid": "\n"}, "valid.txt has no triples"),
        ({"test": "a\tlikes\tz\n"}, "1 .* test triples have one of 1 entities .* 'z'.*unseen=keep"),
        ({"test": "a\thates\tb\n"}, "1 relations are in validation or test .*'hates'"),
        ({"unseen": "maybe"}, "unseen=maybe must be refuse or keep"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(folder, files, answer):
    with pytest.raises(UsageError, match=answer) as refused:
        folder(**files).load()
    assert len(str(refused.value).splitlines()) == 1


def test_unseen_entities_can_be_kept(folder):
    data = folder(test="a\tlikes\tz\n", unseen="keep").load()
    assert data.num_nodes == 4
    assert as_set(data, "test") == {(0, 0, 3)}


def test_repeated_triples_are_counted_in_a_warning(folder, caplog):
    with caplog.at_level(logging.WARNING):
        folder(train=TRAIN + "a\tlikes\tb\n", test="a\tlikes\tb\nb\tlikes\ta\n").load()
    assert "1 triples stand more than once" in caplog.text
    assert "2 triples stand in more than one part" in caplog.text


@pytest.mark.parametrize("name", ["fb15k237", "wn18rr"])
def test_a_published_graph_is_its_files(name, described, mirror, tmp_path):
    """PyTorch Geometric's triples, by the names that they have in the files."""
    source = build(described(name, mirror).source)
    data = source.load()
    paths = source.download()
    numbers = []
    for path, mask in zip(paths, MASKS.values(), strict=True):
        named = Counter(relation for _, relation, _ in read_triples(path))
        counts = torch.bincount(data.edge_type[data[mask]], minlength=len(data.relation_names))
        assert named == +Counter(dict(zip(data.relation_names, counts.tolist(), strict=True)))
        numbers.append(int(counts.sum()))
    assert numbers == [source.statistics[part] for part in MASKS]
    assert source.load().relation_names == data.relation_names  # of the cache


def test_a_damaged_file_of_a_published_graph_is_named(described, mirror, tmp_path):
    config = described("wn18rr", mirror)
    for file in config.source.files:
        file.sha256 = None
    source = build(config.source)
    paths = source.download()
    paths[1].write_text("one\ttwo\n")
    with pytest.raises(UsageError, match=r"valid.txt, line 1: .* found 2 columns"):
        source.load()


def test_the_generated_graph_has_the_patterns_that_it_says():
    data = SyntheticKnowledgeGraph(groups=6, size=5, seed=0).load()
    triples = set().union(*(as_set(data, part) for part in MASKS))
    assert sum(len(as_set(data, part)) for part in MASKS) == len(triples)
    by_name = {
        name: {(h, t) for h, r, t in triples if data.relation_names[r] == name}
        for name in data.relation_names
    }
    for name in ("sibling", "counterpart"):
        assert {(t, h) for h, t in by_name[name]} == by_name[name]
    assert by_name["parent"] < by_name["ancestor"]
    assert not by_name["ancestor"] & {(t, h) for h, t in by_name["ancestor"]}
    following = dict(by_name["next"])
    assert {(h, following[following[h]]) for h in following} == by_name["after_next"]
    sizes = [len(as_set(data, part)) / len(triples) for part in MASKS]
    assert sizes == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


@pytest.mark.parametrize("shuffle", ["triples", "pairs"])
def test_a_pass_sees_every_training_triple_once_and_a_query_once_a_batch(shuffle):
    data = module(SyntheticKnowledgeGraph(8, 5, 0), shuffle=shuffle)
    seen, queries = [], 0
    for (part,) in data.rounds(0, 1):
        batch = data.batch(part)
        assert len(part) <= 7
        queries += len(batch.head)
        pairs = set(zip(batch.head.tolist(), batch.relation.tolist(), strict=True))
        assert len(pairs) == len(batch.head)
        head, relation = batch.head[batch.query], batch.relation[batch.query]
        seen += zip(head.tolist(), relation.tolist(), batch.tail.tolist(), strict=True)
    assert len(data.rounds(0, 1)) == data.steps_per_pass
    assert len(seen) == len(set(seen))
    assert set(seen) == as_set(data.graph, "train")
    head, relation, _ = data.train_triples
    pairs = len(torch.stack([head, relation]).unique(dim=1).T)
    if shuffle == "pairs":  # only those at the end of a batch are scored twice
        assert queries <= pairs + data.steps_per_pass
    again, other = data.rounds(0, 1), data.rounds(1, 1)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(again, data.rounds(0, 1), strict=True))
    assert not all(torch.equal(a[0], b[0]) for a, b in zip(again, other, strict=True))


def test_processes_share_out_a_pass():
    data = module(SyntheticKnowledgeGraph(8, 5, 0))
    parts = torch.cat([part for parts in data.rounds(3, 2) for part in parts])
    assert torch.equal(parts.sort().values, torch.arange(len(data.train_triples[0])))
    with pytest.raises(UsageError, match="do not make 1000000 batches"):
        data.rounds(0, 10**6)
    with pytest.raises(UsageError, match="must be one of triples, pairs"):
        module(data.source, shuffle="heads")


def test_inverse_relations_double_the_triples():
    data = SyntheticKnowledgeGraph(4, 4, 0).load()
    both = module(SyntheticKnowledgeGraph(4, 4, 0), inverse_relations=True)
    assert both.num_relations == 12
    for part in MASKS:
        there = as_set(data, part)
        assert as_set(both.graph, part) == there | {(t, r + 6, h) for h, r, t in there}
    assert with_inverses(data).relation_names[6] == "sibling (inverse)"


def test_known_tails_are_those_of_a_dictionary():
    generator = torch.Generator().manual_seed(0)
    head, tail = torch.randint(0, 9, (2, 200), generator=generator)
    relation = torch.randint(0, 4, (200,), generator=generator)
    known = KnownTails(head, relation, tail, num_relations=5)
    expected: dict[tuple[int, int], set[int]] = {}
    for h, r, t in zip(head.tolist(), relation.tolist(), tail.tolist(), strict=True):
        expected.setdefault((h, r), set()).add(t)
    pairs = torch.cartesian_prod(torch.arange(11), torch.arange(5))
    query, tails = known.of(*pairs.T)
    assert torch.equal(query, query.sort().values)
    for i, (h, r) in enumerate(pairs.tolist()):
        found = tails[query == i].tolist()
        assert found == sorted(expected.get((h, r), set()))
