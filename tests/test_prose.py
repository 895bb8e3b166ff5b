"""The linter of English: what it finds, where, and what it does not read."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("proselint")
PATH = Path(__file__).resolve().parents[1] / "scripts" / "prose.py"
spec = importlib.util.spec_from_file_location("prose", PATH)
prose = importlib.util.module_from_spec(spec)
sys.modules["prose"] = prose
spec.loader.exec_module(prose)

PAGE = """# Graphs

What the nodes hear in a layer, `whatever` it is.

    a command that is told nothing

| option | meaning |
|---|---|
| `want` | the model wants a value |

```
one's own
```
"""

MODULE = '''"""Layers.

The loss is told the labels.
"""

told = "whatever"


def layer():
    """Return a layer.

    It is very unique.
    """
'''


def found(tmp_path, capsys, name, text):
    path = tmp_path / name
    path.write_text(text)
    status = prose.main([str(path)])
    lines = capsys.readouterr().out.splitlines()
    assert status == (1 if lines else 0)
    return [line.removeprefix(f"{path}:") for line in lines]


@pytest.mark.parametrize(
    ("name", "text", "places", "words"),
    [("page.md", PAGE, {"3", "9"}, "'hear'.*'wants'"), ("module.py", MODULE, {"3", "12"}, "very")],
)
def test_words_of_pages_and_docstrings_are_found_and_code_is_not_read(
    tmp_path, capsys, name, text, places, words
):
    lines = found(tmp_path, capsys, name, text)
    assert {line.partition(":")[0] for line in lines} == places
    assert re.search(words, " ".join(lines))
