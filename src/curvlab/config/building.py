"""Objects from configurations: Hydra's `_target_`, with the errors of what is being built."""

import traceback
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig

from curvlab.config.words import in_command_words
from curvlab.errors import UsageError

OWN_CODE = Path(__file__).parents[1]
OF_ARGUMENTS = (
    "unexpected keyword argument",
    "required positional",
    "required keyword-only",
)
"""What errors say of values that an object does not take, or lacks."""


def build(config: DictConfig | dict[Any, Any], key: str = "", /, **arguments: Any) -> Any:
    """Instantiate a configuration.

    What its constructor raises comes out as it was raised, not wrapped by Hydra, so that a wrong
    value stays the user's error and a lack of memory one of memory. Constructors of other packages
    do not know of users' errors: what they say of values is one.

    Args:
        config: a mapping with `_target_`.
        key: where it stands in the run's configuration, if it is a copy.
        **arguments: further arguments of the target.

    Raises:
        UsageError: the target refuses a value, has no argument of a name, or is none.
    """
    try:
        return instantiate(config, **arguments)
    except InstantiationException as error:
        cause = error.__cause__ or error
        if not key and isinstance(config, DictConfig):
            key = config._get_full_key(None)
        if type(cause) is UsageError and key:
            raise UsageError(in_command_words(str(cause), config, key)) from cause
        if not _is_of_values(cause):
            raise cause from None
        target = config.get("_target_")
        what = f"{key} ({target})" if key else target
        why = " ".join(str(cause).split()) or type(cause).__name__
        raise UsageError(f"{what} cannot be built with its values: {why}") from cause


def _is_of_values(error: BaseException) -> bool:
    """Whether an error that is no user's one was raised by somebody else's code over a value."""
    if isinstance(error, InstantiationException):  # there is nothing to call
        return True
    if isinstance(error, TypeError) and any(words in str(error) for words in OF_ARGUMENTS):
        return True
    if not isinstance(error, TypeError | ValueError | AssertionError | ImportError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return not frames or OWN_CODE not in Path(frames[-1].filename).parents
