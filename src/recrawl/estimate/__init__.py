"""Histories to beliefs: how fast each page changes. One file per estimator, vectorised over all pages."""
