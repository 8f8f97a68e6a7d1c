"""Clients of other archives."""
