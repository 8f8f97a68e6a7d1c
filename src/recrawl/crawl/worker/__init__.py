"""The worker: event loop, lease pool, ready queue, group commit, sitemap and feed polling."""
