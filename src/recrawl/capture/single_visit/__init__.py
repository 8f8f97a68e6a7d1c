"""Strategies that visit each page once."""
