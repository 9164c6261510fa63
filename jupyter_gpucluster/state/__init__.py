"""Clusters on disk and their life: read, ask, record deaths.

Runs in the Python that has this package installed.
May import core, node, host, batch and head; no pydantic.
"""
