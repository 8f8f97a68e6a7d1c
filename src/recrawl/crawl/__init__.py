"""The live driver: asks the frontier, fetches, detects, archives, records. The only wall clock."""
