"""The machine and its disk: cluster directory, processes, environment, hardware, logs.

Runs in the cluster's Python.
May import core and node.
"""
