"""The one exception that means: the input was wrong, and this sentence says what to do."""


class UsageError(ValueError):
    """Wrong input from the user; the command line prints its sentence and exits with code 2."""
