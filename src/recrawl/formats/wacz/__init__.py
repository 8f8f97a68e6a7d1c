"""WACZ packages."""
