"""Calls that go on while their caller does something else."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuropod._native import Model


class CallFuture(concurrent.futures.Future[dict[str, Any]]):
    """The outputs of a call that `infer_async` began; also awaitable.

    `cancel()` withdraws a call that no worker has begun, also one that has been handed over to a worker
    that is busy; a call that runs can't be cancelled.
    """

    def __init__(self) -> None:
        from neuropod._native import CallControl

        super().__init__()
        self._control: CallControl = CallControl()

    def cancel(self) -> bool:
        if super().cancel():
            return True
        if self.done() or not self._control.cancel():
            return self.cancelled()
        # The thread that waits for it learns that it is withdrawn, and sets the state.
        return True

    def cancelled(self) -> bool:
        from neuropod.errors import CancelledError

        if super().cancelled():
            return True
        return self.done() and isinstance(super().exception(), CancelledError)

    def __await__(self) -> Generator[Any, None, dict[str, Any]]:
        return asyncio.wrap_future(self).__await__()


class AsyncCalls:
    """The threads that wait for one model's calls, begun when they are first needed. A forked child has
    its own. Thread-safe."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._executor: concurrent.futures.ThreadPoolExecutor | None = None

    def submit(
        self, model: "Model", inputs: Mapping[str, Any], requested: Sequence[str] | None
    ) -> CallFuture:
        if os.getpid() != self._process:  # forked: the threads are the parent's
            self._begin()
        with self._lock:
            if self._executor is None:  # as many threads as calls make sense at once
                self._executor = concurrent.futures.ThreadPoolExecutor(
                    max_workers=model.concurrency(), thread_name_prefix="neuropod-async"
                )
            executor = self._executor
        future = CallFuture()
        # The caller may change the dict; what it must not change are the arrays.
        executor.submit(_run, future, model, dict(inputs), requested)
        return future

    def close(self) -> None:
        """Calls that were begun go on."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._executor is not None:
                self._executor.shutdown(wait=False)
            self._executor = None


def _run(
    future: CallFuture,
    model: "Model",
    inputs: Mapping[str, Any],
    requested: Sequence[str] | None,
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        outputs = model.infer_controlled(inputs, requested, future._control)
    except BaseException as error:  # the future's owner gets whatever it is
        future.set_exception(error)
    else:
        future.set_result(outputs)
