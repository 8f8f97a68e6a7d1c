"""Crawl-time and capacity estimation."""
