"""Loading a package and running its model."""

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Unpack, cast

from neuropod.errors import InvalidArgumentError
from neuropod.ope_options import OPEOptions
from neuropod.options import (
    NOT_GIVEN,
    Device,
    LoadOptions,
    NotGiven,
    Path,
    native_options,
    native_overrides,
    takes_existing_names,
)
from neuropod.problem_api import spec_dict

if TYPE_CHECKING:
    import numpy.typing as npt

    from neuropod._native import BackendLoadSpec, Model
    from neuropod.async_calls import AsyncCalls, CallFuture
    from neuropod.metrics import ModelStats
    from neuropod.model_repr import ModelDescription
    from neuropod.workers import WorkerInfo


class Neuropod:
    """A packaged model, loaded and ready to run, whatever framework made it.

    Made by `load_neuropod`, whose options its constructor takes. Used as a context manager, the end of
    the block frees the model; outputs stay valid. `infer` may be called from any thread, and releases
    the GIL while the model runs; calls of a stateful model run one after the other. `load_model`,
    `reset` and `close` must not overlap it.
    """

    def __init__(self, path: Path, **options: Unpack[LoadOptions]) -> None:
        from neuropod import _native

        native = native_options(options)
        overrides = native_overrides(options.get("backend_overrides", ()))
        self._overrides = overrides
        self._async_calls: AsyncCalls | None = None
        self._beginning_async_calls = threading.Lock()
        self._use(_native.Model(path, overrides, native), path)

    def _use(self, model: "Model", path: Path) -> None:
        """Serves with `model` from now on; calls under way hold the one they run on."""
        self._model: Model | None = model
        self._path = path
        self._infer: Callable[..., Any] = model.infer
        self._name = model.get_name()

    def infer(
        self,
        inputs: Mapping[str, Any],
        requested_outputs: Sequence[str] | None = None,
    ) -> "dict[str, npt.NDArray[Any]]":
        """Runs the model and returns its outputs by name, in the order of the output spec.

        Args:
            inputs: by name. A value is a NumPy array or scalar, anything that offers DLPack (torch, JAX,
                CuPy on the CPU), `__array__` or a buffer; or a number, a string, or nested lists of
                them, which get the spec's dtype. A writable C-contiguous array of native byte order is
                lent to the model, not copied, and a model that works in place changes it; everything
                else is copied. dtypes are never cast. Whole numbers in lists must fit exactly; Python
                floats are rounded to the nearest value of a floating dtype. Strings go in as UTF-8;
                NumPy's fixed-width arrays can't carry trailing NULs, object arrays and lists can.
                `inputs` itself isn't changed.
            requested_outputs: the outputs to compute and return; None or an empty list means all.

        Returns:
            Arrays over the outputs' own memory, writable, valid for as long as they are held. Strings:
            a `<U` array; of dtype object (holding str) where a trailing NUL or wasteful padding forbids
            it, or (holding bytes) where an element isn't UTF-8.

        Raises:
            SpecMismatchError: an input doesn't fulfil the problem API; the text names it.
            NotFoundError: a requested output doesn't exist.
            ModelError: the model raised.
            OutOfMemoryError: an allocation failed.
            WorkerDiedError, InferenceTimeoutError, UnavailableError: of a model in a process of its own.
            InvalidArgumentError: `inputs` isn't a mapping of str, or the model isn't loaded.

        The model stays usable after each of them.
        """
        return self._infer(inputs, requested_outputs)

    def infer_async(
        self,
        inputs: Mapping[str, Any],
        requested_outputs: Sequence[str] | None = None,
    ) -> "CallFuture":
        """Begins a call and returns its future, a `concurrent.futures.Future` that can be awaited, too.

        The call is what `infer` does, and raises the same from `result()`. Don't change the arrays in
        `inputs` before it is done. As many calls go on at once as the model has room for, `num_workers` ×
        `concurrency` of a model in processes of its own; others wait. `cancel()` withdraws a call that
        no worker has begun.
        """
        from neuropod.async_calls import AsyncCalls  # takes asyncio along

        model = self.model
        with self._beginning_async_calls:
            if self._async_calls is None:
                self._async_calls = AsyncCalls()
        return self._async_calls.submit(model, inputs, requested_outputs)

    def allocate(self, name: str, shape: Sequence[int]) -> "npt.NDArray[Any]":
        """A new array of input `name`'s dtype over memory that the model reads in place, its content
        undefined: fill it and pass it to `infer`, as it is or a part of it, and nothing is copied.

        In a model of this process other arrays are lent, too; one in a process of its own copies them
        once. Writing into it while a call uses it changes what the model sees.

        Raises:
            NotFoundError: there is no such input.
            InvalidArgumentError: the input is of strings, or a size is negative.
            OutOfMemoryError: there isn't as much memory.
        """
        return self.model.allocate(name, list(shape))

    def workers(self) -> "list[WorkerInfo]":
        """The processes that run the model; empty if it runs in this one."""
        return cast("list[WorkerInfo]", self.model.workers())

    @property
    def name(self) -> str:
        """The model's name, from the package."""
        return self._name

    @property
    def platform(self) -> str:
        """The platform that runs it, e.g. "torchscript"."""
        return self.model.get_platform()

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """The input spec: dicts of `name`, `dtype` and `shape` (a list of sizes, None and symbols).

        An input that may be left out has `"optional": True` too.
        """
        return [spec_dict(spec) for spec in self.model.get_inputs()]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The output spec, as `inputs`."""
        return [spec_dict(spec) for spec in self.model.get_outputs()]

    @property
    def config(self) -> dict[str, Any]:
        """What the package's config.json says, defaults filled in."""
        return self.model.get_config()

    @property
    def model(self) -> "Model":
        """The native model."""
        if self._model is None:
            _refuse_closed(self._name)
        return self._model

    @property
    def allocator_stats(self) -> dict[str, int]:
        """Counters of the pool that the model's inputs and outputs come from; see AllocatorStats in
        `core/memory_pool.hh`."""
        return self.model.allocator_stats()

    def stats(self) -> "ModelStats":
        """What the model has done since it was loaded: calls, errors by code, latencies by part of a
        call, bytes, CPU time, load time, allocator. docs/metrics.md explains each key. Any thread may
        ask at any time; calls under way are not held up."""
        return cast("ModelStats", self.model.stats())

    def load_model(self) -> None:
        """Loads the model, after `load_model_at_construction=False`."""
        self.model.load_model()

    def swap(self, path: Path) -> None:
        """Replaces the package while it serves; for models loaded with `swappable=True`."""
        raise InvalidArgumentError(
            f"model '{self._name}' can't be swapped for '{path!s}'; load it with swappable=True"
        )

    @property
    def generation(self) -> int:
        """How many times the package was swapped."""
        return 0

    def reset(self) -> None:
        """Forgets a stateful model's state. InvalidArgumentError if the model has none."""
        self.model.reset()

    def close(self) -> None:
        """Frees the model. Outputs stay valid; calling it again does nothing."""
        self._description = self._describe()
        if self._async_calls is not None:
            self._async_calls.close()
        self._model = None
        self._infer = functools.partial(_refuse_closed, self._name)

    def __enter__(self) -> "Neuropod":
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        from neuropod.model_repr import as_text

        return as_text(self._describe(), is_closed=self._model is None)

    def _repr_html_(self) -> str:
        """For notebooks."""
        from neuropod.model_repr import as_html

        return as_html(self._describe(), is_closed=self._model is None)

    def _describe(self) -> "ModelDescription":
        from neuropod.model_repr import describe

        model = self._model
        return self._description if model is None else describe(model, self._path, self._overrides)


@takes_existing_names
def load_neuropod(
    path: Path,
    *,
    swappable: bool = False,
    use_ope: bool = False,
    visible_device: Device | NotGiven = NOT_GIVEN,
    visible_gpu: int | NotGiven | None = NOT_GIVEN,
    load_model_at_construction: bool = True,
    disable_shape_and_type_checking: bool = False,
    verify_hashes: bool = True,
    threads: int | None = None,
    backend_overrides: "Sequence[BackendLoadSpec | tuple[str, str, str]]" = (),
    ope_options: OPEOptions | Mapping[str, Any] | None = None,
    strict: bool = False,
    collect_metrics: bool = True,
    allow_native_code: bool = True,
    require_signature: Path | Sequence[Path] | None = None,
) -> Neuropod:
    """Loads the package at `path`, a directory or a zip file.

    Args:
        path: of the package.
        swappable: the result's `swap(other_path)` replaces the package while it serves; see
            docs/hot_swap.md.
        use_ope: run the model in a process of its own, a worker: it can't harm this program, and may use
            another version of its framework. See docs/out_of_process.md.
        visible_device: where inputs marked "GPU" in the package go and the model runs: "cpu", or a GPU's
            index from 0 ("gpu:1" and "cuda:1" work too). Default: GPU 0. Without such a device it means
            the CPU.
        visible_gpu: another name of visible_device, for existing code; None means the CPU.
        load_model_at_construction: False reads the configuration only; `load_model()` loads later.
        disable_shape_and_type_checking: skip the checks of tensors against the specs. Unknown names are
            refused all the same.
        verify_hashes: compare every file with the package's manifest before the model is loaded.
        threads: how many the framework uses for one operation of this model; None leaves its default.
        backend_overrides: plug-ins to prefer, as BackendLoadSpec or (platform, version, path); of
            several the last wins.
        ope_options: settings of out-of-process execution; OPEOptions or a dict of them.
        strict: apply today's rules (a missing input is an error, symbols bind across inputs and outputs)
            to packages written before they existed.
        collect_metrics: count this model's calls, times and bytes (`stats()`, `neuropod.metrics_text()`).
        allow_native_code: False refuses packages that bring compiled code (custom operators).
        require_signature: public keys (PEM files, Ed25519), one or several: only a package signed by one
            of them is loaded, and only what was signed is read of it. See docs/signatures.md.

    Raises:
        NotFoundError: there is nothing at `path`.
        InvalidPackageError, CorruptPackageError: what is there isn't a whole, valid package.
        BackendNotFoundError: no plug-in serves it; the text says which command adds one.
        VersionConflictError: this process holds, or would import, another copy of the framework.
        LoadFailedError: the framework refused the model.
        InvalidArgumentError: an option that can't be used or doesn't exist.
    """
    options: LoadOptions = {
        "use_ope": use_ope,
        "visible_gpu": visible_gpu,
        "load_model_at_construction": load_model_at_construction,
        "disable_shape_and_type_checking": disable_shape_and_type_checking,
        "verify_hashes": verify_hashes,
        "threads": threads,
        "backend_overrides": backend_overrides,
        "ope_options": ope_options,
        "strict": strict,
        "collect_metrics": collect_metrics,
        "allow_native_code": allow_native_code,
        "require_signature": require_signature,
    }
    if not isinstance(visible_device, NotGiven):
        options["visible_device"] = visible_device
    if not isinstance(swappable, bool):
        raise InvalidArgumentError(
            f"swappable is expected to be True or False, but is {swappable!r}"
        )
    if swappable:
        from neuropod.swappable import SwappableNeuropod

        return SwappableNeuropod(path, **options)
    return Neuropod(path, **options)


def _refuse_closed(name: str, *_: object) -> NoReturn:
    raise InvalidArgumentError(f"model '{name}' is closed; load it again to use it")
