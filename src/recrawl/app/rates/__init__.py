"""Change rates of pages, sections and hosts."""
