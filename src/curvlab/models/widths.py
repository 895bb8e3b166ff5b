"""Rules on widths that several models share."""

from curvlab.errors import UsageError


def check_divides(name: str, parts: int, dim: int) -> None:
    """Check that the coordinates split into equal parts.

    Args:
        name: of the option, `heads` or `components`.
        parts: its value.
        dim: number of coordinates.

    Raises:
        UsageError: with the divisors of `dim`.
    """
    if dim % parts:
        divisors = ", ".join(str(n) for n in range(1, dim + 1) if dim % n == 0)
        raise UsageError(f"{name}={parts} does not divide dim={dim}; {divisors} do")
