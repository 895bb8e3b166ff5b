"""Where the configurations are."""

from pathlib import Path

CONFIGS = Path(__file__).parents[3] / "configs"
