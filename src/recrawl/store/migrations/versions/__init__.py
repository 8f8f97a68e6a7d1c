"""One file a revision; what is here never changes."""
