"""The command ``recrawl demo``."""
