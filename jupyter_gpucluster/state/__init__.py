"""What is on disk about clusters, and whether it lives: read, ask, record deaths.

Runs in the Python that has this package installed.
May import core, node, host, batch and head; no pydantic.
"""
