"""The process of one cluster: Dask scheduler, HTTP API, reconcile loop.

Runs in the cluster's Python.
May import core, node, host and batch, and distributed.
"""
