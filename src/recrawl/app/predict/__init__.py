"""Trained models and what they expect of pages."""
