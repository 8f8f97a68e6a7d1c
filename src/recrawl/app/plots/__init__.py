"""Plots of rates and quality."""
