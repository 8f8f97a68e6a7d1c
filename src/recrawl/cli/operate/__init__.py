"""Commands that run and monitor a crawl, and maintain a workspace."""
