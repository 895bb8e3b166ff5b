"""Where the runs of all tables are."""

import logging
from pathlib import Path

from curvlab.config.folder import CONFIGS, REPOSITORY
from curvlab.errors import UsageError
from curvlab.results.result import result_files
from curvlab.tables.spec import table_names

log = logging.getLogger(__name__)


def workplace() -> Path:
    """The folder whose `outputs` are meant: the working directory, or else the repository."""
    here = Path.cwd()
    return here if REPOSITORY is None or own_results(here).is_dir() else REPOSITORY


def shipped_results(results: Path) -> Path | None:
    """The results that come with the repository; None if they are those of `results`."""
    shipped = None if REPOSITORY is None else REPOSITORY / "docs" / "results" / "tables"
    return None if shipped == results.resolve() else shipped


def own_results(root: Path) -> Path:
    """The folder that sweeps write to, whether it is there or not."""
    return root / "outputs" / "tables"


def results_folder(root: Path, given: Path | None = None) -> Path:
    """Where to read results: `given`, else own ones, before there are any the repository's."""
    if given is None:
        given = own_results(root)
        if not given.is_dir():
            stored = "" if REPOSITORY is None else ": these are the results in docs/results/tables"
            log.warning("no runs in outputs/tables yet%s", stored)
            given = root / "docs" / "results" / "tables" if stored else given
        return given
    if not given.is_dir():
        raise UsageError(f"no folder {given}: name the one that all tables' runs are below")
    if not any(result_files(given / name) for name in table_names(CONFIGS)):
        example = given / "fpst" / "fig3"
        log.warning("no result of any table below %s: fpst/fig3's would be in %s", given, example)
    return given
