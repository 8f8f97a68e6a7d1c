"""What to expect of a page before its own history says enough: features, and priors from related pages.

New links are predicted here as well, from a page's past and that of related ones (LBLA).
"""
