"""The live crawler: asks the frontier, fetches, detects changes, archives, records. Only ``clock`` reads the wall time.

Captures of whole sites run on it, too.
"""
