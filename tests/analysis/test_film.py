"""The film of an embedding: frames that turn with the last ones, and a file that plays."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from curvlab.analysis.film import frame, write_film
from curvlab.manifolds import Stereographic

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def slow_motion(monkeypatch):
    """Draw the last frame a few times only: it is drawn for each frame of its time."""
    monkeypatch.setattr("curvlab.analysis.film.FRAMES_A_SECOND", 2)


def space(kappa):
    return Stereographic(1, [kappa], learnable=False)


def points(kappa):
    tangent = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)) * torch.tensor(
        [3.0, 2.0, 0.1, 0.1]
    )
    return space(kappa).expmap0_projected(0.3 * tangent)


def test_a_frame_is_turned_towards_the_last_one():
    x = points(-0.5)
    first = frame(0, 1.0, x, space(-0.5), None)
    turned = x @ torch.tensor([[0.0, 1.0, 0, 0], [1.0, 0.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, -1.0]])
    again = frame(5, 0.5, turned, space(-0.5), first)
    torch.testing.assert_close(again.coordinates, first.coordinates, atol=1e-5, rtol=0)
    assert (again.step, again.kappa) == (5, -0.5)


@pytest.mark.slow
def test_a_film_has_its_frames_and_stays_on_the_last(tmp_path):
    frames = []
    for i, kappa in enumerate((-0.1, -0.4)):
        before = frames[-1] if frames else None
        frames.append(frame(i, 1 - i / 4, points(kappa), space(kappa), before))
    path = write_film(frames, np.arange(1, 61), "a graph", tmp_path / "film.gif")
    with Image.open(path) as film:
        assert film.n_frames == 2  # the last is shown once, for long
        film.seek(1)
        assert film.info["duration"] > 1000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_the_command_films_a_short_run(tmp_path, monkeypatch, capsys):
    path = tmp_path / "film.gif"
    words = ["--dataset", "synthetic_web", "--steps", "4", "--every", "4"]
    monkeypatch.setattr("sys.argv", ["film.py", str(path), *words])
    runpy.run_path(str(ROOT / "scripts" / "film.py"), run_name="__main__")
    assert "2 frames of 4 steps" in capsys.readouterr().out
    assert path.stat().st_size > 10_000
