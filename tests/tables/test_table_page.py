"""The page of a paper: one file, all tables, numbers that sort."""

from html.parser import HTMLParser

import pytest

from curvlab.errors import UsageError
from curvlab.tables import build_report, load_table, table_names
from curvlab.tables.page import page


class Reader(HTMLParser):
    """Collects tags that must be closed, addresses, and the values of cells."""

    VOID = ("meta", "img", "br", "hr", "link")

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.values, self.titles = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes]
        if "data-value" in attributes:
            self.values.append(float(attributes["data-value"]))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h2":
            self.titles.append(data)


@pytest.fixture
def read(configs, tmp_path):
    def make(paper="fpst"):
        text = page(configs, paper, tmp_path)
        reader = Reader()
        reader.feed(text)
        assert reader.open == []
        return text, reader

    return make


def test_every_table_of_the_paper_is_there_and_no_other(configs, read):
    _, reader = read()
    names = [name for name in table_names(configs) if name.startswith("fpst/")]
    blocks = [spec.report.title for name in names for spec in load_table(configs, name)]
    assert reader.titles == blocks


def test_cells_sort_by_the_printed_and_the_reproduced_means(
    configs, read, spec, write_run, tmp_path
):
    write_run("fpst", "web_edu", 0, 98.765)
    _, reader = read()
    cells = build_report(spec, tmp_path).cells
    assert 98.77 in reader.values or 98.76 in reader.values
    assert set(cells["paper_mean"].dropna()) <= set(reader.values)


def test_pictures_are_inside_and_nothing_is_fetched(read, tmp_path):
    picture = b"\x89PNG\r\n\x1a\n"
    (tmp_path.parent / "fpst_curves.png").write_bytes(picture)
    text, reader = read()
    (tmp_path.parent / "fpst_curves.png").unlink()
    assert reader.addresses == ["data:image/png;base64,iVBORw0KGgo="]
    assert "http" not in text


def test_pictures_have_the_papers_numbers(configs, tmp_path):
    results = tmp_path / "tables"
    results.mkdir()
    (tmp_path / "fpst_fig6.png").touch()
    assert "<figcaption>Figure 6: sectional curvature of the graphs<" in page(
        configs, "fpst", results
    )


@pytest.mark.parametrize(
    ("picture", "caption"),
    [
        ("cat_fig2_fb15k237", "CAT, Figure 2: FB15k-237"),
        ("lrn_fig2", "LRN, Figure 2 (left: Disease): ROC-AUC of links by the number of layers"),
        (
            "lrn_fig2_airport",
            "LRN, Figure 2 (right: Airport): ROC-AUC of links by the number of layers",
        ),
        (
            "hypformer_fig5",
            "Hypformer, Figure 5: a training step by the number of nodes, ms; peak memory of a "
            "training step, MB of 2^20 bytes",
        ),
        ("fpst_web_edu_curves", "fpst web edu curves"),
    ],
)
def test_pictures_of_a_table_have_its_title(configs, tmp_path, picture, caption):
    (tmp_path / "tables").mkdir()
    (tmp_path / f"{picture}.png").touch()
    text = page(configs, picture.partition("_")[0], tmp_path / "tables")
    assert f"<figcaption>{caption}</figcaption>" in text


def test_names_cannot_break_the_page(configs, read, spec, write_run):
    write_run("<b>gcn", "web_edu", 0, 90.0)
    text, _ = read()
    assert "<b>gcn" not in text
    assert "&lt;b&gt;gcn" in text


def test_an_unknown_paper_names_those_there_are(configs, tmp_path):
    with pytest.raises(UsageError, match="fpst, hypformer"):
        page(configs, "gpst", tmp_path)
