"""A model whose package can be replaced while it serves."""

import threading
from typing import TYPE_CHECKING, Any, Unpack

from neuropod.errors import NeuropodError
from neuropod.executor import Neuropod
from neuropod.options import LoadOptions, Path, native_options, native_overrides
from neuropod.problem_api import spec_dict

if TYPE_CHECKING:
    from neuropod._native import Model


class SwappableNeuropod(Neuropod):
    """A model that can be replaced by another package while it serves, whatever framework made that.

    Made by `load_neuropod(path, swappable=True)`. The package it is made from sets the problem API for
    good: every later one must fulfil it, so callers never see a change of it, and any earlier package
    can come back. docs/hot_swap.md explains it.

    `infer` and `swap` may be called from any thread at any time. A replaced model is freed when its last
    call has ended; its outputs stay valid.
    """

    def __init__(self, path: Path, **options: Unpack[LoadOptions]) -> None:
        from neuropod import _native

        super().__init__(path, **options)
        self._options: LoadOptions = {**options, "load_model_at_construction": False}
        self._api = _native.ProblemApi(self.model.get_inputs(), self.model.get_outputs())
        self._swapping = threading.Lock()  # one swap at a time
        self._switching = threading.Lock()  # held for a few assignments
        self._generation = 0

    def swap(self, path: Path) -> None:
        """Loads the package at `path` and lets it serve from now on.

        Calls that start after `swap` has returned run on it; calls under way end on the model they
        began with, and none waits. It gets the options that this model was loaded with. While it loads,
        both models are in memory. A stateful model starts afresh. Swaps run one after the other.

        Raises what `load_neuropod` raises, and InvalidArgumentError that lists the differences if the
        package doesn't fulfil the problem API. The old model then keeps serving as if nothing had
        happened.
        """
        with self._swapping:
            name = self.model.get_name()
            try:
                model = self._load_fulfilling(path)
            except NeuropodError as error:
                raise type(error)(
                    f"model '{name}' isn't swapped and keeps serving: {error.message}"
                ) from None
            with self._switching:
                _ = self.model  # refuses if it was closed meanwhile
                self._use(model, path)
                self._generation += 1

    def _load_fulfilling(self, path: Path) -> "Model":
        """A loaded model that fulfils the API. What is compared is what is loaded: the package is
        opened once."""
        from neuropod import _native

        overrides = native_overrides(self._options.get("backend_overrides", ()))
        model = _native.Model(path, overrides, native_options(self._options))
        offered = _native.ProblemApi(model.get_inputs(), model.get_outputs())
        _native.require_fulfilled(self._api, offered, f"package {str(path)!r}")
        model.load_model()
        return model

    @property
    def generation(self) -> int:
        """How many swaps there were."""
        return self._generation

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """The input spec that callers can rely on: that of the first package. The model that serves now
        may take more: `config["inputs"]` says so."""
        return [spec_dict(spec) for spec in self._api.inputs]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """The output spec, as `inputs`."""
        return [spec_dict(spec) for spec in self._api.outputs]

    def close(self) -> None:
        """Frees the model. A swap that is still loading is refused when it's done."""
        with self._switching:
            super().close()
