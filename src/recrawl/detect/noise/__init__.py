"""Noise: differences that are no change."""
