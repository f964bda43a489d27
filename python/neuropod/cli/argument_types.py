"""Kinds of numbers that options take; what doesn't fit is refused with the option's name."""

import argparse
import math


def positive(text: str) -> int:
    """A whole number from 1."""
    return _whole(text, 1)


def natural(text: str) -> int:
    """A whole number from 0."""
    return _whole(text, 0)


def positives(text: str) -> list[int]:
    """`"1,2,4"`: whole numbers from 1."""
    return [_whole(part, 1) for part in text.split(",")]


def seconds(text: str) -> float:
    """A time above 0."""
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, but is {text!r}")
    return value


def tolerance(text: str) -> float:
    """A number from 0."""
    value = _number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a number from 0, but is {text!r}")
    return value


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"expected a whole number from {least}, but is {text!r}")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"expected a number, but is {text!r}")
    return value
