"""The URLFrontier API of crawler-commons over gRPC, so that crawlers of others ask us what to fetch."""
