"""One visit: robots, fetch, classify, archive, record."""
