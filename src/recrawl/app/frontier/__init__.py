"""The schedule of a workspace for crawlers of others: they ask what to fetch, and report what they found."""
