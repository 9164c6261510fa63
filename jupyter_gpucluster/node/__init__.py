"""Files that are copied beside job scripts: start a worker, read node lists, probe a node.

Runs in any Python from 3.8 on, on a node.
May import only the standard library of Python 3.8.
"""
