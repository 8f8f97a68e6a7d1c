"""Access methods."""
