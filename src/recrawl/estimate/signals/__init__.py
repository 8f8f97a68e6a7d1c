"""Dates and signals of sites, and how far they are trusted."""
