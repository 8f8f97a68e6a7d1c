"""TimeMaps."""
