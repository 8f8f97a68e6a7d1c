"""Runs of a crawl: from opening the store to the last visit."""
