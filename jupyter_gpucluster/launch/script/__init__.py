"""Render job scripts.

Runs in the Python that has this package installed.
May import profiles, batch and below.
"""
