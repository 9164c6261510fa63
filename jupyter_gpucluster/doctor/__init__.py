"""Check a machine, a profile or a cluster before and while it is used, by a job too.

Runs in the Python that has this package installed.
May import clusters and below.
"""
