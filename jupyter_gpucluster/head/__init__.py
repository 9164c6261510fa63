"""The head: the process that runs a cluster's Dask scheduler and keeps it at its target."""
