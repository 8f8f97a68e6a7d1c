"""recrawl: the web archive crawler that knows when to come back."""

__version__ = "0.1.0"
