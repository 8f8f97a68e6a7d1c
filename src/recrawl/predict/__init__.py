"""What to expect of a page before its own history says it: features, and priors from related pages."""
