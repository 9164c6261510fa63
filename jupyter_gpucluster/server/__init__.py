"""The Jupyter server extension: REST routes and the dashboard proxy.

Runs in the Jupyter server.
May import clusters and below; never Dask.
"""
