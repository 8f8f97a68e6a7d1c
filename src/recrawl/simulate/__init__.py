"""Simulation: virtual webs with known changes, and runs of policies and capture strategies on them."""
