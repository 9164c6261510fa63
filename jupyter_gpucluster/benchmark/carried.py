"""Functions that travel by value: the workers' environment lacks this package."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


@functools.cache
def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same where its module cannot be imported.

    The whole module goes along as far as the function uses it, so it may import only what the
    workers have.  A parameter ``dask_worker`` is filled in by `distributed.Client.run`.
    """
    import cloudpickle  # type: ignore[import-untyped]  # it has no stubs

    module = inspect.getmodule(function)
    cloudpickle.register_pickle_by_value(module)
    try:
        payload: bytes = cloudpickle.dumps(function)
    finally:
        cloudpickle.unregister_pickle_by_value(module)

    # distributed pickles importable functions by name; a function within a function goes by value.
    if "dask_worker" in inspect.signature(function).parameters:

        def call_on(*arguments: Any, dask_worker: Any, **named: Any) -> Any:
            import pickle

            there = pickle.loads(payload)  # noqa: S301  # made above
            return there(*arguments, dask_worker=dask_worker, **named)

        return call_on

    def call(*arguments: Any, **named: Any) -> Any:
        import pickle

        return pickle.loads(payload)(*arguments, **named)  # noqa: S301  # made above

    return call
