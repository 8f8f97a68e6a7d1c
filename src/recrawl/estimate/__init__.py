"""Histories to beliefs: how fast each page changes. Estimators are vectorised over all pages."""
