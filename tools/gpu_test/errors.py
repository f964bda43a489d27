"""Why nothing was tested, or what failed."""


class NotPossibleError(Exception):
    """There is something to test, and a tool to do it with is missing."""


class FailedError(Exception):
    """Building failed, or a test."""
