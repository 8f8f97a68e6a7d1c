"""Layouts of site graphs."""
