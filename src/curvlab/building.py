"""Objects from configurations: Hydra's `_target_`, with the errors of what is being built."""

from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig

from curvlab.errors import UsageError


def build(config: DictConfig | dict[Any, Any], /, **arguments: Any) -> Any:
    """Instantiate a configuration.

    What its constructor raises comes out as it was raised, not wrapped by Hydra, so that a wrong
    value stays the user's error and a lack of memory one of memory.

    Args:
        config: a mapping with `_target_`.
        **arguments: further arguments of the target.

    Raises:
        UsageError: the target refuses a value, or has no argument of a name.
    """
    try:
        return instantiate(config, **arguments)
    except InstantiationException as error:
        cause = error.__cause__
        if cause is None:
            raise
        if isinstance(cause, TypeError) and "unexpected keyword argument" in str(cause):
            raise UsageError(f"{config['_target_']}: {cause}") from cause
        raise cause from None
