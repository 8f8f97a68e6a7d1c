"""How long a crawl takes, and how much can be kept up with."""
