"""What Neuropod raises: one class per error code, the same codes as in C++, C, Java and the service.

Every class is a NeuropodError (a RuntimeError) and the builtin that fits, so `except ValueError` or
`except FileNotFoundError` work as usual:

    try:
        model.infer({"image": image})
    except neuropod.SpecMismatchError as error:  # also a ValueError
        print(error.code, error.origin, error.retryable)

The text starts with "Neuropod Error: " and says what failed, what was expected and found, and the next
thing to try.
"""

from typing import ClassVar, Final

_PREFIX: Final = "Neuropod Error: "


class NeuropodError(RuntimeError):
    """Every failure of Neuropod.

    `code` names what went wrong, e.g. "spec_mismatch". `origin` says who can do something about it:
    "caller", "package", "backend", "model", "resource" or "worker". `retryable` is true when the same
    call may succeed later, unchanged. `message` is the text without its "Neuropod Error: ".
    """

    code: ClassVar[str] = ""
    origin: ClassVar[str] = ""
    retryable: ClassVar[bool] = False

    def __init__(self, message: object = "") -> None:
        text = str(message)
        super().__init__(text if text.startswith(_PREFIX) else _PREFIX + text)

    @property
    def message(self) -> str:
        return str(self).removeprefix(_PREFIX)


class InvalidArgumentError(NeuropodError, ValueError):
    """An argument or option that can't be used."""

    code = "invalid_argument"
    origin = "caller"


class SpecMismatchError(NeuropodError, ValueError):
    """A tensor that doesn't fulfil the problem API: its name, dtype, rank or a dimension."""

    code = "spec_mismatch"
    origin = "caller"


class NotFoundError(NeuropodError, FileNotFoundError, LookupError):
    """A path, tensor or output that doesn't exist."""

    code = "not_found"
    origin = "caller"


class InvalidPackageError(NeuropodError, ValueError):
    """The package breaks a rule of the format."""

    code = "invalid_package"
    origin = "package"


class CorruptPackageError(NeuropodError, OSError):
    """The package was whole once: it is truncated or changed, or a hash differs."""

    code = "corrupt_package"
    origin = "package"


class BackendNotFoundError(NeuropodError, ImportError):
    """No plug-in serves the package's platform and version range; the text says how to add one."""

    code = "backend_not_found"
    origin = "backend"


class VersionConflictError(NeuropodError, ImportError):
    """This process holds, or this Python would import, another copy of the framework."""

    code = "version_conflict"
    origin = "backend"


class LoadFailedError(NeuropodError, ImportError):
    """The framework refused the model or a library."""

    code = "load_failed"
    origin = "backend"


class ModelError(NeuropodError):
    """The model raised; the text holds the framework's own message."""

    code = "model_error"
    origin = "model"


class OutOfMemoryError(NeuropodError, MemoryError):
    """An allocation failed, after kept memory was given back."""

    code = "out_of_memory"
    origin = "resource"
    retryable = True


class UnavailableError(NeuropodError, ConnectionError):
    """The model can't serve now."""

    code = "unavailable"
    origin = "resource"
    retryable = True


class WorkerDiedError(NeuropodError, ChildProcessError):
    """The model's process ended during the call."""

    code = "worker_died"
    origin = "worker"
    retryable = True


class InferenceTimeoutError(NeuropodError, TimeoutError):
    """The call's deadline passed."""

    code = "timeout"
    origin = "worker"
    retryable = True


class CancelledError(NeuropodError, InterruptedError):
    """The call was withdrawn."""

    code = "cancelled"
    origin = "worker"


ERROR_CLASSES: Final[dict[str, type[NeuropodError]]] = {
    error_class.code: error_class
    for error_class in (
        InvalidArgumentError,
        SpecMismatchError,
        NotFoundError,
        InvalidPackageError,
        CorruptPackageError,
        BackendNotFoundError,
        VersionConflictError,
        LoadFailedError,
        ModelError,
        OutOfMemoryError,
        UnavailableError,
        WorkerDiedError,
        InferenceTimeoutError,
        CancelledError,
    )
}
"""The class of each code; the native module raises through it."""
