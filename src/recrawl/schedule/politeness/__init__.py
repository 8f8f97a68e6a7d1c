"""Politeness: when a host may receive a request."""
