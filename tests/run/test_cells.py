"""Cells that differ in their seed alone are composed once, and have the identity of each."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from curvlab.cli.overrides import cells_of
from curvlab.results.identity import identity_hash
from curvlab.run.cells import Cells, identify
from curvlab.run.command import complete

SWEEPS = {
    "a table": ["table=fpst/fig3", "dataset=web_edu", "model=fpst,gcn", "seed=0,1,2,5"],
    "of values": ["model=gcn", "dataset=cora", "model.dim=8,16", "seed=range(0,4)"],
    "without seeds": ["model=gcn,mlp", "dataset=cora"],
    "of two seeds": ["model=gcn", "dataset=cora", "seed=0,1"],
    "with a folder": ["table=lrn/fig2", "dataset=disease", "model=lrn", "seed=0,1,2"],
}


def folder_of(run):
    return run.folder(multirun=True)


@pytest.mark.parametrize("name", SWEEPS)
def test_the_identity_of_each_cell_is_that_of_its_command(name):
    cells = [tuple(cell) for cell in cells_of(SWEEPS[name])]
    composed = []

    def noted(overrides):
        composed.append(overrides)
        return complete(overrides)

    identities = Cells(cells, partial(identify, complete=noted, folder_of=folder_of))
    for cell in cells:
        found, run = identities.identity(cell), complete(cell)
        assert found.config_hash == run.config_hash
        assert found.folder == run.folder(multirun=True)
        assert (found.overrides, found.outputs) == (run.overrides, run.outputs)
    families = {tuple(o for o in cell if not o.startswith("seed=")) for cell in cells}
    assert len(composed) <= min(len(cells), 2 * len(families))


class Config(dict):
    """A configuration without keys that repeat a run."""

    rerun, experiment = False, None
    paths = SimpleNamespace(output_dir="outputs")


@pytest.mark.parametrize("strange", ["identity", "folder"])
def test_cells_whose_seed_decides_more_are_composed_one_by_one(strange):
    """A seed that also enters another key, or a folder that is not named after it alone."""

    def odd(overrides):
        seed = int(overrides[0].partition("=")[2])
        stored = {"seed": seed, "model": {"width": seed // 3 if strange == "identity" else 1}}
        folder = Path(f"{'seed' if strange == 'identity' else seed}/seed{seed}")
        return SimpleNamespace(
            overrides=tuple(overrides),
            config=Config(),
            stored=stored,
            config_hash=identity_hash(stored),
            outputs=None,
            place=folder,
        )

    cells = [(f"seed={seed}",) for seed in range(7)]
    identities = Cells(cells, partial(identify, complete=odd, folder_of=lambda run: run.place))
    for cell in cells:
        run = odd(cell)
        found = identities.identity(cell)
        assert (found.config_hash, found.folder) == (run.config_hash, run.place)
