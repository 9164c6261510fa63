"""The dialect of Kubernetes: kubectl's commands, manifests, pod states.

Runs in the cluster's Python.
May import core, node, host and batch.
"""
