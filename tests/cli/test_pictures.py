"""Pictures on pages of results show what the commands beside them draw."""

import re
import subprocess
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import stored_runs
from composing import ROOT, composed
from curvlab.analysis.style import figure_hash, save_figure, shows
from curvlab.cli.pictures import draw, expand_braces, picture_commands
from curvlab.cli.table_texts import draw_pictures
from curvlab.results.identity import stored_config

RESULTS = ROOT / "docs/results/tables"
COMMANDS = [
    words
    for page in sorted(RESULTS.parent.glob("*.md"))
    for words in picture_commands(page.read_text(), RESULTS)
]


def test_pages_have_pictures_of_stored_results():
    drawn = {Path(words[-1]).name for words in COMMANDS}
    assert {"fpst_leaderboard.svg", "lrn_fig2.svg", "cat_table1_wn18rr.svg"} <= drawn


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: Path(words[-1]).stem)
def test_pictures_of_commands_show_what_the_result_files_say(words):
    path, figure = draw(words)
    assert path.parent == RESULTS.parent
    assert shows(path, figure)
    page_texts = [page.read_text() for page in RESULTS.parent.glob("*.md")]
    assert any(f"({path.name})" in text for text in page_texts)


@pytest.mark.parametrize("pattern", ["a", "seed{1,2}", "{a,b}/c{,d}", "{a}", "{}", "x{,y,z}"])
def test_braces_are_those_of_bash(pattern):
    words = ["bash", "-c", f"echo {pattern}"]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    assert expand_braces(pattern) == said.stdout.split()


def write_run(folder, seed, losses):
    words = "model=gcn", "dataset=cora", f"seed={seed}"
    result = stored_runs.result(
        stored_config(composed(*words)), model="gcn", dataset="cora", seed=seed
    )
    run = folder / f"gcn/seed{seed}"
    run.mkdir(parents=True, exist_ok=True)
    result.write(run)
    lines = [f"{step},{loss}\n" for step, loss in enumerate(losses)]
    (run / "metrics.csv").write_text("".join(["step,loss\n", *lines]))


def test_a_refresh_draws_pictures_of_other_numbers_alone(tmp_path, capsys):
    results = tmp_path / "results/tables"
    write_run(results, 0, [1.0, 0.5])
    command = "curvlab plot curves docs/results/tables/gcn/seed{0,1} --output docs/results/x.svg"
    text = f"Text.\n\n    {command}\n"
    draw_pictures(text, results)
    assert re.fullmatch(r".*x\.svg is left as it is: .*seed1 .*\n", capsys.readouterr().out)
    write_run(results, 1, [1.0, 0.6])
    picture = results.parent / "x.svg"
    draw_pictures(text, results)
    assert capsys.readouterr().out == f"wrote {picture}\n"
    before = picture.read_bytes()
    draw_pictures(text, results)
    assert capsys.readouterr().out == ""
    assert picture.read_bytes() == before
    write_run(results, 1, [1.0, 0.7])
    draw_pictures(text, results)
    assert capsys.readouterr().out == f"wrote {picture}\n"
    assert picture.read_bytes() != before


@pytest.mark.parametrize(
    "line",
    [
        "curvlab plot curves docs/results/tables/gcn --output docs/results/x.svg",
        "    curvlab plot curves outputs/tables/gcn --output docs/results/x.svg",
        "    curvlab plot curves docs/results/tables/gcn --output outputs/x.svg",
        "    curvlab plot curves docs/results/tables/gcn --output docs/results/x.png",
        "    curvlab plot curves docs/results/tables/gcn",
    ],
)
def test_other_commands_are_not_run(line, tmp_path):
    assert not [*picture_commands(f"{line}\n", tmp_path / "tables")]


def figures():
    """Figures of one kind each, and the same with another number or text."""
    draws = {
        "lines": lambda axes, x: axes.plot([0, x], [1, 2]),
        "bars": lambda axes, x: axes.bar([0, 1], [1, x]),
        "points": lambda axes, x: axes.scatter([0, x], [1, 2]),
        "intervals": lambda axes, x: axes.errorbar([0], [1], xerr=x),
        "bands": lambda axes, x: axes.fill_between([0, 1], [0, x]),
        "images": lambda axes, x: axes.imshow([[0, x]]),
        "meshes": lambda axes, x: axes.pcolormesh([[0, x]]),
        "texts": lambda axes, x: axes.text(0, 0, str(x)),
        "titles": lambda axes, x: axes.set_title(str(x), loc="left"),
        "labels": lambda axes, x: axes.set_ylabel(str(x)),
        "ticks": lambda axes, x: axes.set_yticks([0], [str(x)]),
        "legends": lambda axes, x: axes.figure.legend([axes.axhline()], [str(x)]),
        "headings": lambda axes, x: axes.figure.suptitle(str(x)),
    }
    for name, act in draws.items():
        yield pytest.param(act, id=name)


@pytest.mark.parametrize("act", [*figures()])
def test_the_hash_of_a_figure_is_of_what_it_shows(act, tmp_path):
    def figure(x):
        made = Figure()
        act(made.subplots(), x)
        return made

    assert figure_hash(figure(3.0)) == figure_hash(figure(3.0))
    path = save_figure(figure(3.0), tmp_path / "x.svg")
    assert shows(path, figure(3.0))
    assert not shows(path, figure(3.1))
