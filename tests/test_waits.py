"""No long wait without a word, and what a command lacks is one sentence."""

import os
import subprocess
import sys
from itertools import accumulate
from time import sleep
from types import SimpleNamespace

import pytest

from composing import composed
from curvlab import program
from curvlab.callbacks import RunProgress, progress
from curvlab.cli.help import page
from curvlab.config.schema import options_of
from curvlab.errors import UsageError
from curvlab.run.sections import SearchOptions, seeds_from
from curvlab.search import space


def test_a_slow_block_says_what_it_does_and_a_fast_one_nothing(monkeypatch, capsys):
    with program.print_if_slow("drawing"):
        pass
    monkeypatch.setattr(program, "PATIENCE", 0.01)
    with program.print_if_slow("loading"):
        sleep(0.3)
    assert capsys.readouterr().err == "loading ...\n"


def test_a_block_that_goes_on_says_so_again_at_growing_distances(capsys):
    waits = []

    class Ended:
        def wait(self, pause):
            waits.append(pause)
            return len(waits) > 20

    program._print_until(Ended(), "loading")
    ends = list(accumulate(waits))
    assert waits[0] == 2
    assert all(
        pause <= 3 or pause == (end - pause) / 4 for pause, end in zip(waits, ends, strict=True)
    )
    assert waits[-1] > 20
    lines = capsys.readouterr().err.splitlines()
    assert lines[:4] == ["loading ...", *(f"loading ... ({n} s)" for n in (5, 8, 11))]


IMPORT = """
import gc, os, sys
from curvlab.program import import_command
module = import_command("curvlab.run.train")
assert module is sys.modules["curvlab.run.train"] is import_command("curvlab.run.train")
print(os.environ.get("GOMP_SPINCOUNT"), gc.isenabled(), gc.get_freeze_count() > 100_000)
"""


def test_a_command_imports_without_collections_and_its_idle_threads_sleep():
    ours = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1000", "True", "True"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("GOMP_SPINCOUNT", "7", "7"), ("OMP_WAIT_POLICY", "active", None)],
)
def test_what_the_user_sets_for_idle_threads_stays(name, value, expected, monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "9")  # restored afterwards
    monkeypatch.delenv("GOMP_SPINCOUNT")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    program.import_command("colorsys")
    assert os.environ.get("GOMP_SPINCOUNT") == expected


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_lines_are_written_at_once_where_the_environment_asks_for_it(name):
    script = f"import curvlab.cli, os, sys; print('a', file=sys.{name}); os._exit(0)"
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=unbuffered, capture_output=True, text=True, check=True
    )
    assert getattr(done, name) == "a\n"


def test_a_run_without_a_point_of_its_curves_prints_its_steps(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    shown = RunProgress(SimpleNamespace(rows=[]), "GCN on Cora", visible=True)
    trainer = SimpleNamespace(global_step=0, max_steps=40)
    shown.on_train_start(trainer, None)
    for _ in range(40):
        now[0] += 1
        trainer.global_step += 1
        shown.on_train_batch_end(trainer)
    lines = capsys.readouterr().err.splitlines()
    steps = [3, 9, 21]  # the waits double
    assert lines == [f"GCN on Cora  step {n}/40  0:00:{40 - n:02} left" for n in steps]


def test_help_of_searches_lists_their_options():
    text = page("search")
    assert "search=fpst" in text
    for name in options_of(f"{SearchOptions.__module__}.{SearchOptions.__name__}"):
        assert f"search.{name}=" in text


def test_a_missing_part_of_an_extra_is_a_sentence(monkeypatch):
    def find(name):
        if name.startswith("ruamel"):
            raise ModuleNotFoundError("No module named 'ruamel'", name="ruamel")
        return name

    monkeypatch.setattr(space, "find_spec", find)
    with pytest.raises(UsageError, match=r"needs ruamel.yaml: pip install 'curvlab\[hpo\]'$"):
        space.check_search(composed("search=fpst", "dataset=texas"))


def test_a_number_of_seeds_counts_from_the_seed_as_in_a_study():
    config = composed("search=fpst", "dataset=texas", "seed=4", "search.seeds=2")
    assert space.search_seeds(config) == [4, 5]
    space.check_search(config)
    study = composed("study=spaces", "seed=4", "study.seeds=2")
    assert seeds_from(study.study.seeds, study.seed) == [4, 5]
    repeated = composed("search=fpst", "dataset=texas", "search.seeds=[1,0,1]")
    assert space.search_seeds(repeated) == [1, 0]
    for seeds in ("0", "[]"):
        wrong = composed("search=fpst", "dataset=texas", f"search.seeds={seeds}")
        with pytest.raises(UsageError, match="must be a number of seeds"):
            space.check_search(wrong)
