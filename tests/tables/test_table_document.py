"""Tables inside a text are written anew, and those of the results are what their files say."""

import re
from pathlib import Path

import pytest

from curvlab.errors import UsageError
from curvlab.tables.document import refresh

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results" / "tables"
TEXT = """Before.

<!-- tables.py fpst/fig3 1 -->
old
<!-- end -->

Between.

<!-- tables.py status -->

<!-- end -->
After.
"""


def test_only_what_stands_between_marks_is_new():
    new = refresh(TEXT, lambda words: f"\nof {words}\n\n")
    assert new == TEXT.replace("-->\nold\n<!--", "-->\n\nof fpst/fig3 1\n\n<!--").replace(
        "status -->\n\n<!--", "status -->\n\nof status\n\n<!--"
    )
    assert refresh(new, lambda words: f"of {words}") == new


@pytest.mark.parametrize(
    "text", ["no marks", TEXT.replace("<!-- end -->\nAfter", "After"), TEXT + "<!-- end -->\n"]
)
def test_half_a_pair_of_marks_is_refused(text):
    with pytest.raises(UsageError, match="must stand between a line <!-- tables"):
        refresh(text, str)


WRITTEN = RESULTS.parent / "changes.md"  # by `tables.py compare`, of two commits
PAGES = [ROOT / "README.md", *sorted({*RESULTS.parent.glob("*.md")} - {WRITTEN})]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "docs/spaces.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_pages_show_what_the_result_files_say(page, script):
    words = ("refresh", str(page), "--results", str(RESULTS), "--output", "new.md")
    assert script("tables.py", *words)[0] == 0
    assert Path("new.md").read_text() == page.read_text()


def test_numbers_within_a_line_are_new():
    text = (
        TEXT + "It has <!-- cell a/b c d -->1.0<!-- /cell -->, <!-- cell e f g --><!-- /cell -->.\n"
    )
    new = refresh(text, lambda words: f"of {words}")
    assert new.endswith(
        "It has <!-- cell a/b c d -->of cell a/b c d<!-- /cell -->, "
        "<!-- cell e f g -->of cell e f g<!-- /cell -->.\n"
    )


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_no_decimal_of_a_finding_is_typed_by_hand(page):
    written = re.sub("<!--.*?-->", "", refresh(page.read_text(), lambda _words: ""))
    findings = [line for line in written.splitlines() if line.startswith("- ")]
    assert not [line for line in findings if re.search(r"(?<![\d=])[1-9]?\d\.\d", line)]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("fpst/fig3 2", "the number of its part"),
        ("fpst/fig3 fpst cora", "'cora' is none of web_edu, "),
        ("fpst/fig3 nobody web_edu", "'nobody' is none of mlp, "),
        ("nothing", "nothing"),
        ("cell fpst/fig3 fpst nowhere", "'nowhere' is none of web_edu, "),
        ("cell fpst/fig3#9 fpst web_edu", "no 9"),
    ],
)
def test_unknown_marks_are_one_sentence(script, tmp_path, words, answer):
    text = tmp_path / "text.md"
    text.write_text(f"<!-- tables.py {words} -->\n<!-- end -->\n")
    code, _, said = script("tables.py", "refresh", str(text), "--results", str(RESULTS))
    assert code == 2
    assert answer in said
    assert said.count("\n") == 1
    assert text.read_text().endswith("-->\n<!-- end -->\n")
