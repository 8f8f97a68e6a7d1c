"""Learners and priors from features."""
