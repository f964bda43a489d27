"""Metrics as people write them: `NAME`, `NAME:OUTPUT`, `NAME:key=value,…`, `FILE.py:FUNCTION`."""

import re
from dataclasses import dataclass

from neuropod.evaluation.errors import MetricError
from neuropod.packaging.nearest_name import did_you_mean

_CUSTOM = re.compile(r"(?P<file>.+\.py):(?P<function>\w+)")


@dataclass(frozen=True)
class MetricRequest:
    """`name` is a metric's name, or `file` and `name` a Python file and a function in it."""

    text: str
    name: str
    options: dict[str, str]
    file: str | None = None

    def refuse_other_options(self, *known: str) -> None:
        """MetricError for an option that the metric doesn't have."""
        for key in self.options:
            if key not in known:
                raise MetricError(
                    f"metric {self.text!r}: unknown option {key!r}{did_you_mean(key, known)}"
                )


def parse_metric(text: str) -> MetricRequest:
    """Raises MetricError if it's written wrong."""
    custom = _CUSTOM.fullmatch(text)
    if custom:
        return MetricRequest(text, custom["function"], {}, custom["file"])
    name, colon, rest = text.partition(":")
    options: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.strip().partition("=")
        if not equals:
            key, value = "output", key
        if not value or key in options:
            raise MetricError(
                f"metric {text!r} is expected as NAME, NAME:OUTPUT, NAME:output=…,target=… or "
                "FILE.py:FUNCTION"
            )
        options[key] = value
    return MetricRequest(text, name.strip().lower(), options)
