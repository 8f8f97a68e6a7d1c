"""Scores of rates, predictions, rankings and freshness."""
