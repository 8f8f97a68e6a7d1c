"""The evaluations of the papers."""
