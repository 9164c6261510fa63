"""The nouns: errors, units, and the records that all rooms exchange.

Runs everywhere.
May import the standard library.
"""
