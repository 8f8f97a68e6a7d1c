"""WARC and ARC files."""
