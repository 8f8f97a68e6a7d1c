"""The frontier: which page to fetch next."""
