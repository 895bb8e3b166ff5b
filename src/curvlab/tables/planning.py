"""Stored results of tables that the current commands no longer produce."""

from collections.abc import Container
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from curvlab.config.cache import CompositionCache, user_cache
from curvlab.config.compose import compose
from curvlab.config.folder import CONFIGS, find
from curvlab.errors import UsageError
from curvlab.results.identity import built, canonical, stored_config
from curvlab.results.result import load, result_files
from curvlab.results.settings import flatten
from curvlab.tables.runs import DEFAULT, format_option, lookup

QUESTION = "stored"  # kind of the questions to the cache


def outdated_cells(
    configs: Path, results: Path, selected: Container[str] | None = None
) -> list[tuple[str, int, str]]:
    """Folder, number of runs and reason for each cell whose command has changed."""
    cells: dict[str, list[Path]] = {}
    for path in result_files(results):
        cell = path.parents[1].relative_to(results).as_posix()
        if selected is None or cell in selected:
            cells.setdefault(cell, []).append(path)
    cache = user_cache() if configs == CONFIGS else CompositionCache()
    outdated = []
    for cell, paths in sorted(cells.items()):
        reason = _reason(configs, Path(cell), load(paths[0]), cache)
        if reason:
            outdated.append((cell, len(paths), reason))
    return outdated


def cell_words(configs: Path, table: str, result: dict[str, Any]) -> list[str]:
    """Overrides of the command that produced a result of a table."""
    words = [f"table={table}"]
    config = OmegaConf.load(find(configs, f"table/{table}.yaml"))
    for key in config.hydra.sweeper.params:
        is_field = key in ("model", "dataset", "seed", "task")
        value = result[key] if is_field else lookup(result["config"], key)
        words.append(f"{key}={value}")
    return [*words, *(result.get("changed") or ())]


def _reason(configs: Path, cell: Path, result: dict[str, Any], cache: CompositionCache) -> str:
    words = cell_words(configs, "/".join(cell.parts[:2]), result)
    config = cache.get(QUESTION, *words)
    if config is None:
        try:
            config = stored_config(compose(words, configs))
        except UsageError as error:
            return str(error)
        cache.put(config, config, QUESTION, *words)
    now = built(config)
    before = built(result["config"], result.get("revisions") or {})
    then = flatten(before)
    today = flatten(now)
    pairs = {k: (then.get(k, DEFAULT), today.get(k, DEFAULT)) for k in {**then, **today}}
    return "; ".join(
        f"{key} {format_option(one)} -> {format_option(other)}"
        for key, (one, other) in sorted(pairs.items())
        if canonical(one) != canonical(other)
    )
