"""Git repositories as change histories."""
