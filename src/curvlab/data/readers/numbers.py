"""Numbers with commas, which are decimal marks in some files and separate thousands in others."""

from typing import Any, NamedTuple

import pandas as pd

EXPONENT = r"(?:[eE][+-]?\d+)?"
THOUSANDS = rf"[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?{EXPONENT}"
DECIMALS = rf"[+-]?\d+,\d+{EXPONENT}"
COMMA_NUMBER = rf"{THOUSANDS}|{DECIMALS}"
POINT_NUMBER = rf"[+-]?\d*\.\d*\d{EXPONENT}"

MIXED = (
    "has a comma, and the column's commas are neither all decimal marks nor all marks of "
    "thousands: write 0.5 for decimals and 1250 for thousands"
)
"""What to do with a column whose commas have two meanings."""


class Commas(NamedTuple):
    """What the commas in a column's numbers mean.

    Attributes:
        mark: the text that replaces them; None where they have two meanings.
        guess: how an example is read, if it could be read otherwise; else empty.
    """

    mark: str | None
    guess: str


def read_commas(texts: "pd.Series[Any]", comma_separates: bool) -> Commas:
    """The meaning of the commas of a column.

    They separate thousands if they all can, and are decimal marks if one cannot. A number such as
    1,250 can be both: then a comma separates thousands if it also separates the file's columns.
    """
    with_comma = texts[texts.str.contains(",", regex=False)]
    numbers = with_comma[with_comma.str.fullmatch(COMMA_NUMBER)]
    if numbers.empty:
        return Commas("", "")
    are_thousands = bool(numbers.str.fullmatch(THOUSANDS).all())
    are_decimals = bool(numbers.str.fullmatch(DECIMALS).all())
    are_decimals &= not texts.str.fullmatch(POINT_NUMBER).any()
    guess = ""
    if are_thousands and are_decimals:
        example = numbers.iloc[0]
        decimal = example.replace(",", ".")
        whole = example.replace(",", "")
        if comma_separates:
            guess = f"{example} is read as {whole} (guess: write {decimal} for decimals)"
            return Commas("", guess)
        guess = f"{example} is read as {decimal} (guess: write {whole} for thousands)"
        return Commas(".", guess)
    if are_thousands:
        return Commas("", "")
    return Commas("." if are_decimals else None, "")


def parse_numbers(texts: "pd.Series[Any]", comma_separates: bool) -> "pd.Series[Any]":
    """Texts as numbers; NaN in place of others, and of numbers whose commas have two meanings."""
    mark = read_commas(texts, comma_separates).mark
    has_comma = texts.str.fullmatch(COMMA_NUMBER)
    if mark is not None and has_comma.any():
        texts = texts.mask(has_comma, texts.str.replace(",", mark, regex=False))
    return pd.to_numeric(texts, errors="coerce")
