"""Captures of whole sites."""
