"""Tables and pictures of all pages are made, and the page of one's own graph is run."""

import re

import pytest

from commands_of_pages import PAGES, ROOT, commands

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]
ALL = list(dict.fromkeys((name, tuple(words)) for page in PAGES for name, words in commands(page)))


OWN = [w for name, w in ALL for w in [(name, *w)] if name in ("tables", "plot")]
LONG = {"fill", "refresh"}
RUNS = re.compile(r"(?<!--output )(outputs/|/shared/)")
"""Where earlier runs would have to be."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's compiler
@pytest.mark.parametrize(
    "words",
    [words for words in OWN if not LONG & {*words} and not RUNS.search(" ".join(words))],
    ids=" ".join,
)
def test_a_table_or_picture_of_a_page(script, mirror, monkeypatch, words):
    monkeypatch.setenv("CURVLAB_MIRROR", str(mirror))
    places = [word.replace("docs/", f"{ROOT}/docs/") for word in words[1:]]
    code, _, said = script(f"{words[0]}.py", *places)
    assert code in (0, None), said
