"""What evaluation raises; each is an InvalidArgumentError of Neuropod."""

from neuropod.errors import InvalidArgumentError


class EvaluationError(InvalidArgumentError):
    """Packages that can't be evaluated together, or an option that can't be used."""


class DataError(EvaluationError):
    """Data that can't be read or don't fit the problem API; the text names file and row."""


class MetricError(EvaluationError):
    """A metric that doesn't exist, or doesn't fit the outputs or the targets."""
