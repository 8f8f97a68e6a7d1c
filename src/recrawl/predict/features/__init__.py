"""Features of pages."""
