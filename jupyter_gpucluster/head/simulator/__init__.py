"""The simulated site behind the demo profiles.

Runs in the cluster's Python.
May import core, host and head.
"""
