"""Operational time: factors that stretch time."""
