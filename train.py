"""Train a model in a curved space: `python train.py model=fpst dataset=web_edu`, or `--help`."""

import sys
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from curvlab.cli.command_line import check_command_line, complain, only_prints, without_traces
from curvlab.config.origins import origins, with_origins
from curvlab.config.resolvers import register_resolvers
from curvlab.config.rules import validate
from curvlab.errors import UsageError

CONFIGS = Path(__file__).parent / "configs"


@hydra.main(version_base="1.3", config_path="configs", config_name="train")
def main(config: DictConfig) -> float | None:
    """Run one configuration; return the metric that a hyperparameter search maximises."""
    if config.print_config:
        try:
            validate(config, multirun=HydraConfig.get().mode == RunMode.MULTIRUN)
        except UsageError as error:
            complain(str(error))
        words = HydraConfig.get().overrides.task
        print(with_origins(config, origins(words)), end="")
        return None
    # Imported here, so that --help and a misspelt word need not wait for torch.
    from curvlab.run.seeds import train_seeds
    from curvlab.run.train import RunFailedError, train

    if "search" in config:
        from curvlab.search.run import search

        return search(config).objective
    try:
        results = train_seeds(config) if config.trainer.parallel_seeds > 1 else [train(config)]
    except UsageError as error:
        complain(str(error))
    except RunFailedError as error:
        print(f"train.py: {error}", file=sys.stderr)
        sys.exit(1)
    scores = [result.objective for result in results if result.objective is not None]
    return mean(scores) if scores else None


if __name__ == "__main__":
    register_resolvers()
    sys.argv[1:] = check_command_line(sys.argv[1:], CONFIGS)
    if only_prints(sys.argv[1:]):
        with TemporaryDirectory() as nowhere:
            sys.argv[1:] = without_traces(sys.argv[1:], nowhere)
            main()
    else:
        main()
