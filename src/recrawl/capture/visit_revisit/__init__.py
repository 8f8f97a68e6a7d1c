"""Strategies that visit each page twice."""
