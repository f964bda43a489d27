"""Ranges of framework versions, as npm writes them."""

from neuropod.errors import InvalidArgumentError, NeuropodError


def check_version_range(text: object) -> None:
    """Raises InvalidArgumentError unless `text` is a range such as `*`, `>=2.1 <3`, `^2.1.0`,
    `1.4.0 - 1.6.0`, `2.x || 3.1`."""
    from neuropod import _native

    try:
        if not isinstance(text, str):
            raise InvalidArgumentError("not a string")
        _native.version_satisfies("1.0.0", text)
    except NeuropodError as error:
        raise InvalidArgumentError(
            f"platform_version_semver {text!r} is no range of versions; write '*', '2.13.0', "
            "'>=2.1 <3', '^2.1.0', '1.4.0 - 1.6.0' or several with ||"
        ) from error
