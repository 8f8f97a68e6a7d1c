"""Upcoming visits and what the budget buys."""
