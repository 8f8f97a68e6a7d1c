"""The live driver: asks the frontier, fetches, detects, archives, records. The only wall clock.

Captures of whole sites run on it too; and what others crawled is taken in here, and given out again.
"""
