"""The runs that a table's sweep has: how far they are, what is left, which results are outdated."""

import itertools
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from curvlab.config.compose import compose as compose_run
from curvlab.config.folder import find
from curvlab.config.resolvers import register_resolvers
from curvlab.errors import UsageError
from curvlab.results.folder import LEASE, RunDirectory
from curvlab.results.identity import built, canonical, identity_hash, stored
from curvlab.results.leases import Holder, look
from curvlab.results.result import load, read_result, result_files
from curvlab.tables.runs import DEFAULT, flatten, lookup, shown
from curvlab.tables.spec import swept_values


class PlannedRun(NamedTuple):
    """One run of a table's sweep: choices that make its cell, seed, own folder, identity."""

    overrides: tuple[str, ...]
    seed: int
    folder: Path
    config_hash: str
    config: DictConfig  # shared by the runs of a cell, with the seed of the last

    @property
    def name(self) -> str:
        """How lists call it: `gcn, cora, seed 0`."""
        choices = (word.partition("=")[2] for word in self.overrides)
        return ", ".join([*choices, f"seed {self.seed}"])


def planned_runs(configs: Path, table: str, overrides: Sequence[str] = ()) -> list[PlannedRun]:
    """All runs of a table's sweep, whether they are finished or not."""
    sweep = _sweep(configs, table)
    fixed = [word for word in overrides if word.partition("=")[0] not in sweep]
    sweep |= {key: word for key, _, word in (w.partition("=") for w in overrides) if key in sweep}
    seeds = [int(seed) for seed in swept_values("seed", sweep.pop("seed", "0"))]
    values = ([f"{key}={value}" for value in swept_values(key, sweep[key])] for key in sweep)
    register_resolvers()
    runs = []
    with initialize_config_dir(str(configs.resolve()), version_base="1.3"):
        for own in itertools.product(*values):
            composed = compose("train", [f"table={table}", *own, *fixed], return_hydra_config=True)
            config = OmegaConf.masked_copy(composed, [str(k) for k in composed if k != "hydra"])
            for seed in seeds:
                composed.seed = config.seed = seed
                folder = Path(table, composed.hydra.sweep.subdir)
                runs.append(PlannedRun(own, seed, folder, identity_hash(stored(config)), config))
    return runs


def _sweep(configs: Path, table: str) -> dict[str, Any]:
    """The keys and values that a table sweeps."""
    file = OmegaConf.load(find(configs, f"table/{table}.yaml"))
    return {str(key): value for key, value in file.hydra.sweeper.params.items()}


def progress(table: str, runs: Sequence[PlannedRun], results: Path) -> str:
    """Look at the folders of a table's runs: what is done, who is at which run, what failed."""
    at_work: dict[str, Holder] = {}
    failed, abandoned, seconds, done = [], [], [], 0
    for run in runs:
        folder = results / run.folder
        holder = look(folder / LEASE)
        result = read_result(folder)
        if holder is not None:
            at_work[run.name] = holder
        elif (ended := RunDirectory(folder).conclusion(run.config_hash)) is not None:
            done += 1
            seconds += [ended.wall_seconds] if ended.wall_seconds else []
        elif (folder / LEASE).exists():
            abandoned.append(f"  abandoned  {run.name}: the next worker takes it")
        elif (
            result is not None
            and result.status in ("failed", "out_of_memory")
            and identity_hash(result.config, result.revisions) == run.config_hash
        ):
            status = result.status.replace("_", " ")
            failed.append(f"  failed     {run.name}: {status}: {result.error}")
    left, workers = len(runs) - done - len(failed), max(1, len(at_work))
    lines = [
        f"{table}: {done:,} of {len(runs):,} runs done, {len(at_work)} at work, {len(failed)} "
        f"failed, {left - len(at_work):,} to do",
        *(f"  at work    {name}: {holder}" for name, holder in at_work.items()),
        *abandoned,
        *failed,
    ]
    if left and seconds:
        typical = median(seconds)
        lines.append(
            f"  about {left * typical / workers / 3600:.1f} h left with {workers} "
            f"worker{'s' if workers > 1 else ''}, at {typical / 60:.1f} minutes a run (the median)"
        )
    return "\n".join(lines) + "\n"


def outdated(
    configs: Path, results: Path, among: Container[str] | None = None
) -> list[tuple[str, int, str]]:
    """Folder, runs and reason of each cell whose result is not what its command gives today."""
    cells: dict[str, list[Path]] = {}
    for path in result_files(results):
        cell = path.parents[1].relative_to(results).as_posix()
        if among is None or cell in among:
            cells.setdefault(cell, []).append(path)
    whys = {cell: _why(configs, Path(cell), load(paths[0])) for cell, paths in cells.items()}
    return [(cell, len(cells[cell]), why) for cell, why in sorted(whys.items()) if why]


def _why(configs: Path, cell: Path, result: dict[str, Any]) -> str:
    """Differences between a result and what its command builds today; empty without any."""
    try:
        now = built(stored(compose_run(list(_overrides_of(configs, cell, result)), configs)))
    except UsageError as error:
        return str(error)
    before = built(result["config"], result.get("revisions") or {})
    then, today = flatten(before), flatten(now)
    pairs = {k: (then.get(k, DEFAULT), today.get(k, DEFAULT)) for k in {**then, **today}}
    return "; ".join(
        f"{key} {shown(one)} -> {shown(other)}"
        for key, (one, other) in sorted(pairs.items())
        if canonical(one) != canonical(other)
    )


def _overrides_of(configs: Path, cell: Path, result: dict[str, Any]) -> Iterator[str]:
    """The overrides of the command that made a result of a table."""
    table = "/".join(cell.parts[:2])
    yield f"table={table}"
    for key in _sweep(configs, table):
        named = {"model", "dataset", "seed", "task"}
        yield f"{key}={result[key] if key in named else lookup(result['config'], key)}"
    yield from result.get("changed") or ()
