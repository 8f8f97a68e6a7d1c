"""Predictions for pages with little history: features, learned priors, related pages, new links (LBLA)."""
