"""A workspace and its settings."""
