"""Import and export between archives and the store."""
