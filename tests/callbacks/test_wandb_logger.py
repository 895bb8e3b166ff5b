"""Weights & Biases is asked for only when it is chosen."""

import sys

import pytest

from curvlab.callbacks import wandb_logger
from curvlab.errors import UsageError


def test_without_the_package_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    logger = wandb_logger(
        project="curvlab",
        entity=None,
        folder=str(tmp_path),
        name="name",
        run_id="id",
        resumed=False,
        group=None,
        job_type="cell",
        run_config={},
    )
    with pytest.raises(UsageError, match=r"pip install 'curvlab\[wandb\]'"), logger:
        pass
