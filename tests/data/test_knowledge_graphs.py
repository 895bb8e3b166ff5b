"""Knowledge graphs: published ones, folders of one's own, a generated one; known tails."""

import logging
from collections import Counter
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch

from curvlab.data.datasets.synthetic_triples import SyntheticKnowledgeGraph
from curvlab.data.datasets.triple_folder import TripleFolder, draw_triples
from curvlab.data.datasets.triples import MASKS, KnownTails, read_triples
from curvlab.data.loaders.triple_batches import TripleDataModule, add_inverses
from curvlab.errors import UsageError

TRAIN = "a\tlikes\tb\nb\tlikes\tc\nc\tknows\ta\na\tknows\tc\n"


@pytest.fixture
def folder(source, tmp_path):
    """`folder(train, valid, test, key=...)`: the source of a folder with these files."""

    def make(train=TRAIN, valid="b\tlikes\ta\n", test="c\tlikes\tb\n", **options):
        place = tmp_path / "kg"
        place.mkdir(exist_ok=True)
        for name, text in (("train", train), ("valid", valid), ("test", test)):
            if text is not None:
                raw = text if isinstance(text, bytes) else text.encode()
                (place / f"{name}.txt").write_bytes(raw)
        changes = {f"source.{key}": value for key, value in options.items()}
        return source("kg_folder", **{"source.path": str(place)}, **changes)

    return make


def module(source, **options):
    defaults = {"transforms": [], "steps_per_epoch": 1, "seed": 0, "size": 7, "accumulate": 1}
    defaults |= {"shuffle": "triples", "inverse_relations": False}
    return TripleDataModule(source=source, **{**defaults, **options})


def as_set(data, part):
    head, tail = data.edge_index[:, data[MASKS[part]]].tolist()
    return set(zip(head, data.edge_type[data[MASKS[part]]].tolist(), tail, strict=True))


def named(data, part="train"):
    """The triples of a part by their names."""
    entities, relations = data.vocabulary.entities, data.vocabulary.relations
    return {(entities[h], relations[r], entities[t]) for h, r, t in as_set(data, part)}


def test_a_folder_is_numbered_by_first_appearance(folder):
    data = folder().load()
    assert (data.num_nodes, data.relation_names) == (3, ["likes", "knows"])
    assert as_set(data, "train") == {(0, 0, 1), (1, 0, 2), (2, 1, 0), (0, 1, 2)}
    assert as_set(data, "val") == {(1, 0, 0)}
    assert as_set(data, "test") == {(2, 0, 1)}


@pytest.mark.parametrize(
    ("files", "answer"),
    [
        ({"test": None}, "kg lacks test.txt"),
        ({"valid": "a\tb\tc\n\na\tb\tc\td\n"}, "valid.txt has 4 columns: write head, relation"),
        ({"valid": "\na\t\tb\n"}, "valid.txt, line 2, column 'relation': '' is not a name"),
        ({"valid": None}, "kg lacks valid.txt .* valid_share=0.1 and test_share=0.1 draw"),
        ({"valid_share": 0.5}, "valid.txt has the triples already"),
        (
            {"valid": None, "valid_share": 0.5, "train": "a\tr\tb\nc\tq\td\n"},
            "no training triple can be spared",
        ),
        ({"test": "a\thates\tb\n"}, "training triple has relation 'hates'.*relations: 1"),
        ({"test": ""}, "test.txt is empty: give the path of triples"),
        ({"test": "\n"}, "test.txt is empty: it must have at least one triple"),
        ({"valid": "# none yet\n#\n"}, "valid.txt is empty: it must have at least one triple"),
        (
            {"test": "head\trelation\ttail\n"},
            "test.txt has a header alone: write at least one triple",
        ),
        (dict.fromkeys(("train", "valid", "test"), "a\tlikes\ta\n"), "one entity"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(folder, files, answer):
    with pytest.raises(UsageError, match=answer) as refused:
        folder(**files).load()
    assert len(str(refused.value).splitlines()) == 1


def test_a_name_keeps_every_character_and_a_line_ends_where_it_ends(folder):
    """What `splitlines` takes for the ends of lines, and a byte-order mark before each file."""
    names = ["a\u2028b", "a\x0cb", "a\x85b", "a\x1cb", "a\u00a0a", "a b"]
    lines = [f"{one}\tlikes\t{two}\r\n" for one in names for two in names]
    parts = {"train": "".join(lines), "valid": lines[1], "test": lines[2].rstrip()}
    plain = folder(**parts).load()
    assert plain.num_nodes == len(names)
    assert plain.relation_names == ["likes"]
    marked = folder(**{k: b"\xef\xbb\xbf" + v.encode() for k, v in parts.items()}).load()
    assert torch.equal(marked.edge_index, plain.edge_index)
    assert tuple(read_triples(folder(**parts).download()[0]).iloc[1]) == (
        names[0],
        "likes",
        names[1],
    )


def test_columns_and_separator_can_be_set(folder):
    def turned(text):
        rows = (line.split("\t") for line in text.splitlines())
        return "".join(f"{r},{t}, {h}\n" for h, r, t in rows)

    plain = folder().load()
    parts = {"train": turned(TRAIN), "valid": turned("b\tlikes\ta"), "test": turned("c\tlikes\tb")}
    columns = ["relation", "tail", "head"]
    other = folder(**parts, columns=columns, separator="comma").load()
    assert torch.equal(other.edge_index, plain.edge_index)
    assert other.relation_names == plain.relation_names


HEADERS = """h r t|head relation tail
Subject Predicate Object|s p o|source relation target
entity1 relation entity2|head_id rel tail_id|subj pred obj|person link person2
Head\u00a0 Rel Tail"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("header", HEADERS.replace("\n", "|").split("|"))
@pytest.mark.parametrize("separator", ["\t", ",", " ", ";"])
def test_a_header_is_skipped_or_kept_once_somebody_says_what_it_is(folder, header, separator):
    parts = {"train": TRAIN, "valid": "b\tlikes\ta\n", "test": "c\tlikes\tb\n"}
    plain = folder(**parts).load()
    lines = {name: text.replace("\t", separator) for name, text in parts.items()}
    named = header.replace(" ", separator).replace("_id", "")
    headed = {name: f"{named}\n{text}" for name, text in lines.items()}
    skipped = folder(**headed).load()
    assert torch.equal(skipped.edge_index, plain.edge_index)
    assert skipped.relation_names == plain.relation_names
    assert folder(**headed, header=False).load().num_nodes == plain.num_nodes + 2


def test_columns_follow_a_header_or_their_names(folder):
    parts = {"train": TRAIN, "valid": "b\tlikes\ta\n", "test": "c\tlikes\tb\n"}
    plain = folder(**parts).load()

    def turned(text, header, row):
        rows = (line.split("\t") for line in text.splitlines())
        return "\n".join([header, *(row.format(h=h, r=r, t=t) for h, r, t in rows)])

    forms = (
        ("Source,Target,Type,Weight", "{h},{t},{r},1", {}),
        ("when;who;what;whom", "2020;{h};{r};{t}", {"columns": ["who", "what", "whom"]}),
        ("<x> <y> <z> .", "<{h}> <{r}> <{t}> .", None),
    )
    for header, row, options in forms:
        start = "# of people" if options is None else header
        files = {name: turned(text, start, row) for name, text in parts.items()}
        data = folder(**files, **(options or {})).load()
        assert torch.equal(data.edge_index, plain.edge_index)
        assert data.vocabulary == plain.vocabulary


ROWS = sorted(
    {
        (f"e{h}", ("likes", "type", "knows")[r], f"e{t}")
        for h, r, t in np.random.default_rng(2).integers(0, (9, 3, 9), (60, 3)).tolist()
    }
)


def written_rows(order, header="", separator="\t"):
    """`ROWS` with the columns in an order of h, r, t, below a header with blanks."""
    lines = [separator.join(row["hrt".index(place)] for place in order) for row in ROWS]
    return "\n".join([*([header.replace(" ", separator)] if header else []), *lines, ""])


@pytest.fixture
def read(tmp_path):
    """`read(text, key=value, ...)`: the named triples of a file, and the line on them."""

    def read_text(text, **options):
        (tmp_path / "facts.tsv").write_text(text)
        source = TripleFolder(
            str(tmp_path / "facts.tsv"), test_share=0.1, valid_share=0.1, **options
        )
        triples = source.read()
        line = next(line for line in source.report(triples).splitlines() if "triples: " in line)
        rows = triples[["head", "relation", "tail"]].itertuples(index=False, name=None)
        return sorted(rows), line.strip()

    return read_text


WORDS = {"h": "head", "r": "relation", "t": "tail"}


@pytest.mark.parametrize("order", ["".join(order) for order in permutations("hrt")])
def test_head_relation_and_tail_are_the_order_of_columns_or_their_names(read, order):
    in_order = [WORDS[place] for place in order]
    header = " ".join(in_order)
    places = [1 + order.index(place) for place in "hrt"]
    for head, columns in (
        (header, [*WORDS.values()]),
        (header.title(), [*WORDS.values()]),
        (header, in_order),
        (header, None),
        (header, places),
        ("", in_order),
        ("", places),
    ):
        triples, line = read(written_rows(order, head), columns=columns)
        assert triples == ROWS
        quoted = [f"column {i}" if not head else repr(head.split()[i - 1]) for i in places]
        assert line.startswith("triples: head {}, relation {}, tail {} (".format(*quoted))
        assert "guess" not in line


def test_numbers_of_columns_are_not_names_in_the_first_line(read):
    rows = [("1", "2", "3"), ("1", "2", "4"), ("3", "2", "1"), ("3", "2", "4"), ("4", "2", "1")]
    triples, line = read("".join("\t".join(row) + "\n" for row in rows), columns=[1, 2, 3])
    assert triples == sorted(rows)
    assert "(no header; separator tab)" in line


KNOWN = """source metaedge target|sub rel obj|subject type object|head_id rel tail_id
parent edge_type child|start_node link end_node|sourceId property targetId|from kind to"""


@pytest.mark.parametrize("header", KNOWN.replace("\n", "|").split("|"))
@pytest.mark.parametrize("order", ["hrt", "htr"])
def test_usual_names_of_the_columns_are_a_header(read, header, order):
    """Also where the relation's name is a relation, and with the names that ends of edges have."""
    names = dict(zip("hrt", header.split(), strict=True))
    head = " ".join(names[place] for place in order)
    triples, line = read(written_rows(order, head))
    assert triples == ROWS
    assert (
        line
        == "triples: head {h!r}, relation {r!r}, tail {t!r} (header read; separator tab)".format(
            **names
        )
    )


@pytest.mark.parametrize("names", ["e1 r e2", "s p o", "a type b", "n1 link n2", "Q1 P31 Q2"])
@pytest.mark.parametrize("count", [1, 2])
def test_short_names_are_a_triple_also_in_a_file_of_one(folder, names, count):
    """Where nothing below the first line shows that it is a header."""
    one, relation, two = names.split()
    rows = [(one, relation, two), ("x", relation, "y")][:count]
    text = "".join("\t".join(row) + "\n" for row in rows)
    train = f"x\t{relation}\ty\n{one}\t{relation}\t{two}\ny\t{relation}\tx\n"
    assert named(folder(train=train, valid=text, test=text).load(), "test") == {*rows}


def test_a_first_line_of_other_words_is_a_header_by_a_guess_that_is_said(read):
    text = written_rows("hrt", "Drug Effect Disease")
    triples, line = read(text)
    assert triples == ROWS
    assert "(guess: the first line 'Drug Effect Disease' is a header, dataset.source.header" in line
    assert len(read(text, header=False)[0]) == len(ROWS) + 1
    for first in ("Drug likes Disease", "e1 Effect Disease", "Drug Effect e2", "7 Effect Disease"):
        triples, line = read(written_rows("hrt", first))
        assert triples == sorted([*ROWS, tuple(first.split())])
        assert "guess" not in line
    alone = ("e1", "once", "e2")  # relations may have one triple
    triples, line = read(text + "\t".join(alone) + "\n")
    assert triples == sorted([("Drug", "Effect", "Disease"), *ROWS, alone])


@pytest.mark.parametrize("order", ["htr", "rht"])
def test_relations_in_another_column_than_the_second_are_a_guess_that_is_said(read, folder, order):
    triples, line = read(written_rows(order))
    assert triples == ROWS
    assert line.endswith("(no header; separator tab) (guess: dataset.source.columns=[1,2,3])")
    as_written = sorted(tuple(row["hrt".index(place)] for place in order) for row in ROWS)
    triples, line = read(written_rows(order), columns=[1, 2, 3])
    assert triples == as_written
    assert "guess" not in line
    few = {part: "".join(written_rows(order).splitlines(True)[:2]) for part in ("valid", "test")}
    data = folder(train=written_rows(order), **few).load()  # small files follow the training file
    assert (named(data), named(data, "test")) == ({*ROWS}, {*ROWS[:2]})


def test_names_may_start_with_the_sign_of_comments(folder):
    train = "#a\tr\t#b\n#b\tr\t#c\n#c\tr\t#a\n"
    data = folder(train=train, valid="#a\tr\t#c\n", test="#b\tr\t#a\n").load()
    assert named(data) == {("#a", "r", "#b"), ("#b", "r", "#c"), ("#c", "r", "#a")}
    assert named(data, "test") == {("#b", "r", "#a")}


def test_validation_and_test_are_drawn_of_one_file(source, tmp_path):
    rows = {tuple(row) for row in np.random.default_rng(0).integers(0, 12, (300, 3)).tolist()}
    file = tmp_path / "all.tsv"
    file.write_text("".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in sorted(rows)))
    drawn = {"source.path": str(file), "source.test_share": 0.2, "source.valid_share": 0.1}
    data = source("kg_folder", **drawn).load()
    parts = {part: as_set(data, part) for part in MASKS}
    assert len(set().union(*parts.values())) == len(rows) == sum(map(len, parts.values()))
    assert len(parts["test"]) == round(0.2 * len(rows))
    assert len(parts["val"]) == round(0.1 * len(rows))
    for place in range(3):
        known = {triple[place] for triple in parts["train"]}
        known |= {triple[2 - place] for triple in parts["train"]} if place != 1 else set()
        assert {triple[place] for part in parts.values() for triple in part} <= known


@pytest.mark.parametrize("leak", ["inverse", "test only", "symmetric", "copy", "none"])
def test_inverses_in_training_are_said_and_removed(folder, caplog, leak):
    """Of 300 test triples the inverse is in training, by another relation or the same."""
    generator = np.random.default_rng(1)
    pairs = list({tuple(p) for p in generator.integers(0, 80, (2000, 2)).tolist() if p[0] < p[1]})
    train, valid, test = pairs[300:], pairs[:20], pairs[20:320]
    lines = {"train": [], "valid": [], "test": []}
    for part, those in (("train", train), ("valid", valid), ("test", test)):
        lines[part] += [f"e{a}\tlikes\te{b}" for a, b in those]
        known = {"inverse": pairs, "test only": test, "copy": pairs}.get(leak, ())
    lines["train"] += [f"e{b}\tliked_by\te{a}" for a, b in known if leak != "copy"]
    lines["train"] += [f"e{a}\tlikes_too\te{b}" for a, b in known if leak == "copy"]
    lines["train"] += [f"e{b}\tlikes\te{a}" for a, b in test if leak == "symmetric"]
    lines["train"] += [f"e{a}\tsees\te{(a * 7 + 3) % 80}" for a in range(80)]
    files = {part: "\n".join(dict.fromkeys(those)) for part, those in lines.items()}
    with caplog.at_level(logging.WARNING):
        folder(**files).load()
    warned = "in training the other way round" in caplog.text
    assert warned == (leak in ("inverse", "test only", "symmetric"))
    if leak == "none":
        return
    if leak == "symmetric":
        files["test"] += "\ne1\tlikes\te2" if (1, 2) not in test else ""
    data = folder(**files, remove_inverses=True).load()
    trained = as_set(data, "train")
    known = {(h, t) for h, r, t in trained if data.relation_names[r] != "sees"}
    assert not any((t, h) in known for h, _, t in as_set(data, "test") if h != t)
    assert len(data.relation_names) == (3 if leak == "symmetric" else 2) - (leak == "symmetric")


def test_repeated_training_triples_count_once_and_those_in_two_parts_are_counted(folder, caplog):
    source = folder(train=TRAIN + TRAIN + "c\tlikes\ta\n", test="a\tlikes\tb\nb\tlikes\ta\n")
    with caplog.at_level(logging.WARNING):
        data = source.load()
    assert "4 training triples repeat another one: each counts once" in caplog.text
    assert "2 triples are in more than one part" in caplog.text
    assert int(data.train_mask.sum()) == source.num_train == 5


def test_validation_triples_are_drawn_of_those_that_can_be_spared(folder):
    generator = np.random.default_rng(0)
    rows = {tuple(row) for row in generator.integers(0, 12, (150, 3)).tolist()}
    lines = [f"e{h}\tr{r}\te{t}\n" for h, r, t in sorted(rows)]
    lonely = "x\tr1\te0\n"
    parts = {"train": "".join(lines) + lonely, "valid": None, "test": lines[0]}
    source = folder(**parts, valid_share=0.2)
    data = source.load()
    sizes = [len(as_set(data, part)) for part in ("train", "val")]
    assert sizes == [len(lines) + 1 - round(0.2 * (len(lines) + 1)), round(0.2 * (len(lines) + 1))]
    assert source.num_train == sizes[0]
    assert not as_set(data, "train") & as_set(data, "val")
    train = as_set(data, "train")
    assert {h for h, _, _ in train} | {t for _, _, t in train} == set(range(data.num_nodes))
    again, other = folder(**parts, valid_share=0.2).load(), folder(**parts, valid_share=0.2, seed=1)
    assert torch.equal(again.edge_index, data.edge_index)
    assert not torch.equal(other.load().edge_index, data.edge_index)


def test_fewer_validation_triples_are_drawn_where_no_more_can_be_spared(caplog):
    chain = pd.DataFrame({"head": list("abc"), "relation": "r", "tail": list("bca")})
    with caplog.at_level(logging.WARNING):
        assert draw_triples(chain, 3, "valid_share", seed=0).sum() == 1
    assert "2 triples less than wanted could be drawn for valid_share" in caplog.text


def test_unseen_entities_are_kept_and_counted(folder, caplog):
    with caplog.at_level(logging.WARNING):
        data = folder(test="a\tlikes\tz\n").load()
    assert "1 validation and test triples have one of 1 entities that no training" in caplog.text
    assert data.num_nodes == 4
    assert as_set(data, "test") == {(0, 0, 3)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["wn18rr", "fb15k237"])
def test_a_published_graph_is_its_files(name, source, mirror):
    """PyTorch Geometric's triples, by the names that they have in the files."""
    graph = source(name, mirror)
    data = graph.load()
    paths = graph.download()
    numbers = []
    for path, mask in zip(paths, MASKS.values(), strict=True):
        head, tail = np.array(data.vocabulary.entities, object)[data.edge_index[:, data[mask]]]
        relation = np.array(data.vocabulary.relations, object)[data.edge_type[data[mask]]]
        named = zip(head, relation, tail, strict=True)
        assert Counter(named) == Counter(read_triples(path).itertuples(index=False, name=None))
        numbers.append(len(head))
    assert numbers == [graph.statistics[part] for part in MASKS]
    if name == "wn18rr":  # the smaller one
        assert graph.load().relation_names == data.relation_names  # of the cache


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


def test_both_sides_of_a_triple_are_in_one_batch():
    data = module(
        SyntheticKnowledgeGraph(8, 5, 0), shuffle="sides", inverse_relations=True, size=10
    )
    relations, seen = data.num_relations // 2, []
    for (part,) in data.rounds(0, 1):
        batch = data.batch(part)
        head, relation = batch.head[batch.query].tolist(), batch.relation[batch.query].tolist()
        triples = list(zip(head, relation, batch.tail.tolist(), strict=True))
        assert len(triples) <= 10
        forward = [(h, r, t) for h, r, t in triples if r < relations]
        assert {(t, r + relations, h) for h, r, t in forward} <= set(triples)
        seen += triples
    assert sorted(seen) == sorted(as_set(data.graph, "train"))
    refused = (
        ({"size": 10}, r"set task\.inverse_relations=true"),
        ({"size": 9, "inverse_relations": True}, "must be even"),
    )
    for options, says in refused:
        with pytest.raises(UsageError, match=says):
            module(SyntheticKnowledgeGraph(8, 5, 0), shuffle="sides", **options).prepare_batches()


def test_processes_share_out_a_pass():
    data = module(SyntheticKnowledgeGraph(8, 5, 0))
    rounds = data.rounds(3, 2)
    parts = torch.cat([part for parts in rounds for part in parts])
    assert torch.equal(parts.sort().values, torch.arange(len(data.train_triples[0])))
    with pytest.raises(UsageError, match="do not make 1000000 batches"):
        data.rounds(0, 10**6)


def test_inverse_relations_double_the_triples():
    data = SyntheticKnowledgeGraph(4, 4, 0).load()
    both = module(SyntheticKnowledgeGraph(4, 4, 0), inverse_relations=True)
    assert both.num_relations == 12
    for part in MASKS:
        there = as_set(data, part)
        assert as_set(both.graph, part) == there | {(t, r + 6, h) for h, r, t in there}
    assert add_inverses(data).relation_names[6] == "sibling (inverse)"


def test_known_tails_are_those_of_a_dictionary():
    head, tail = torch.randint(0, 9, (2, 200))
    relation = torch.randint(0, 4, (200,))
    known = KnownTails(head, relation, tail, num_relations=5)
    expected: dict[tuple[int, int], set[int]] = {}
    for h, r, t in zip(head.tolist(), relation.tolist(), tail.tolist(), strict=True):
        expected.setdefault((h, r), set()).add(t)
    pairs = torch.cartesian_prod(torch.arange(11), torch.arange(5))
    query, tails = known.lookup(*pairs.T)
    assert torch.equal(query, query.sort().values)
    for i, (h, r) in enumerate(pairs.tolist()):
        found = tails[query == i].tolist()
        assert found == sorted(expected.get((h, r), set()))
