"""From a request to a running head: plan, files, scripts, process or job.

Runs in the Python that has this package installed.
May import profiles, state and below.
"""
