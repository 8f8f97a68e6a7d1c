"""Fits of the policy, in the event loop or in a subprocess."""
