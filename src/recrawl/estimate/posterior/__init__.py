"""Posterior distributions of rates, and their priors."""
