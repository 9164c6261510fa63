"""The reconcile loop's parts: observe, apply to the record, decide.

Runs in the cluster's Python.
May import core, node, host and batch.
"""
