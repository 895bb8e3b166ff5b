"""Where the configurations are."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "configs"
"""The folder in a wheel; a checkout has it at its top."""

CONFIGS = INSTALLED if INSTALLED.is_dir() else PACKAGE.parents[1] / "configs"
REPOSITORY = None if INSTALLED.is_dir() else CONFIGS.parent
"""The checkout that this package lies in; None for an installed one."""
