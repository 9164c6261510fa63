"""Make Python environments for clusters, and kernels of them.

Runs in the Python that has this package installed.
May import clusters and below.
"""
