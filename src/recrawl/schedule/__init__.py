"""When to come back: objectives, price and due times; policies; politeness; the frontier."""
