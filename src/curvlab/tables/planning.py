"""Stored results of tables that today's commands no longer give."""

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
from curvlab.tables.runs import DEFAULT, flatten, format_option, lookup

QUESTION = "stored"  # of the cache


def outdated_cells(
    configs: Path, results: Path, among: Container[str] | None = None
) -> list[tuple[str, int, str]]:
    """Folder, runs and reason of each cell whose command has changed."""
    cells: dict[str, list[Path]] = {}
    for path in result_files(results):
        cell = path.parents[1].relative_to(results).as_posix()
        if among is None or cell in among:
            cells.setdefault(cell, []).append(path)
    cache = user_cache() if configs == CONFIGS else CompositionCache()
    whys = {cell: _why(configs, Path(cell), load(paths[0]), cache) for cell, paths in cells.items()}
    return [(cell, len(cells[cell]), why) for cell, why in sorted(whys.items()) if why]


def cell_words(configs: Path, table: str, result: dict[str, Any]) -> list[str]:
    """Overrides of the command that made a result of a table."""
    words = [f"table={table}"]
    for key in OmegaConf.load(find(configs, f"table/{table}.yaml")).hydra.sweeper.params:
        named = key in ("model", "dataset", "seed", "task")
        words.append(f"{key}={result[key] if named else lookup(result['config'], key)}")
    return [*words, *(result.get("changed") or ())]


def _why(configs: Path, cell: Path, result: dict[str, Any], cache: CompositionCache) -> str:
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
    then, today = flatten(before), flatten(now)
    pairs = {k: (then.get(k, DEFAULT), today.get(k, DEFAULT)) for k in {**then, **today}}
    return "; ".join(
        f"{key} {format_option(one)} -> {format_option(other)}"
        for key, (one, other) in sorted(pairs.items())
        if canonical(one) != canonical(other)
    )
