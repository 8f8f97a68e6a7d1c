"""Blur and coherence of one site capture."""
