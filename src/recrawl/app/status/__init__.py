"""The state of a crawl: work, failures, noise."""
