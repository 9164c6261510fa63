"""Dask clusters with one worker per GPU, from JupyterLab, a terminal, a notebook or Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client.connect import connect
    from .client.gpucluster import GPUCluster

__all__ = ["GPUCluster", "__version__", "connect"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the Jupyter server imports this package and must not import distributed.
    if name == "GPUCluster":
        from .client.gpucluster import GPUCluster

        return GPUCluster
    if name == "connect":
        from .client.connect import connect

        return connect
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("jupyter-gpucluster")
        except PackageNotFoundError:
            return "not installed"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-gpucluster"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from .server.app import GpuClusterApp

    return [{"module": "jupyter_gpucluster", "app": GpuClusterApp}]


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%gpucluster`` (``%load_ext jupyter_gpucluster``)."""
    from .magic import load_ipython_extension as load

    load(ipython)
