"""Quality of an archive."""
