"""Text in parts, and how similar two texts are."""
