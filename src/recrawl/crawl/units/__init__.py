"""Several stores with their workers as one crawl: registry, buckets, and the exchange of pages."""
