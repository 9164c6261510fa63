"""Dask's side: `connect`, `GPUCluster` and Dask's hooks.

Runs in the Python that has this package installed.
May import clusters and below, and distributed.
"""
