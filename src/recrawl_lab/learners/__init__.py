"""Learners of the papers that the product does not use: change classes and new links."""
