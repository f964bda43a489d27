"""Suggestions for names that don't exist."""

import difflib
from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is most like `name`, or None if none is alike."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` or, with nothing alike, `; known: 'x', 'y'`."""
    names = list(known)
    nearest = nearest_name(name, names)
    if nearest is not None:
        return f"; did you mean {nearest!r}?"
    return f"; known: {', '.join(map(repr, names)) or 'none'}"
